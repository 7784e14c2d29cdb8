"""What an error body says, whatever its shape: flat or wrapped, JSON in JSON, an event of a stream, a page.

Gateways put the error of the provider behind them into a string of their own error (OpenRouter's `metadata.raw`,
Ollama's `error`, LiteLLM's `SomeError: {...}`), so strings are opened as well, up to three levels deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

DEPTH = 3
NESTING = 40
"""Deeper than this nothing is read: errors are flat, and Python's own stack ends."""
WORD_KEYS = frozenset(
    {"code", "type", "status", "reason", "error_type", "error_code", "quotaid", "error", "__type"}
)
MESSAGE_KEYS = ("error", "message", "detail", "error_message", "msg", "raw", "title")
ECHOES = frozenset({"input", "prompt", "messages", "content", "request", "failed_generation"})
"""Keys under which servers repeat what they were sent: those words are not the error's."""
MESSAGE_LIMIT = 300
HTTP_ERROR = re.compile("[45][0-9][0-9]")


@dataclass(frozen=True, slots=True)
class Said:
    """`words` are codes, types and reasons in lower case; `pairs` are all keys (lower case) with plain values.

    `message` is the innermost sentence meant for people, one line; `text` is everything that was said.
    """

    words: tuple[str, ...]
    pairs: tuple[tuple[str, str | int | float], ...]
    message: str
    text: str
    status: int | None
    """An HTTP status that stands in the body, as with errors that come after a 200."""
    is_error: bool
    """The body is an error object, not a page, plain text or a reply."""


def read(body: str) -> Said:
    """What *body* says. Never raises."""
    value = _opened(body.strip())
    pairs = tuple(_pairs(value, DEPTH)) if value is not None else ()
    words = tuple(dict.fromkeys(str(v).lower() for key, v in pairs if key in WORD_KEYS and _is_word(v)))
    strings = [str(v) for _, v in pairs if isinstance(v, str)]
    message = _message(value, DEPTH) if value is not None else _plain(body)
    text = "\n".join([*strings, "" if strings else body])
    return Said(words, pairs, one_line(message), text, _status(pairs), _is_error(value))


def one_line(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """*text* on one line, without control characters, at most *limit* characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def _opened(text: str) -> Any:
    """The JSON value in *text*: all of it, an event's `data:` line, or an object after some words; else None."""
    if not text or text.startswith("<"):
        return None
    starts = [0] if text[0] in "{[" else []
    starts += [found.end() for found in re.finditer(r"^data:\s*(?=[{\[])", text, re.MULTILINE)]
    brace = text.find("{")
    if brace > 0:
        starts.append(brace)
    for start in starts:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return cast("Any", value)
    return None


def _pairs(value: Any, depth: int, key: str = "", nesting: int = 0) -> Iterator[tuple[str, str | int | float]]:
    if nesting > NESTING:
        return
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            if name.lower() not in ECHOES:
                yield from _pairs(inner, depth, name.lower(), nesting + 1)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _pairs(inner, depth, key, nesting + 1)
    elif isinstance(value, str):
        inner = _opened(value.strip()) if depth > 0 and "{" in value else None
        if inner is not None:
            yield from _pairs(inner, depth - 1, key, nesting + 1)
        yield key, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, value


def _message(value: Any, depth: int, nesting: int = 0) -> str:
    """The innermost sentence: a nested error says more than the sentence around it."""
    if nesting > NESTING:
        return ""
    below = nesting + 1
    if isinstance(value, list):
        return next((found for item in cast("list[Any]", value) if (found := _message(item, depth, below))), "")
    if isinstance(value, str):
        inner = _opened(value.strip()) if depth > 0 and "{" in value else None
        return (_message(inner, depth - 1, below) if inner is not None else "") or value
    if not isinstance(value, Mapping):
        return ""
    data = cast("Mapping[str, Any]", value)
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and (found := _message(cast("Any", metadata), depth, below)):
        return found
    for name in MESSAGE_KEYS:
        if name in data and (found := _message(data[name], depth, below)):
            return found
    return ""


def _is_error(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    data = cast("Mapping[str, Any]", value)
    named = bool(data.get("error") or data.get("errors")) or data.get("type") == "error"
    return named or (isinstance(data.get("message"), str) and "choices" not in data)


def _plain(body: str) -> str:
    """The words of a page or of plain text."""
    title = re.search(r"<title[^>]*>(.*?)</title>", body, re.IGNORECASE | re.DOTALL)
    return title.group(1) if title else re.sub(r"<[^>]*>", " ", body)


def _is_word(value: str | int | float) -> bool:
    return not isinstance(value, str) or (0 < len(value) < 120 and " " not in value)


def _status(pairs: tuple[tuple[str, str | int | float], ...]) -> int | None:
    for key, value in pairs:
        if key in ("code", "status", "status_code") and HTTP_ERROR.fullmatch(str(value)):
            return int(value)
    return None
