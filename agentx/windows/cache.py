"""windows.json: what servers said and endpoints proved, kept for the next start and shared by all jobs.

A hint, never a need: a file that cannot be read or written costs a question to the server, not the job.
"""

from __future__ import annotations

import contextlib
import fcntl
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
LOCK_TRIES = 50
LOCK_PAUSE_SECONDS = 0.01


class Cache:
    """Known facts by link identity. `warnings` says what went wrong with the file, once each."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.warnings: list[str] = []
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, Known] = {}

    def get(self, identity: str) -> Known:
        """What is known of *identity*; another job's news included."""
        self._reload()
        return self._known.get(identity, Known())

    def update(self, identity: str, change: Callable[[Known], Known]) -> Known:
        """Replace what is known of *identity* by *change* of the newest, here and in the file."""
        with self._locked():
            self._reload()
            known = change(self._known.get(identity, Known()))
            before = dict(self._known)
            if known == Known():
                self._known.pop(identity, None)
            else:
                self._known[identity] = known
            if self._known != before:
                self._write()
        return known

    def _reload(self) -> None:
        if self.file is None:
            return
        try:
            info = self.file.stat()
            stamp = (info.st_mtime_ns, info.st_size)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            if info.st_size > LARGEST_BYTES:
                raise ValueError("too large")
            self._known = _parsed(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except OSError as error:
            self._warn(f"{self.file}: cannot be read ({error.strerror}); windows are asked for again")
        except (ValueError, RecursionError):
            self._warn(f"{self.file}: is not a file of windows; it is ignored and will be written anew")

    def _write(self) -> None:
        if self.file is None or not self._known:
            return
        links = {identity: known.to_json() for identity, known in sorted(self._known.items())}
        text = json.dumps({"version": VERSION, "links": links}, indent=1)
        scratch: str | None = None
        try:
            handle, scratch = tempfile.mkstemp(dir=self.file.parent, prefix=".windows-")  # made 0600
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(scratch).replace(self.file)
            info = self.file.stat()
            self._stamp = (info.st_mtime_ns, info.st_size)
        except OSError as error:
            if scratch is not None:
                Path(scratch).unlink(missing_ok=True)
            self._warn(f"{self.file}: cannot be written ({error.strerror}); windows are kept for this run only")

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """Other jobs wait; after half a second the last writer wins: the file stays whole either way."""
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
