"""The readable words of an error body: JSON in JSON, flat and wrapped shapes, and events of a broken stream.

What a server echoes of the prompt is left out: only fields that carry an error's own words are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

MOST_LEVELS = 3
"""JSON inside a JSON text, inside a JSON text: deeper does not occur (facts: windows, section 7)."""
DEEPEST = 12
LONGEST = 65_536

WORDS = frozenset(
    (
        *("error", "errors", "message", "msg", "detail", "details", "description", "title", "reason", "raw"),
        *("code", "type", "param", "error_type", "error_code", "innererror", "cause"),
        *("metadata", "data", "response"),
    )
)
"""Names of fields that carry an error's own words."""


@dataclass(frozen=True, slots=True)
class ErrorText:
    """`text` holds every word of the error, a line for each; `numbers` its whole-number fields by name."""

    text: str
    numbers: dict[str, int]


def error_text(body: str) -> ErrorText:
    """What *body* says, whatever it is wrapped in. Never raises."""
    texts: list[str] = []
    numbers: dict[str, int] = {}
    for value in _documents(body[:LONGEST]):
        _collect(value, texts, numbers, MOST_LEVELS, 0)
    return ErrorText("\n".join(dict.fromkeys(texts)), numbers)


def _documents(body: str) -> Iterator[Any]:
    """The body as JSON; else the data of its stream events; else itself."""
    whole = _json(body)
    if whole is not None:
        yield whole
        return
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    events = [value for value in map(_json, lines) if value is not None]
    yield from events
    if not events:
        yield body


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _collect(value: Any, texts: list[str], numbers: dict[str, int], levels: int, depth: int) -> None:
    if depth > DEEPEST:
        return
    if isinstance(value, str):
        inner = _json(value) if levels and value.lstrip()[:1] in ("{", "[") else None
        if inner is None:
            # A proxy may put JSON into the middle of a sentence: its quotes are then escaped.
            texts.append(value.replace('\\"', '"'))
        else:
            _collect(inner, texts, numbers, levels - 1, depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _collect(item, texts, numbers, levels, depth + 1)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            if isinstance(item, int) and not isinstance(item, bool):
                numbers.setdefault(name, item)
                if name == "code":
                    texts.append(str(item))
            elif name in WORDS:
                _collect(item, texts, numbers, levels, depth + 1)
