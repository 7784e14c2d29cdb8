"""What must not be forgotten, by the journal, held against what a summary tells: code adds what is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.wires.messages import ToolCall

EDITING = frozenset({"write_file", "edit_file"})
MOST_ERRORS = 8
SUBJECT, SAID = 100, 160
"""Characters of what failed, and of what it said."""
HEADING = "Known from the journal, and not told above:"


@dataclass(frozen=True, slots=True)
class OpenError:
    """A call that failed and has not gone well since. `subject` is its command or path, `said` how it failed."""

    subject: str
    said: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands at some point of a job: open items of the plan, paths of changed files (the newest last), and
    the newest errors that are open."""

    plan: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    errors: tuple[OpenError, ...] = ()


def standing(items: Sequence[Item], plan: Sequence[str] = ()) -> Standing:
    """What *items* leave behind. *plan* are the open items of the plan."""
    calls: dict[str, ToolCall] = {}
    paths: dict[str, None] = {}
    errors: dict[str, OpenError] = {}
    for item in items:
        if item.kind == "assistant":
            calls = {call.id: call for call in item.message.tool_calls}
        call = calls.get(item.message.tool_call_id or "") if item.kind == "tool" else None
        if call is None:
            continue
        subject = subject_of(call)
        key = subject or f"{call.name} {call.arguments}"
        errors.pop(key, None)
        if not item.ok:
            errors[key] = OpenError(subject or call.name, _said(item.message.text))
        elif call.name in EDITING and subject:
            paths.pop(subject, None)
            paths[subject] = None
    return Standing(tuple(plan), tuple(paths), tuple(errors.values())[-MOST_ERRORS:])


def left_out(record: str, stands: Standing, limit_tokens: int) -> str:
    """What of *stands* the *record* does not tell, in at most *limit_tokens* (plain estimate): the plan first,
    then errors, then paths, of each the newest where not all fit. Empty when nothing is missing."""
    told = _plain(record)
    lines = [f"- open in the plan: {_short(item, SAID)}" for item in stands.plan if _plain(item) not in told]
    lines += [
        f"- error still open: {_short(error.subject, SUBJECT)}: {error.said}"
        for error in reversed(stands.errors)
        if _plain(_short(error.subject, SUBJECT)) not in told
    ]
    paths = [path for path in reversed(stands.paths) if _plain(path) not in told]
    left = limit_tokens - text_tokens(HEADING) - 1
    kept: list[str] = []
    for line in lines:
        left -= text_tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    if paths and (line := _paths_line(paths, left)):
        kept.append(line)
    return "\n".join([HEADING, *kept]) if kept else ""


def subject_of(call: ToolCall) -> str:
    """The command or the path that *call* is about; empty when it names none."""
    try:
        parsed: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    values = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    found = values.get("command") or values.get("path")
    return " ".join(found.split()) if isinstance(found, str) else ""


def _paths_line(paths: Sequence[str], limit: int) -> str:
    """The newest of *paths* that fit, and how many there are besides."""
    shown: list[str] = []
    for path in paths:
        more = len(paths) - len(shown) - 1
        line = f"- changed: {', '.join([*shown, path])}{f', and {more} files more' if more else ''}"
        if text_tokens(line) > limit:
            break
        shown.append(path)
    if not shown:
        return ""
    more = len(paths) - len(shown)
    return f"- changed: {', '.join(shown)}{f', and {more} files more' if more else ''}"


def _said(text: str) -> str:
    """How a result says that it failed: its first line, and the last one where there are several."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "failed"
    return _short(lines[0] if len(lines) == 1 else f"{_short(lines[0], SAID // 2)} ... {lines[-1]}", SAID)


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()
