"""Why a reply ended: the servers' many words for five reasons."""

from __future__ import annotations

from agentx.wires.messages import Finish

_MEANS: dict[str, Finish] = {
    "tool_calls": "tool_calls",
    "tool-calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "window",  # Mistral
    "model_context_window_exceeded": "window",  # Anthropic, Z.ai
    "context_length_exceeded": "window",
    "content_filter": "content_filter",
    "content-filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "sensitive": "content_filter",  # Z.ai
    "refusal": "content_filter",
}

BROKEN = frozenset(
    {
        "error",  # OpenRouter, Mistral
        "network_error",  # Z.ai
        "insufficient_system_resource",  # DeepSeek
        "abort",  # vLLM
        "malformed_function_call",  # Gemini
    }
)
"""Reasons that say that the reply was not finished."""


def finish_of(reason: str) -> Finish:
    """The reason in our words; an unknown one is an ordinary end."""
    return _MEANS.get(reason.lower(), "stop")
