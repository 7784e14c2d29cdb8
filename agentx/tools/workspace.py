"""The folder that a job works in: every path of a tool goes through here, and nothing outside it is reached."""

from __future__ import annotations

import os
import re
import stat
from difflib import get_close_matches
from pathlib import Path

from agentx.errors import ToolFailed

CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Workspace:
    """`root` is the folder with all symlinks resolved."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def path(self, text: str) -> Path:
        """The real path of *text*. Raises ToolFailed when it is empty, odd, or leads outside."""
        if not text.strip():
            raise ToolFailed("the path is empty", hint="paths are relative to the workspace: `.` is the workspace")
        if CONTROL.search(text):
            raise ToolFailed("the path holds control characters")
        if not os.path.lexists(self.root / text):  # small models write blanks around names
            text = text.strip()
        try:
            real = (self.root / text).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolFailed(f"`{text}`: the path cannot be followed") from error
        if not real.is_relative_to(self.root):
            raise ToolFailed(f"`{text}` leads outside the workspace: refused", hint=self._inside(text))
        return real

    def name(self, path: Path) -> str:
        """*path* as the model writes it: relative to the workspace."""
        return path.relative_to(self.root).as_posix()

    def writable(self, text: str) -> Path:
        """The real path of *text*, for writing. Raises ToolFailed for a folder and for what runs later."""
        path = self.path(text)
        parts = [part.lower() for part in path.relative_to(self.root).parts]
        if ".git" in parts and set(parts[parts.index(".git") + 1 :][:1]) & {"hooks", "config"}:
            raise ToolFailed(f"`{text}` holds what git runs: writing it is refused")
        if parts and parts[-1] == "agentx.yaml":
            raise ToolFailed(f"`{text}` holds the settings of agentx: writing it is refused")
        if path.is_dir():
            raise ToolFailed(f"`{text}` is a folder: give the path of a file")
        if path.exists() and not path.is_file():
            raise ToolFailed(f"`{text}` is not a regular file")
        return path

    def file(self, text: str) -> Path:
        """The real path of an existing regular file. Raises ToolFailed that names what is close."""
        path = self.path(text)
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise ToolFailed(f"`{text}` does not exist", hint=self._closest(path)) from None
        except OSError as error:
            raise ToolFailed(f"`{text}`: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            hint = f'list it with list_files: pattern "*", path "{self.name(path)}"'
            raise ToolFailed(f"`{text}` is a folder", hint=hint)
        if not stat.S_ISREG(mode):
            raise ToolFailed(f"`{text}` is not a regular file: reading it could hang")
        return path

    def _inside(self, text: str) -> str:
        inner = text.lstrip("/")
        parts = Path(inner).parts
        if inner and ".." not in parts and "~" not in parts and os.path.lexists(self.root / inner):
            return f"did you mean `{inner}`? paths are relative to the workspace"
        return "paths are relative to the workspace"

    def _closest(self, path: Path) -> str:
        folder, name = path.parent, path.name
        while not folder.is_dir() and folder != self.root:
            folder, name = folder.parent, folder.name
        try:
            names = sorted(entry.name for entry in os.scandir(folder))
        except OSError:
            names = []
        if len(names) > 5_000:
            names = names[:5_000]
        where = "the workspace" if folder == self.root else f"`{self.name(folder)}`"
        close = get_close_matches(name, names, n=3, cutoff=0.5)
        if close:
            return "closest: " + ", ".join(f"`{self.name(folder / each)}`" for each in close)
        if not names:
            return f"{where} is empty"
        listed = ", ".join(names[:10])
        return f"{where} holds {len(names)}: {listed}{', ...' if len(names) > 10 else ''}"
