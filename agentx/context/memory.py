"""What comes back after a compaction besides the summary: goal, plan, notes, running commands, edited files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentx.context.clip import SMALLEST_CLIP, clip
from agentx.context.measure import text_tokens, water_level
from agentx.events import NotesUpdated, PlanUpdated, ToolEnded
from agentx.journal import Entry
from agentx.wires.messages import Message

EDITING = frozenset({"write_file", "edit_file"})
MOST_FILES = 5
NOTES_FILE = "NOTES.md"


def no_calls() -> dict[str, str]:
    return {}


@dataclass(slots=True)
class Ledger:
    """What the journal tells of the state of the work: kept by code, so that no summary can lose it."""

    plan: Sequence[Mapping[str, Any]] = ()
    notes: str = ""
    edited: list[str] = field(default_factory=list[str])
    """Paths, the newest last."""
    _asked: dict[str, str] = field(default_factory=no_calls)

    def see(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, PlanUpdated):
            self.plan = event.items
        elif isinstance(event, NotesUpdated):
            self.notes = event.text
        elif isinstance(event, ToolEnded) and event.ok and (path := self._asked.pop(event.id, None)):
            if path == NOTES_FILE:
                return
            if path in self.edited:
                self.edited.remove(path)
            self.edited.append(path)

    def asked(self, message: Message) -> None:
        """Remember which files the calls of a reply would edit."""
        self._asked.clear()
        for call in message.tool_calls:
            if call.name in EDITING and (path := _path_of(call.arguments)):
                self._asked[call.id] = path

    @property
    def open_items(self) -> list[str]:
        return [str(item.get("text", "")) for item in self.plan if not item.get("done")]


def memory_text(
    ledger: Ledger,
    limit_tokens: int,
    *,
    read_file: Callable[[str], str | None],
    background: str,
    goal: str | None = None,
) -> str:
    """The text that goes back into a view, at most *limit_tokens* (plain estimate); empty when there is nothing.

    *goal* is the command that must succeed before the task is finished. Files, the notes too, are read now, not
    remembered: a view must not show what is no longer true. Notes that are gone from disk come from the journal.
    """
    if limit_tokens < SMALLEST_CLIP:
        return ""
    parts: list[str] = []
    if goal:
        parts.append(f"The task is not finished before this command succeeds:\n{goal}")
    if items := ledger.open_items:
        parts.append("Open items of the plan:\n" + "\n".join(f"- [ ] {item}" for item in items))
    if notes := (read_file(NOTES_FILE) or ledger.notes).strip():
        parts.append(f"{NOTES_FILE}:\n{notes}")
    if background.strip():
        parts.append(f"Commands running in the background:\n{background.strip()}")
    left = limit_tokens - sum(text_tokens(part) + 1 for part in parts)
    if left < 0:
        cap = water_level([text_tokens(part) + 1 for part in parts], limit_tokens) - 1
        parts = [clip(part, cap).text for part in parts if cap >= SMALLEST_CLIP or text_tokens(part) <= cap]
    else:
        parts.extend(_files(ledger.edited, left, read_file))
    return "\n\n".join(parts)


def _files(edited: Sequence[str], limit: int, read_file: Callable[[str], str | None]) -> list[str]:
    """The files edited last, the newest first, as they are now; a name alone where there is no room."""
    found = [
        f"File {path} as it is now (you edited it):\n{text}"
        for path in reversed(edited[-MOST_FILES:])
        if (text := read_file(path)) is not None
    ]
    sizes = [text_tokens(text) + 1 for text in found]
    if sum(sizes) <= limit:
        return found
    cap = water_level(sizes, limit) - 1
    if cap < SMALLEST_CLIP:
        names = "Files you edited: " + ", ".join(edited[-MOST_FILES:])
        return [names] if text_tokens(names) < limit else []
    return [clip(text, cap).text for text in found]


def _path_of(arguments: str) -> str | None:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    path = value.get("path") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  json gives Any
    return path if isinstance(path, str) else None
