"""Names the tool results that a view does not show, so that the model can ask for each of them by its id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.wires.messages import ToolCall

HEADING = "Earlier tool results (restore_tool_result brings each back by its id):"
OLDER = "- {number:,} older ones: restore_tool_result with id `list` names them"
ALL = "list"
"""What `restore_tool_result` takes for the names of all results."""
SMALLEST_INDEX = 60
"""Tokens: below that hardly one could be named."""
ABOUT = 60
"""Characters of what a call was about."""
NOT_NAMED = frozenset({"update_notes", "update_plan", "restore_tool_result"})
"""What they gave stands elsewhere."""


def result_index(items: Sequence[Item], limit_tokens: int) -> str:
    """The tool results among *items* by id, the newest of them that fit into *limit_tokens* (plain estimate), and
    how the others can be found. Empty when there is nothing to name, or no room for it."""
    lines = result_lines(items)
    if not lines or limit_tokens < SMALLEST_INDEX:
        return ""
    left = limit_tokens - text_tokens(HEADING) - text_tokens(OLDER.format(number=len(lines))) - 2
    kept: list[str] = []
    for line in reversed(lines):
        left -= text_tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    older = len(lines) - len(kept)
    return "\n".join([HEADING, *([OLDER.format(number=older)] if older else []), *reversed(kept)])


def result_lines(items: Sequence[Item]) -> list[str]:
    """One line for each tool result among *items*; of calls that were made again only the newest."""
    made = {call.id: call for item in items for call in item.message.tool_calls}
    lines: dict[tuple[str, str], str] = {}
    for item in items:
        call = made.get(item.message.tool_call_id or "")
        name = item.message.name or (call.name if call else "a tool")
        if item.kind != "tool" or name in NOT_NAMED:
            continue
        key = (name, call.arguments if call else str(item.seq))
        failed = "" if item.ok else ", failed"
        lines.pop(key, None)
        lines[key] = f"- r{item.seq}: {name}{about(call)}, {len(item.message.text):,} characters{failed}"
    return list(lines.values())


def about(call: ToolCall | None) -> str:
    """What *call* was about, in short and on one line: its first argument that is a text, such as a path."""
    if call is None:
        return ""
    try:
        parsed: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    values = cast("dict[str, Any]", parsed).values() if isinstance(parsed, dict) else ()
    text = " ".join(next((value for value in values if isinstance(value, str)), "").split())
    if not text:
        return ""
    return f" `{text}`" if len(text) <= ABOUT else f" `{text[: ABOUT - 3]}...`"
