"""`write_file` and `edit_file`: a file is replaced whole and at once, or not at all."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from agentx.errors import ToolFailed
from agentx.tools.closest import closest_lines
from agentx.tools.tool import Arguments, Limits, Result, Spec
from agentx.tools.workspace import Workspace

WRITE = Spec(
    "write_file",
    "Write a whole file; makes folders, replaces an existing file. To change a part use edit_file.",
    "Write a file",
    "check",
    {
        "path": {"type": "string"},
        "content": {"type": "string"},
    },
    ("path", "content"),
)
EDIT = Spec(
    "edit_file",
    "Replace text in a file. `old` must be exactly what the file holds, blanks included, without the line numbers "
    "of read_file, and occur once: else give more lines around it, or `all`.",
    "Replace exact text",
    "check",
    {
        "path": {"type": "string"},
        "old": {"type": "string"},
        "new": {"type": "string"},
        "all": {"type": "boolean", "description": "replace every occurrence"},
    },
    ("path", "old", "new"),
    rare=("all",),
)

_numbers = itertools.count(1)


def replace_file(path: Path, data: bytes) -> None:
    """Write *data* to *path* so that a reader sees the old or the new file, never a part; the mode stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}-{next(_numbers)}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(data)
            if path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def encoded(text: str) -> bytes:
    """*text* as UTF-8. Raises ToolFailed for half characters, which JSON can carry and files cannot."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolFailed(f"the text holds half a character at position {error.start}") from error


def with_line_ends_of(existing: str, text: str) -> str:
    """*text* with `\\r\\n` where *existing* has nothing but these and *text* has none."""
    if "\r\n" in existing and "\r" not in text and existing.count("\n") == existing.count("\r\n"):
        return text.replace("\n", "\r\n")
    return text


class WriteFile:
    def __init__(self, workspace: Workspace, limits: Limits) -> None:
        self.spec = WRITE
        self._workspace = workspace
        self._limits = limits

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        path, text = self._workspace.writable(arguments["path"]), str(arguments["content"])
        name = self._workspace.name(path)
        there = path.exists()
        if there and path.stat().st_size <= self._limits.text_bytes:
            text = with_line_ends_of(path.read_bytes().decode("utf-8", "replace"), text)
        data = encoded(text)
        if len(data) > self._limits.text_bytes:
            raise ToolFailed(f"`{name}`: {len(data):,} bytes are too many: at most {self._limits.text_bytes:,}")
        replace_file(path, data)
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        done = "replaced" if there else "created"
        said = f"{done} `{name}`: {lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} bytes"
        return Result(said, True, size=len(said))


class EditFile:
    def __init__(self, workspace: Workspace, limits: Limits) -> None:
        self.spec = EDIT
        self._workspace = workspace
        self._limits = limits

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        path = self._workspace.file(arguments["path"])
        self._workspace.writable(arguments["path"])
        name = self._workspace.name(path)
        text = self._current(path, name)
        old, new = str(arguments["old"]), str(arguments["new"])
        if not old:
            raise ToolFailed("`old` is empty", hint="give the text to replace, or use write_file for a whole file")
        if old == new:
            raise ToolFailed("`old` and `new` are the same: nothing to change")
        old, new = with_line_ends_of(text, old), with_line_ends_of(text, new)
        places = line_numbers(text, old)
        if not places:
            raise ToolFailed(f"`old` does not occur in `{name}`; nothing was changed\n{closest_lines(text, old)}")
        if len(places) > 1 and not arguments.get("all", False):
            where = ", ".join(map(str, places[:10])) + (", ..." if len(places) > 10 else "")
            raise ToolFailed(
                f"`old` occurs {len(places)} times in `{name}` (lines {where}); nothing was changed",
                hint="give more of the lines around it, or set `all` to true",
            )
        replace_file(path, encoded(text.replace(old, new)))
        said = f"edited `{name}`: line {places[0]}"
        if len(places) > 1:
            said = f"edited `{name}`: {len(places)} places"
        return Result(said, True, size=len(said))

    def _current(self, path: Path, name: str) -> str:
        size = path.stat().st_size
        if size > self._limits.text_bytes:
            raise ToolFailed(f"`{name}` has {size:,} bytes, too many to edit: at most {self._limits.text_bytes:,}")
        try:
            return path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolFailed(f"`{name}` is not UTF-8 text: it cannot be edited") from error


def line_numbers(text: str, part: str) -> list[int]:
    """The line, from 1, of each place where *part* occurs in *text*, as `str.replace` finds them."""
    places: list[int] = []
    line, seen = 1, 0
    start = text.find(part)
    while start >= 0:
        line += text.count("\n", seen, start)
        places.append(line)
        seen = start
        start = text.find(part, start + len(part))
    return places
