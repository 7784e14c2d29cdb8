"""Who owns a job: a lock that the kernel frees when the owner dies, and the owner's pid with what proves it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from agentx.errors import StateError

TRIES, PAUSE_SECONDS = 20, 0.02
"""Who only looks whether the lock is held holds it for a moment himself: that must not keep an owner out."""


class JobLock:
    """Held for the life of the process that runs a job. Python opens files close-on-exec: no tool inherits it."""

    def __init__(self, file: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.file = file
        self._sleep = sleep
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises StateError when another process holds it, or when the file cannot be made."""
        job = self.file.parent.name
        try:
            fd = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"{self.file}: cannot be locked: {error.strerror}") from error
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if not left:
                    os.close(fd)
                    raise StateError(
                        f"{job}: another process runs this job", hint=f"watch it with `agentx logs -f {job}`"
                    ) from error
                self._sleep(PAUSE_SECONDS)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> JobLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def held(file: Path) -> bool:
    """True while some process owns the lock *file*; those who ask at the same time do not see each other."""
    try:
        fd = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, and what tells it from a later one with the same pid: boot id and start time."""

    pid: int
    boot: str
    started: str

    @classmethod
    def from_json(cls, text: str) -> Owner | None:
        """The owner that a journal keeps; None when it keeps nothing that can be read."""
        try:
            data: Any = json.loads(text)
            return cls(int(data["pid"]), str(data["boot"]), str(data["started"]))
        except (ValueError, TypeError, KeyError):
            return None

    @classmethod
    def current(cls) -> Owner:
        pid = os.getpid()
        return cls(pid, _boot_id(), _start_time(pid))

    @property
    def alive(self) -> bool:
        """True when this very process still runs."""
        return self.boot == _boot_id() and bool(self.started) and self.started == _start_time(self.pid)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # not Linux
        return ""


def _start_time(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        try:
            os.kill(pid, 0)
        except OSError:
            return ""
        return "alive"
    return "" if fields[0] == "Z" else fields[19]
