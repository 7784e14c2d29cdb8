"""A digest made by code: what happened, step by step, when no model can tell it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agentx.context.clip import shorten_arguments
from agentx.context.items import Item
from agentx.context.measure import text_tokens

LEVELS = (800, 400, 200, 100, 50, 25)
"""Characters that one step may have; the first with which all steps fit is taken."""


def digest(items: Sequence[Item], limit_tokens: int, *, without: Collection[int] = ()) -> str:
    """One line for each of *items*, at most *limit_tokens* in all; the oldest give way when nothing else helps.

    Items whose seq is in *without* are shown elsewhere. Empty when not even one line fits.
    """
    told = [item for item in items if item.kind != "nudge" and item.seq not in without]
    for level in LEVELS:
        lines = [_line(item, level) for item in told]
        if sum(text_tokens(line) + 1 for line in lines) <= limit_tokens:
            return "\n".join(lines)
    lines = [_line(item, LEVELS[-1]) for item in told]
    left = limit_tokens - 12
    kept: list[str] = []
    for line in reversed(lines):
        left -= text_tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    return "\n".join([f"({len(lines) - len(kept)} earlier steps are not told)", *reversed(kept)])


def _line(item: Item, level: int) -> str:
    message = item.message
    if item.kind == "tool":
        outcome = "" if item.ok else "FAILED: "
        return f"  result of {message.name or 'a tool'}: {outcome}{_short(message.text, level)}"
    if item.kind == "assistant":
        calls = "; ".join(
            f"called {call.name} {_short(shorten_arguments(call.arguments, max(16, level // 8)), level)}"
            for call in message.tool_calls
        )
        said = f"said: {_short(message.text, level)}" if message.text.strip() else ""
        return f"- {'; '.join(part for part in (said, calls) if part)}"
    images = f" ({len(message.images)} images)" if message.images else ""
    return f"- the user said: {_short(message.text, level)}{images}"


def _short(text: str, level: int) -> str:
    """*text* on one line: its head and tail, about *level* characters."""
    line = " ".join(text.split())
    if len(line) <= level:
        return line
    head = level * 2 // 3
    return f"{line[:head]} ... {line[head - level :]}"
