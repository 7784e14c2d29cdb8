"""Keeps what a command prints: head and tail in memory whatever comes, the whole on disk up to a limit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from agentx.tools.cleaning import Cleaner, Redactor, with_line_ends
from agentx.tools.noise import Noise


class Store:
    """The job's folder of whole outputs, with the bytes that may still be written to it."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self._limit = limit
        self._left: int | None = None

    def open(self, name: str) -> BinaryIO | None:
        """A new file that only the user can read; None when it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError:
            return None
        return os.fdopen(handle, "wb")

    def take(self, count: int) -> bool:
        """Whether *count* more bytes may be written."""
        if self._left is None:
            used = sum(entry.stat().st_size for entry in os.scandir(self.folder) if entry.is_file())
            self._left = self._limit - used
        if count > self._left:
            return False
        self._left -= count
        return True


class Capture:
    """One command's output. `total` counts raw bytes; `whole` is the file when there is one.

    What *noise* leaves out is not shown; the file has it.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        redactor: Redactor,
        *,
        head: int,
        tail: int,
        eager: bool,
        noise: Noise | None = None,
    ) -> None:
        self._store = store
        self._name = name
        self._noise = noise
        self._cleaner = Cleaner(redactor, keep_returns=noise is not None)
        self._head_chars = head
        self._tail_chars = tail
        self._head = ""
        self._tail = ""
        self._missing = 0
        self._file: BinaryIO | None = None
        self.total = 0
        self.whole: Path | None = None
        self.kept = True
        if eager or noise is not None:
            self._spill("")

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        self._add(self._cleaner.feed(data))

    def finish(self) -> None:
        """No more comes; the file is closed."""
        self._add(self._cleaner.finish())
        if self._file is not None:
            self._file.close()
            self._file = None

    def text(self, restore: str) -> str:
        """Head and tail, and between them what is missing and that *restore* brings it back."""
        if self._noise is not None:
            self._show(self._noise.flush())
        back = f"; {restore}" if self.whole is not None else ""
        cut = "" if self.kept else " (the disk limit was reached: the end of it was not kept)"
        noise = self._noise.removed if self._noise else 0
        said = f"\n[{noise:,} characters of progress and repetition left out{back}{cut}]" if noise else ""
        if not self._missing:
            return self._head + self._tail + said
        return f"{self._head}\n[... {self._missing:,} characters left out{back}{cut} ...]\n{self._tail}{said}"

    @property
    def partial(self) -> bool:
        return self._missing > 0 or bool(self._noise and self._noise.removed)

    def take(self, restore: str) -> str:
        """The text since the last take."""
        text = self.text(restore)
        self._head = self._tail = ""
        self._missing = 0
        if self._noise is not None:
            self._noise.removed = 0
        return text

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._noise is None:
            self._keep(text)
            self._show(text)
        else:
            self._write(with_line_ends(text))
            self._show(self._noise.feed(text))

    def _keep(self, text: str) -> None:
        if self.whole is not None:
            self._write(text)
        elif len(self._head) + len(self._tail) + len(text) > self._head_chars + self._tail_chars and self.kept:
            self._spill(self._head + self._tail + text)

    def _show(self, text: str) -> None:
        room = self._head_chars - len(self._head) if not self._tail else 0
        self._head, self._tail = self._head + text[:room], self._tail + text[room:]
        over = len(self._tail) - self._tail_chars
        if over > 0:
            self._missing += over
            self._tail = self._tail[over:]

    def _spill(self, text: str) -> None:
        self._file = self._store.open(self._name)
        if self._file is None:
            self.kept = False
            return
        self.whole = self._store.folder / self._name
        self._write(text)

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        data = text.encode("utf-8")
        try:
            if self._store.take(len(data)):
                self._file.write(data)
                self._file.flush()
                return
        except OSError:  # a full disk: what there is stays
            pass
        self.kept = False
        self._file.close()
        self._file = None
