"""A digest made by code: what happened, when no model can tell it. Needs nothing but the journal."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, cast

from agentx.context.clip import shorten_arguments
from agentx.context.index import about
from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.wires.messages import ToolCall

LEVELS = (800, 400, 200, 100, 50, 25)
"""Characters that one step may have; the first with which all steps fit is taken."""
SHORTEST_JSON = 100
"""Characters of a step: below that there is no room for arguments."""
STRETCHES = (4, 10, 25, 60, 150, 400)
"""Calls in one stretch, where single steps do not fit; the first with which all stretches fit is taken."""
LINES = (200, 100, 50, 25)
"""Characters of one line in a list; the first with which all lines fit is taken."""
MORE = 12
"""Tokens for the word on what a list leaves out."""
SAID, ERRORS, COMMANDS, CHANGED, READ = 0.4, 0.25, 0.35, 0.25, 0.2
"""What each list may take of what the lists before it left; stretches get the rest."""

CHANGES, READS, RUNS = frozenset({"write_file", "edit_file"}), frozenset({"read_file"}), frozenset({"shell"})
OUTCOME = re.compile(r"\[([^\],;:]+)[^\]]*\]\s*")
"""How a command ended: the first words of its result."""


def digest(items: Sequence[Item], limit_tokens: int, *, without: Collection[int] = ()) -> str:
    """What *items* tell, at most *limit_tokens*; empty when nothing fits.

    Every step has its line where there is room. Else there are lists: what the user said, the errors, the commands
    with how they ended, the files, and what each stretch of the work did. Items whose seq is in *without* are
    shown elsewhere.
    """
    told = [item for item in items if item.kind != "nudge" and item.seq not in without]
    for level in LEVELS:
        lines = [_step(item, level) for item in told]
        if _size(lines) <= limit_tokens:
            return "\n".join(lines)
    return _lists(told, limit_tokens)


def _step(item: Item, level: int) -> str:
    message = item.message
    if item.kind == "tool":
        outcome = "" if item.ok else "FAILED: "
        return f"  result of {message.name or 'a tool'}: {outcome}{_short(message.text, level)}"
    if item.kind == "assistant":
        calls = "; ".join(f"called {call.name}{_given(call, level)}" for call in message.tool_calls)
        said = f"said: {_short(message.text, level)}" if message.text.strip() else ""
        return f"- {'; '.join(part for part in (said, calls) if part)}"
    return f"- the user said: {_words(item, level)}"


def _given(call: ToolCall, level: int) -> str:
    """The arguments of *call* as JSON, or what it was about where there is no room for that."""
    return f" {shorten_arguments(call.arguments, level // 4)}" if level >= SHORTEST_JSON else about(call)


def _lists(items: Sequence[Item], limit: int) -> str:
    calls = {call.id: call for item in items for call in item.message.tool_calls}
    results = [item for item in items if item.kind == "tool"]
    spoken = [item for item in items if item.kind in ("task", "user")]
    parts: list[str] = []
    left = limit
    for heading, share, lines in (
        ("The user said:", SAID, [[f"- {_words(item, level)}" for item in spoken] for level in LINES]),
        ("Errors:", ERRORS, [[_error(item, level) for item in results if not item.ok] for level in LINES]),
        ("Commands:", COMMANDS, [_commands(results, calls, level) for level in LINES]),
        ("Files changed:", CHANGED, [_files(results, calls, CHANGES)]),
        ("Files read:", READ, [_files(results, calls, READS)]),
        ("What was done:", 1.0, [_stretches(items, most_calls) for most_calls in STRETCHES]),
    ):
        if part := _fitted(heading, lines, int(left * share)):
            parts.append(part)
            left -= text_tokens(part) + 1
    return "\n".join(parts)


def _fitted(heading: str, choices: Sequence[list[str]], limit: int) -> str:
    """The first of *choices* that fits under its *heading*, else the newest lines of the last one."""
    room = limit - text_tokens(heading) - 1
    if not choices[-1]:
        return ""
    for lines in choices:
        if _size(lines) <= room:
            return "\n".join([heading, *lines])
    room -= MORE
    kept: list[str] = []
    for line in reversed(choices[-1]):
        room -= text_tokens(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    return "\n".join([heading, f"- ({len(choices[-1]) - len(kept):,} earlier are not told)", *reversed(kept)])


def _words(item: Item, level: int) -> str:
    images = f" ({len(item.message.images)} images)" if item.message.images else ""
    return f"{_short(item.message.text, level)}{images}"


def _error(item: Item, level: int) -> str:
    text, name = item.message.text, item.message.name or "a tool"
    if name in RUNS and (outcome := OUTCOME.match(text)):  # how it ended stands with the commands
        text = text[outcome.end() :]
    return f"- r{item.seq} {name}: {_short(text, level)}"


def _commands(results: Sequence[Item], calls: dict[str, ToolCall], level: int) -> list[str]:
    """Each command once, the newest run of it: how it ended, and its id."""
    lines: dict[str, str] = {}
    for item in results:
        command = _argument(calls.get(item.message.tool_call_id or ""), "command")
        if item.message.name in RUNS and command is not None:
            outcome = OUTCOME.match(item.message.text)
            lines.pop(command, None)
            lines[command] = (
                f"- `{_short(command, level)}`: {outcome[1] if outcome else 'no outcome'} (r{item.seq})"
            )
    return list(lines.values())


def _files(results: Sequence[Item], calls: dict[str, ToolCall], names: Collection[str]) -> list[str]:
    """The paths of calls of *names* that went well, each once, the newest last."""
    paths: dict[str, None] = {}
    for item in results:
        path = _argument(calls.get(item.message.tool_call_id or ""), "path")
        if item.ok and item.message.name in names and path is not None:
            paths.pop(path, None)
            paths[path] = None
    return [f"- {path}" for path in paths]


def _stretches(items: Sequence[Item], most_calls: int) -> list[str]:
    """One line for each stretch of at most *most_calls* calls: the tools, how many failed, what was said last."""
    lines: list[str] = []
    stretch: list[Item] = []
    for item in items:
        begins = item.kind in ("task", "user") or sum(one.kind == "tool" for one in stretch) >= most_calls
        if begins and stretch and item.kind != "tool":
            lines.extend(_stretch(stretch))
            stretch = []
        if item.kind in ("assistant", "tool"):
            stretch.append(item)
    return lines + _stretch(stretch)


def _stretch(items: Sequence[Item]) -> list[str]:
    tools = Counter(item.message.name or "a tool" for item in items if item.kind == "tool")
    failed = sum(not item.ok for item in items)
    said = next(
        (item.message.text for item in reversed(items) if item.message.text.strip() and item.kind == "assistant"),
        "",
    )
    parts = [", ".join(f"{name} {number}" for name, number in tools.items())] if tools else []
    parts += [f"{failed} failed"] if failed else []
    parts += [f"said: {_short(said, LINES[1])}"] if said else []
    return [f"- r{items[0].seq} to r{items[-1].seq}: {'; '.join(parts)}"] if parts else []


def _argument(call: ToolCall | None, name: str) -> str | None:
    try:
        value: Any = json.loads(call.arguments) if call else None
    except (ValueError, RecursionError):
        return None
    found = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _short(text: str, level: int) -> str:
    """*text* on one line: its head and tail, about *level* characters, and never longer than it was."""
    line = " ".join(text.split())
    if len(line) <= level + len(" ... "):
        return line
    head = level * 2 // 3
    return f"{line[:head]} ... {line[head - level :]}"


def _size(lines: Sequence[str]) -> int:
    return sum(text_tokens(line) + 1 for line in lines)
