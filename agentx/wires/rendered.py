"""What was rendered for a message is kept: with a long history a turn costs no more than its new messages.

Messages are values that never change, so their identity tells whether one was rendered before. What is joined from
kept pieces is byte for byte what `compact` makes of the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
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
    made: Json
    rules: Hashable
    text: bytes = b""
    """Its bytes behind a comma; empty until they are wanted."""
    request: int = 0
    """The last one that it was sent with."""


class Rendered:
    """What the last requests of one wire were made of."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.size = 0
        self._most = most_bytes
        self._pieces: dict[Hashable, dict[int, Piece]] = {}
        self._made: dict[int, Piece] = {}
        self._request = 0

    def once(self, rules: Hashable, make: Callable[[Source], Json]) -> Callable[[Source], Json]:
        """*make*, but asked once for each message while its result is kept. *rules* stand for everything besides
        the message that the result depends on. What comes back must not be changed in place."""
        pieces = self._pieces.setdefault(rules, {})

        def made_of(source: Source) -> Json:
            piece = pieces.get(id(source))
            if piece is None:
                piece = pieces[id(source)] = Piece(source, make(source), rules)
                self._made[id(piece.made)] = piece
            return piece.made

        return made_of

    def body(self, fields: Mapping[str, Any]) -> bytes:
        """`compact(fields)`, of which `messages` are joined from what is kept."""
        self._request += 1
        parts: list[bytes] = []
        for name, value in fields.items():
            parts.append(b"," + compact(name) + b":")
            if name == "messages":
                parts += self._list(value)
            else:
                parts.append(compact(value))
        parts[:1] = [b"{" + parts[0][1:]]
        parts.append(b"}")
        if self.size > self._most:
            self._keep_only_the_last()
        return b"".join(parts)  # once: copying a long history is most of what is left to do

    def _list(self, messages: Sequence[Json]) -> list[bytes]:
        texts = [self._text(message) for message in messages]
        texts[:1] = [b"[" + text[1:] for text in texts[:1]] or [b"["]
        texts.append(b"]")
        return texts

    def _text(self, message: Json) -> bytes:
        """A comma and the message."""
        piece = self._made.get(id(message))
        if piece is None:  # made for this request alone
            return b"," + compact(message)
        if not piece.text:
            piece.text = b"," + compact(message)
            self.size += len(piece.text)
        piece.request = self._request
        return piece.text

    def _keep_only_the_last(self) -> None:
        kept = [piece for piece in self._made.values() if piece.request == self._request]
        self._made = {id(piece.made): piece for piece in kept}
        self._pieces = {}
        for piece in kept:
            self._pieces.setdefault(piece.rules, {})[id(piece.source)] = piece
        self.size = sum(len(piece.text) for piece in kept)
