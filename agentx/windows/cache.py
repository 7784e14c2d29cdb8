"""windows.json: what servers said and endpoints proved, kept for the next start and shared by all jobs.

A hint, never a need: a file that cannot be read or written costs a question to the server, not the job. One that
is no such file is set aside under another name, since somebody may want back what stood in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

from agentx.windows.known import Known, known_from

VERSION = 1
LARGEST_BYTES = 4 << 20
MOST_LINKS = 2000
"""More are never in use: the newest are kept, so that the file does not grow for ever."""
LOCK_TRIES = 100
LOCK_PAUSE_SECONDS = 0.01


class Cache:
    """Known facts by link identity. `warnings` says what went wrong with the file, once each."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.warnings: list[str] = []
        self._stamp: tuple[int, int, int] | None = None
        self._known: dict[str, Known] = {}
        self._unread = False
        """The file may hold what is not known here: it is not written over."""

    def get(self, identity: str) -> Known:
        """What is known of *identity*; another job's news included."""
        if not self._reload():
            with self._locked():
                self._set_aside()
        return self._known.get(identity, Known())

    def update(self, identity: str, change: Callable[[Known], Known]) -> Known:
        """Replace what is known of *identity* by *change* of the newest, here and in the file."""
        with self._locked():
            self._set_aside()
            before = self._known.get(identity, Known())
            known = change(before)
            if known == Known():
                self._known.pop(identity, None)
            else:
                self._known[identity] = known
            if known != before:
                self._write()
        return known

    def _reload(self) -> bool:
        """Read the file when it has changed. False when it is no file of windows."""
        if self.file is None:
            return True
        try:
            stamp = _stamp(self.file)
            if stamp == self._stamp:
                return True
            if stamp[1] > LARGEST_BYTES:
                return False
            self._known = _parsed(self.file.read_text(encoding="utf-8"))
            self._stamp, self._unread = stamp, False
        except FileNotFoundError:
            self._unread = False
        except OSError as error:
            self._unread = True
            self._warn(f"{self.file}: cannot be read ({error.strerror}); windows are asked for again")
        except (ValueError, RecursionError):
            return False
        return True

    def _set_aside(self) -> None:
        """Read the file anew; rename it when it is no file of windows. Only under the lock: another job may just
        have done it and have written a good one since."""
        if self.file is None or self._reload():
            return
        taken = (self.file.with_name(f"{self.file.name}.broken-{number}") for number in itertools.count(1))
        place = next(place for place in taken if not place.exists())
        try:
            self.file.rename(place)
        except OSError as error:
            self._unread = True
            with contextlib.suppress(OSError):
                self._stamp = _stamp(self.file)
            self._warn(f"{self.file}: is not a file of windows and cannot be set aside ({error.strerror})")
        else:
            self._unread = False
            self._warn(
                f"{self.file}: was not a file of windows; it is now {place.name}, and windows are asked for"
            )

    def _write(self) -> None:
        if self.file is None or self._unread:
            return
        if len(self._known) > MOST_LINKS:
            newest = sorted(self._known, key=lambda identity: self._known[identity].newest)[-MOST_LINKS:]
            self._known = {identity: self._known[identity] for identity in newest}
        links = {identity: known.to_json() for identity, known in sorted(self._known.items())}
        text = json.dumps({"version": VERSION, "links": links}, indent=1)
        scratch: str | None = None
        try:
            handle, scratch = tempfile.mkstemp(dir=self.file.parent, prefix=".windows-")  # made 0600
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(scratch).replace(self.file)
            self._stamp = _stamp(self.file)
        except OSError as error:
            if scratch is not None:
                Path(scratch).unlink(missing_ok=True)
            self._warn(f"{self.file}: cannot be written ({error.strerror}); windows are kept for this run only")

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """Other jobs wait; after a second the last writer wins: the file stays whole either way."""
        with contextlib.ExitStack() as stack:
            if self.file is not None:
                with contextlib.suppress(OSError):
                    self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    lock = stack.enter_context(self.file.with_suffix(".lock").open("a"))
                    _take(lock.fileno())
            yield

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def _stamp(file: Path) -> tuple[int, int, int]:
    """What changes with every replacement of *file*. Raises OSError."""
    info = file.stat()
    return info.st_mtime_ns, info.st_size, info.st_ino


def _take(handle: int) -> None:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            return


def _parsed(text: str) -> dict[str, Known]:
    """Raises ValueError when *text* is no such file."""
    data: Any = json.loads(text)
    links: Any = cast("dict[str, Any]", data).get("links") if isinstance(data, dict) else None
    if not isinstance(links, dict):
        raise ValueError("no links")
    entries = cast("dict[str, Any]", links)
    return {identity: known_from(entry) for identity, entry in entries.items()}
