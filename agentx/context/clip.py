"""A text that is too long keeps its head and its tail, and says how the rest can be read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agentx.context.budget import Budget
from agentx.context.measure import fitting, text_tokens
from agentx.errors import StateError

CLIP_SHARE = 0.2
CLIP_MOST = 25_000
SMALLEST_CLIP = 48
"""Tokens; below that nothing but the note would be left."""

SHORT_VALUE = 60
"""Characters of an argument that stays when the others are left out, such as a path."""


@dataclass(frozen=True, slots=True)
class Clipped:
    text: str
    clipped: bool


def result_limit(budget: Budget, *, factor: float = 1.0, share: float = CLIP_SHARE, most: int = CLIP_MOST) -> int:
    """The tokens (plain estimate) that one tool result may have in the conversation. *factor* is what estimates
    are wrong by on the link that reads it; where they are too high, that gives no more room."""
    return max(SMALLEST_CLIP, int(min(most, budget.usable * share) / max(1.0, factor)))


def clip(text: str, limit_tokens: int, *, restore_id: str | None = None) -> Clipped:
    """*text*, or its head and tail with a note between them: at most *limit_tokens* (never fewer than 48).

    *restore_id* is what `restore_tool_result` takes for the whole text; without one the note only tells the size.
    """
    limit = max(SMALLEST_CLIP, limit_tokens)
    if text_tokens(text) <= limit:
        return Clipped(text, False)
    half = (limit - _note_tokens(len(text), restore_id) - 4) // 2
    head = text[: fitting(text, half)]
    backwards = text[: -max(1, half * 4) - 1 : -1]
    tail = backwards[: fitting(backwards, half)][::-1]
    head = _to_line_end(head)
    tail = _to_line_end(tail[::-1])[::-1]
    left_out = len(text) - len(head) - len(tail)
    return Clipped(f"{head}\n{_note(left_out, restore_id)}\n{tail}", True)


def spill(folder: Path, text: str) -> Path:
    """Keep the whole *text* in *folder*, under the hash of its content. Raises StateError."""
    data = text.encode("utf-8", "replace")
    file = folder / f"{hashlib.sha256(data).hexdigest()[:32]}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            half_written = folder / f".{file.name}.{os.getpid()}"
            half_written.write_bytes(data)
            half_written.replace(file)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space" if full else "make it a folder that can be written"
        raise StateError(
            f"{folder}: cannot keep a tool result: {error.strerror}", hint=f"{hint}, then `agentx resume JOB`"
        ) from error
    return file


def shorten_arguments(arguments: str, limit_tokens: int) -> str:
    """The JSON text of a call's arguments with its long strings cut, still one JSON object. Of what is nested too
    deeply to be walked only the short values at the top stay."""
    if text_tokens(arguments) <= limit_tokens:
        return arguments
    try:
        value: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        for length in (800, 200, 80, 30):
            try:
                short = json.dumps(_shortened(cast(Any, value), length), ensure_ascii=False)
            except RecursionError:
                break
            if text_tokens(short) <= limit_tokens:
                return short
        scalars = {key: one for key, one in cast("dict[str, Any]", value).items() if _is_short(one)}
        short = json.dumps(scalars | {"left_out": f"{len(arguments):,} characters"}, ensure_ascii=False)
        if text_tokens(short) <= limit_tokens:
            return short
    return json.dumps({"left_out": f"{len(arguments):,} characters"})


def _is_short(value: Any) -> bool:
    return isinstance(value, int | float | str) and len(str(value)) <= SHORT_VALUE


def _shortened(value: Any, length: int) -> Any:
    if isinstance(value, str):
        if len(value) <= length + 30:
            return value
        return f"{value[:length]}... [{len(value) - length:,} characters left out]"
    if isinstance(value, dict):
        return {key: _shortened(item, length) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_shortened(item, length) for item in cast(list[Any], value)]
    return value


def _note(left_out: int, restore_id: str | None) -> str:
    how = f"; read them with restore_tool_result, id `{restore_id}`" if restore_id else ""
    return f"[{left_out:,} characters left out here{how}]"


def _note_tokens(length: int, restore_id: str | None) -> int:
    return text_tokens(_note(length, restore_id)) + 2


def _to_line_end(text: str) -> str:
    """*text* without its last, broken line, where that costs at most a fifth of it."""
    end = text.rfind("\n")
    return text[:end] if end >= len(text) * 0.8 else text
