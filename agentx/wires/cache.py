"""Cache markers: where a provider caches only what it is told to, the long beginning of a request is marked.

Anthropic takes at most four: the tools, the system prompt, and the ends of the last two things that the model was
told. What the last request marked last is marked again by this one, so that it is found. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

CacheStyle = Literal["message", "part"]
"""Where the marker of a text stands: beside it (LiteLLM's form), or in a part of its own (OpenRouter's)."""
MARK = {"type": "ephemeral"}
TOLD = 2
"""Ends of what the model was told that are marked: this turn's, and the one that the last request ended with."""


def marked_messages(messages: Sequence[dict[str, Any]], style: CacheStyle) -> list[dict[str, Any]]:
    """Rendered *messages* with markers on the system prompt and on what the model was told last; from a copy."""
    system = [place for place, message in enumerate(messages[:1]) if message["role"] == "system"]
    chosen = {*system, *_ends(messages)[-TOLD:]}
    return [_marked(message, style) if place in chosen else message for place, message in enumerate(messages)]


def marked_tools(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rendered *tools* with a marker on the last one, in LiteLLM's form."""
    return [*tools[:-1], *({**tool, "cache_control": MARK} for tool in tools[-1:])]


def _ends(messages: Sequence[dict[str, Any]]) -> list[int]:
    """Where what the model was told ends, before each reply and at the end; the results of one turn are one."""
    told = [place for place, message in enumerate(messages) if message["role"] in ("user", "tool")]
    return [place for place in told if place + 1 == len(messages) or messages[place + 1]["role"] == "assistant"]


def _marked(message: dict[str, Any], style: CacheStyle) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        if style == "message":
            return {**message, "cache_control": MARK}
        content = [{"type": "text", "text": content}]
    return {**message, "content": [*content[:-1], {**content[-1], "cache_control": MARK}]}
