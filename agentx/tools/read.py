"""`read_file`: text with line numbers, images as images, and clear words for everything else."""

from __future__ import annotations

import asyncio
import base64
import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agentx.errors import ToolFailed
from agentx.tools.tool import Arguments, Limits, Result, Spec
from agentx.tools.workspace import Workspace
from agentx.wires.messages import Image

SNIFFED = 8_192
COUNTED_BYTES = 50_000_000
"""In larger files the lines after the shown ones are not counted."""

SPEC = Spec(
    "read_file",
    "Read a file. Text comes with line numbers (`12<tab>text`; number and tab are not part of the file), png, "
    "jpg, gif and webp as images. At most 2,000 lines a call. For folders use list_files.",
    "Read a file",
    "read",
    {
        "path": {"type": "string", "description": "relative to the workspace"},
        "offset": {"type": "integer", "description": "first line, from 1"},
        "limit": {"type": "integer", "description": "number of lines"},
    },
    ("path",),
)


def media_type(start: bytes) -> str | None:
    """The media type of an image by its first bytes; None when it is none that models take."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


class ReadFile:
    def __init__(self, workspace: Workspace, limits: Limits) -> None:
        self.spec = SPEC
        self._workspace = workspace
        self._limits = limits

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        path = self._workspace.file(arguments["path"])
        return await asyncio.to_thread(self._read, path, arguments)

    def _read(self, path: Path, arguments: Arguments) -> Result:
        name = self._workspace.name(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(SNIFFED)
            file.seek(0)
            if kind := media_type(start):
                return self._image(file, name, kind, size)
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ToolFailed(f"`{name}` is UTF-16 text", hint=f"convert it: `iconv -f UTF-16 -t UTF-8 {name}`")
            if b"\0" in start:
                raise ToolFailed(f"`{name}` is a binary file of {size:,} bytes: it cannot be read as text")
            offset = max(1, arguments.get("offset", 1))
            limit = min(max(1, arguments.get("limit", self._limits.read_lines)), self._limits.read_lines)
            return self._text(file, name, size, offset, limit)

    def _image(self, file: BinaryIO, name: str, kind: str, size: int) -> Result:
        if size > self._limits.image_bytes:
            limit = self._limits.image_bytes
            raise ToolFailed(f"`{name}` is an image of {size:,} bytes, too large to be seen: at most {limit:,}")
        data = base64.b64encode(file.read()).decode("ascii")
        return Result(f"[{name}: {kind}, {size:,} bytes]", True, images=(Image(kind, data),), size=size)

    def _text(self, file: BinaryIO, name: str, size: int, offset: int, limit: int) -> Result:
        if size == 0:
            return Result(f"[`{name}` is empty]", True)
        part = read_part(file, offset, limit, self._limits.line_chars, self._limits.read_chars)
        if not part.lines:
            raise ToolFailed(f"`{name}` has {part.last:,} lines: there is no line {offset:,}")
        first, last = offset, offset + len(part.lines) - 1
        text = "\n".join(f"{number}\t{line}" for number, line in enumerate(part.lines, first))
        if part.more:
            total = ""
            if size <= COUNTED_BYTES:
                total = f" of {last + count_lines(file):,}"
            text += f"\n[lines {first:,} to {last:,}{total}; read on with offset={last + 1}]"
        return Result(text, True, size=len(text.encode("utf-8")))


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a file. `last` is the number of the last line seen; `more` says that others follow."""

    lines: tuple[str, ...]
    last: int
    more: bool


def read_part(file: BinaryIO, offset: int, limit: int, line_chars: int, chars: int) -> Part:
    """The lines from *offset* on, as many as *limit* and *chars* allow, each cut at *line_chars*.

    *file* is left right behind them. Memory is bounded, also for one endless line.
    """
    shown: list[str] = []
    room = chars
    number = 0
    for piece, left_out in bounded_lines(file, 4 * line_chars):
        number += 1
        if number < offset:
            continue
        line = piece.decode("utf-8", "replace").rstrip("\r\n")
        if number == 1:
            line = line.removeprefix("\ufeff")
        if left_out or len(line) > line_chars:
            line = f"{line[:line_chars]} [... the line goes on]"
        shown.append(line)
        room -= len(line)
        if len(shown) >= limit or room <= 0:
            more = bool(file.read(1))
            if more:
                file.seek(-1, 1)
            return Part(tuple(shown), number, more)
    return Part(tuple(shown), number, False)


def bounded_lines(file: BinaryIO, longest: int) -> Iterator[tuple[bytes, bool]]:
    """Each line, at most *longest* bytes of it, and whether some of it was left out."""
    while piece := file.readline(longest):
        left_out = False
        rest = piece
        while not rest.endswith(b"\n") and (rest := file.readline(1 << 20)):
            left_out = left_out or bool(rest.strip(b"\r\n"))
        yield piece, left_out


def count_lines(file: BinaryIO) -> int:
    """How many lines follow in *file*."""
    count, last = 0, b"\n"
    while block := file.read(1 << 20):
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")
