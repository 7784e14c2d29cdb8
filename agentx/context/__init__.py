"""Views of a conversation that fit a window. `fit` is for other programs: it needs no agent, journal or model.

What the door leads to is loaded when it is asked for: the rooms behind it are also used one by one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentx.context.chat import restore_tool_result
    from agentx.context.library import Fitted, afit, fit
    from agentx.errors import ContextOverflow, WindowTooSmall

__all__ = ["ContextOverflow", "Fitted", "WindowTooSmall", "afit", "fit", "restore_tool_result"]

ROOMS = {
    "agentx.context.chat": ("restore_tool_result",),
    "agentx.context.library": ("Fitted", "afit", "fit"),
    "agentx.errors": ("ContextOverflow", "WindowTooSmall"),
}


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            return getattr(importlib.import_module(room), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
