"""What was rendered for a message is kept: with a long history a turn costs no more than its new messages.

Messages are values that never change, so their identity tells whether one was rendered before. What is joined from
kept pieces is byte for byte what `compact` makes of the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeVar

MOST_BYTES = 4 * 2**20
"""Beyond this only what the last request held is kept."""

Json = dict[str, Any]
Source = TypeVar("Source")


def compact(value: Any) -> bytes:
    """JSON without blanks. Half characters (lone surrogates from undecodable bytes) become `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@dataclass(slots=True)
class Piece:
    """One message and what was made of it. As both are held, nothing else can get their identities."""

    source: object
    made: Any
    rules: Hashable
    text: bytes = b""
    """Its bytes behind a comma; empty until they are wanted."""


@dataclass(frozen=True, slots=True)
class Run:
    """A whole list and what came of it: the next one mostly begins the same."""

    given: Sequence[Any] = ()
    made: list[Any] = field(default_factory=list[Any])


class Rendered:
    """What the last requests of one wire were made of."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.size = 0
        self._most = most_bytes
        self._pieces: dict[Hashable, dict[int, Piece]] = {}
        self._made: dict[int, Piece] = {}
        self._each: dict[Hashable, Run] = {}
        self._texts = Run()
        self._whole: dict[str, Piece] = {}

    def once(self, name: str, rules: Hashable, make: Callable[[], Any], source: object) -> Any:
        """What *make* makes of *source* for the field *name*; it is asked again only for another source or other
        *rules*. What comes back is not to be changed."""
        known = self._whole.get(name)
        if known is None or known.source is not source or known.rules != rules:
            known = self._whole[name] = Piece(source, make(), rules)
        return known.made

    def each(self, rules: Hashable, make: Callable[[Source], Json], sources: Sequence[Source]) -> list[Json]:
        """What *make* makes of each of *sources*; it is asked once for each while its result is kept. *rules*
        stand for everything besides a message that its result depends on. What comes back is not to be changed."""
        pieces, last = self._pieces.setdefault(rules, {}), self._each.get(rules, Run())
        known = _common(last.given, sources)
        made = last.made[:known]
        for source in sources[known:]:
            piece = pieces.get(id(source))
            if piece is None:
                piece = pieces[id(source)] = Piece(source, make(source), rules)
                self._made[id(piece.made)] = piece
            made.append(piece.made)
        self._each[rules] = Run(sources, made)
        return made[:]

    def body(self, fields: Mapping[str, Any]) -> bytes:
        """`compact(fields)`, of which `messages` are joined from what is kept."""
        parts: list[bytes] = []
        for name, value in fields.items():
            parts.append(b"," + compact(name) + b":")
            if name == "messages":
                parts += self._list(value)
            elif name in self._whole and value is self._whole[name].made:
                piece = self._whole[name]
                piece.text = piece.text or compact(value)
                parts.append(piece.text)
            else:
                parts.append(compact(value))
        parts[:1] = [b"{" + parts[0][1:]]
        parts.append(b"}")
        if self.size > self._most:
            self._keep_only_the_last()
        return b"".join(parts)  # once: copying a long history is most of what is left to do

    def _list(self, messages: Sequence[Json]) -> list[bytes]:
        known = _common(self._texts.given, messages)
        texts = self._texts.made[:known]
        texts += [self._text(message) for message in messages[known:]]
        self._texts = Run(messages, texts)
        return [b"[", *(text[1:] for text in texts[:1]), *texts[1:], b"]"]

    def _text(self, message: Json) -> bytes:
        """A comma and the message."""
        piece = self._made.get(id(message))
        if piece is None:  # made for this request alone
            return b"," + compact(message)
        if not piece.text:
            piece.text = b"," + compact(message)
            self.size += len(piece.text)
        return piece.text

    def _keep_only_the_last(self) -> None:
        last = set(map(id, self._texts.given))
        kept = [piece for made, piece in self._made.items() if made in last]
        self._made = {id(piece.made): piece for piece in kept}
        self._pieces, self._each = {}, {}
        for piece in kept:
            self._pieces.setdefault(piece.rules, {})[id(piece.source)] = piece
        self.size = sum(len(piece.text) for piece in kept)


def _common(before: Sequence[object], now: Sequence[object]) -> int:
    """How many things at the beginning of both are the very same."""
    same = map(is_, before, now)
    return next((place for place, one in enumerate(same) if not one), min(len(before), len(now)))
