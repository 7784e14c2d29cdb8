"""Brings back what a marker or a clipped result stands for: from the journal, whole, and for ever."""

from __future__ import annotations

import re
from pathlib import Path

from agentx.context.index import ALL, result_lines
from agentx.context.items import item_of
from agentx.context.measure import fitting, text_tokens
from agentx.errors import ToolFailed
from agentx.journal import Entry, Journal
from agentx.wires.messages import Message

PAGE = 40_000
"""Characters of one answer, where nothing else is asked."""
WORD = 24
"""Tokens for the word on the rest."""

MARKER = re.compile(r"r?(\d+)")


def restore(
    journal: Journal,
    id: str,  # noqa: A002  the tool's own word
    offset: int = 0,
    *,
    limit: int = PAGE,
    limit_tokens: int | None = None,
) -> str:
    """The text that *id* stands for, from character *offset*: at most *limit* characters and a word on the rest,
    and no more than *limit_tokens* (plain estimate) with that word, so that nothing of a page is clipped.

    *id* is that of a tool call (`c3_1`), or a marker's (`r12`: the journal's entry 12); `list` gives the names of
    all results. Raises ToolFailed.
    """
    name = id.strip().strip("`")
    text = _all_names(journal) if name == ALL else _whole(journal, _find(journal, name))
    if offset < 0 or (offset >= len(text) and offset > 0):
        raise ToolFailed(
            f"{id}: offset {offset:,} is outside its {len(text):,} characters", hint=f"use 0 to {len(text) - 1}"
        )
    page = text[offset : offset + max(1, limit)]
    if limit_tokens is not None and text_tokens(page) > limit_tokens - WORD:
        page = page[: max(1, fitting(page, limit_tokens - WORD))]
    end = offset + len(page)
    if end < len(text):
        page += f"\n[characters {offset:,} to {end:,} of {len(text):,}; go on with offset {end}]"
    return page


def restored_seq(journal: Journal, id: str) -> int | None:  # noqa: A002  the tool's own word
    """The journal's entry that *id* stands for; None for the list of all. Raises ToolFailed."""
    name = id.strip().strip("`")
    return None if name == ALL else _find(journal, name).seq


def _all_names(journal: Journal) -> str:
    items = [item for entry in journal.read(types=("reply", "tool.ended")) if (item := item_of(entry))]
    return "\n".join(result_lines(items)) or "(there is none)"


def _find(journal: Journal, name: str) -> Entry:
    rows = journal.query(
        "select seq from entries where type = 'tool.ended' and json_extract(data, '$.id') = ?"
        " order by seq desc limit 1",
        (name,),
    )
    marked = MARKER.fullmatch(name)
    seq = rows[0][0] if rows else int(marked[1]) if marked and len(marked[1]) < 18 else None
    entries = journal.read(seq - 1, limit=1) if seq else []
    if not entries or entries[0].seq != seq or "message" not in (entries[0].payload or {}):
        raise ToolFailed(
            f"{name}: nothing has this id", hint=f"ids stand in markers, such as `r12`; `{ALL}` names all"
        )
    return entries[0]


def _whole(journal: Journal, entry: Entry) -> str:
    payload = entry.payload or {}
    message = Message.from_json(payload["message"])
    if where := payload.get("whole"):
        # A state folder may have been moved since: the file still lies beside its journal.
        for file in (Path(where), journal.file.parent / "output" / Path(where).name):
            try:
                return file.read_text("utf-8", "replace")
            except OSError:
                continue
        return f"{message.text}\n[the whole text is gone from {where}]"
    calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
    return f"{message.text}{calls}"
