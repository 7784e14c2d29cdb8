"""Where each entry stands in LiteLLM's catalogue file: kept in the cache folder, as finding that out takes 30 ms.

To parse all of the file would take as long, and 30 MB. The kept index is of one very file, whose place, time and
size stand in it, with a sum over all. One that is of another file or broken is made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

DECODER = json.JSONDecoder()
OPENING = re.compile(rb'\s*\{(\s*)(?=")')
FORMAT = "agentx catalogue index 1"


@dataclass(frozen=True, slots=True)
class Index:
    """`places` has a line for each entry: its key, and from which byte to which it stands in the file, with tabs
    in between; a line feed goes before the first. It is searched as it is: to make a table of it takes 10 ms.

    `parsed` holds the entries of a file that is not written one key a line.
    """

    places: str = ""
    parsed: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def entry(self, file: Path | None, key: str) -> Mapping[str, Any] | None:
        """The object at *key*; None where there is none, or the file is another one by now."""
        found = self.parsed.get(key)
        if (place := self._place(key)) and file:
            try:
                with file.open("rb") as stream:
                    stream.seek(place[0])
                    found, _ = DECODER.raw_decode(stream.read(place[1] - place[0]).decode("utf-8"))
            except (OSError, ValueError, RecursionError):
                return None
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None

    def _place(self, key: str) -> tuple[int, int] | None:
        if not key.isprintable() or (at := self.places.find(f"\n{key}\t")) < 0:
            return None
        start, end = self.places[at + len(key) + 2 : self.places.index("\n", at + 1)].split("\t")
        return int(start), int(end)


def index_of(file: Path, kept: Path | None) -> Index:
    """The index of *file*: the one that is *kept*, else made and kept. Empty when the file cannot be read."""
    try:
        info = file.stat()
    except OSError:
        return Index()
    stamp = f"{FORMAT}\t{file}\t{info.st_mtime_ns}\t{info.st_size}"
    if kept is None:
        return read_index(file)
    if (places := _load(kept, stamp)) is not None:
        return Index(places)
    index = read_index(file)
    if index.places:
        _save(kept, stamp, index.places)
    return index


def read_index(file: Path) -> Index:
    """The index of *file*, made; an empty one when it cannot be read."""
    try:
        data = file.read_bytes()
        opening = OPENING.match(data)
        if opening is None:
            return Index()
        if not opening[1]:
            whole = json.loads(data)
            return Index("", cast("Mapping[str, Any]", whole) if isinstance(whole, dict) else {})
    except (OSError, ValueError, RecursionError):
        return Index()
    # What stands before the first key stands before every key of the outermost object, and before no other.
    keys = re.compile(re.escape(opening[1]) + rb'"((?:[^"\\\n]|\\.)*)"\s*:\s*(?=\{)')
    found = list(keys.finditer(data))
    ends = [*(match.start() for match in found[1:]), len(data)]
    named = ((_text(match[1]), match.end(), end) for match, end in zip(found, ends, strict=True))
    return Index("\n" + "".join(f"{key}\t{start}\t{end}\n" for key, start, end in named if key.isprintable()))


def _load(kept: Path, stamp: str) -> str | None:
    """The places in *kept*; None where it is not the whole index of the very file that *stamp* names."""
    try:
        head, _, places = kept.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    return f"\n{places}" if head == f"{stamp}\t{_sum(places)}" else None


def _save(kept: Path, stamp: str, places: str) -> None:
    scratch: str | None = None
    with contextlib.suppress(OSError):
        try:
            kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, scratch = tempfile.mkstemp(dir=kept.parent, prefix=".catalogue-")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(f"{stamp}\t{_sum(places[1:])}{places}")
            Path(scratch).replace(kept)
        except OSError:
            if scratch is not None:
                Path(scratch).unlink(missing_ok=True)


def _sum(places: str) -> int:
    return zlib.crc32(places.encode())


def _text(quoted: bytes) -> str:
    """A key without its escapes; one that is no text is kept as it stands, where nobody asks for it."""
    if b"\\" not in quoted:
        return quoted.decode("utf-8", "replace")
    try:
        return str(json.loads(b'"' + quoted + b'"'))
    except ValueError:
        return quoted.decode("utf-8", "replace")
