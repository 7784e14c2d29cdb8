"""Views of a conversation that fit a window. `fit` is for other programs: it needs no agent, journal or model."""

from agentx.context.chat import restore_tool_result
from agentx.context.library import Fitted, afit, fit
from agentx.errors import ContextOverflow, WindowTooSmall

__all__ = ["ContextOverflow", "Fitted", "WindowTooSmall", "afit", "fit", "restore_tool_result"]
