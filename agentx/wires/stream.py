"""Bytes to events: server-sent events and lines, in whatever pieces they arrive. Pure, no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


class Lines:
    """Splits bytes at LF, CRLF or CR, whatever the pieces; what has no end yet waits."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def feed(self, data: bytes) -> list[str]:
        """The lines that *data* completes, without their ends."""
        after_cr = bool(self._waiting) and self._waiting[-1].endswith(b"\r")
        if b"\n" not in data and b"\r" not in data and not after_cr:
            self._waiting.append(data)
            return []
        pieces = b"".join((*self._waiting, data)).splitlines(keepends=True)
        # A CR at the very end may be the first half of a CRLF.
        self._waiting = [] if not pieces or pieces[-1].endswith(b"\n") else [pieces.pop()]
        return [_text(piece) for piece in pieces]

    def close(self) -> list[str]:
        """What was left without an end."""
        rest, self._waiting = b"".join(self._waiting), []
        return [_text(piece) for piece in rest.splitlines(keepends=True)]


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. `kind` is empty unless the server named it."""

    data: str
    kind: str = ""


class Events:
    """Server-sent events. Comments give nothing; a last event without its blank line still counts.

    Only `event` and `data` are read. A line that begins with `{` is taken as data: some servers write an error
    into a running stream without the field's name.
    """

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[str] = []
        self._kind = ""

    def feed(self, data: bytes) -> Iterator[Event]:
        for line in self._lines.feed(data):
            yield from self._line(line)

    def close(self) -> Iterator[Event]:
        for line in self._lines.close():
            yield from self._line(line)
        yield from self._line("")

    def _line(self, line: str) -> Iterator[Event]:
        if not line:
            data, kind = "\n".join(self._data), self._kind
            self._data, self._kind = [], ""
            if data:
                yield Event(data, kind)
        elif line.startswith("{"):
            self._data.append(line)
        else:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif name == "event":
                self._kind = value.strip()


def looks_like_events(start: bytes) -> bool:
    """Whether a body that starts so is a stream of events: content types are often wrong, this is not."""
    return start.startswith((b":", b"data:", b"event:", b"id:", b"retry:"))
