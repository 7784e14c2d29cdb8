"""One command from its start to its very end: nothing of it is left running, whatever it does.

The process is waited for, not its pipe: a child that holds the pipe open must not hold the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentx.errors import ToolFailed
from agentx.tools.capture import Capture
from agentx.tools.launch import MARK, Launch

PROC = Path("/proc")
NATURAL_END = 0.2
"""Seconds that children get to end by themselves after the command: `>(tee log)` still writes."""
DRAINED_BLOCKS = 64

REAPED = 10.0
"""Seconds to wait for a killed process; one that hangs in the kernel is left to it."""

Outcome = Literal["exited", "timed_out", "flooded", "stopped"]


@dataclass(frozen=True, slots=True)
class Ended:
    """What had to be ended by force: the names of the programs, and whether TERM was not enough."""

    names: tuple[str, ...] = ()
    killed: bool = False

    def __bool__(self) -> bool:
        return bool(self.names)


class Running:
    """A started command with its process group. Call `end` in any case."""

    def __init__(
        self, process: asyncio.subprocess.Process, fd: int, capture: Capture, mark: str, flood_bytes: int
    ) -> None:
        self.pid = process.pid
        self.capture = capture
        self._process = process
        self._fd: int | None = fd
        self._mark = f"{MARK}={mark}".encode()
        self._flood_bytes = flood_bytes
        self._loop = asyncio.get_running_loop()
        self._enough: asyncio.Future[Outcome] = self._loop.create_future()
        self._exit = asyncio.ensure_future(process.wait())
        self._loop.add_reader(fd, self._read)

    @property
    def exit_code(self) -> int | None:
        """The exit code, minus the signal's number when one ended it; None while it runs."""
        return self._process.returncode

    async def wait(self, seconds: float | None) -> Outcome:
        """Until the command exits, prints too much, is to stop, or *seconds* are over. Ends nothing."""
        await asyncio.wait({self._exit, self._enough}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._enough.done():
            return self._enough.result()
        return "exited" if self._exit.done() else "timed_out"

    def stop(self) -> None:
        """Let `wait` return `stopped`."""
        if not self._enough.done():
            self._enough.set_result("stopped")

    async def end(self, grace: float) -> Ended:
        """End what still lives: TERM, after *grace* seconds KILL; then reap, and read what was printed.

        When this is cancelled, everything is killed at once.
        """
        try:
            if self._exit.done():
                await self._gone(NATURAL_END)
            names = sorted(set(self._living().values()))
            killed = False
            if names:
                self._signal(signal.SIGTERM)
                self._signal(signal.SIGCONT)
                killed = not await self._gone(grace)
            if killed:
                await self._kill()
            await asyncio.wait({self._exit}, timeout=REAPED)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            raise
        finally:
            self._close()
        return Ended(tuple(names), killed)

    async def _kill(self) -> None:
        for _ in range(100):  # a fork bomb makes new ones while it is killed
            self._signal(signal.SIGKILL)
            if await self._gone(0.05):
                return

    async def _gone(self, seconds: float) -> bool:
        """Whether nothing of the command lives any more, waiting up to *seconds* for it."""
        until = self._loop.time() + seconds
        pause = 0.005
        while self._living():
            if self._loop.time() >= until:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.1)
        return True

    def _living(self) -> dict[int, str]:
        return living(self.pid, self._mark)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in self._living():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _read(self) -> None:
        """One block, when the loop says that there is something."""
        assert self._fd is not None
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._fd)
            return
        self.capture.feed(data)
        if self.capture.total > self._flood_bytes and not self._enough.done():
            self._enough.set_result("flooded")
            self._loop.remove_reader(self._fd)

    def _close(self) -> None:
        """Read what lies in the pipe, without waiting for its end, and close it."""
        if self._fd is None:
            return
        self._loop.remove_reader(self._fd)
        with contextlib.suppress(BlockingIOError):
            for _ in range(DRAINED_BLOCKS):
                if self.capture.total > self._flood_bytes or not (data := os.read(self._fd, 1 << 16)):
                    break
                self.capture.feed(data)
        os.close(self._fd)
        self._fd = None
        self.capture.finish()


def living(group: int, mark: bytes) -> dict[int, str]:
    """Process id and program of all that live in *group*, in its session, or carry *mark* in their environment."""
    if not (PROC / "self" / "stat").exists():
        return _living_by_signal(group)
    found: dict[int, str] = {}
    for entry in os.scandir(PROC):
        if not entry.name.isdigit():
            continue
        try:
            stat = (PROC / entry.name / "stat").read_bytes()
            name, _, rest = stat.partition(b"(")[2].rpartition(b") ")
            state, _, process_group, session, *_ = rest.split()
            if state in {b"Z", b"X"}:
                continue
            ours = int(process_group) == group or int(session) == group
            if ours or mark in (PROC / entry.name / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = name.decode("utf-8", "replace")
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
    return found


async def end_marked(prefix: str) -> list[str]:
    """End what carries a mark that begins with *prefix*: commands of a process that was killed. Their programs."""
    start = f"{MARK}={prefix}".encode()
    ended: dict[int, str] = {}
    for number, rounds in ((signal.SIGTERM, 20), (signal.SIGKILL, 100)):
        for _ in range(rounds):
            if not (left := _marked(start)):
                return sorted(set(ended.values()))
            for pid in left:
                if pid not in ended or number == signal.SIGKILL:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            ended |= left
            await asyncio.sleep(0.05)
    return sorted(set(ended.values()))


def _marked(start: bytes) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in os.scandir(PROC) if PROC.exists() else ():
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to somebody else
            if entry.name.isdigit() and any(
                variable.startswith(start)
                for variable in (PROC / entry.name / "environ").read_bytes().split(b"\0")
            ):
                found[int(entry.name)] = (PROC / entry.name / "comm").read_text(errors="replace").strip()
    return found


def _living_by_signal(group: int) -> dict[int, str]:
    """Where there is no /proc: whether the group has a member."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return {}
    return {group: "a process"}


async def start(plan: Launch, capture: Capture, mark: str, flood_bytes: int) -> Running:
    """Start *plan* in a session of its own, without input. Raises ToolFailed when it cannot be started."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        process = await asyncio.create_subprocess_exec(
            *plan.argv,
            cwd=plan.cwd,
            env=dict(plan.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            start_new_session=True,
        )
    except OSError as error:
        os.close(reader)
        raise ToolFailed(f"the command cannot be started: {error.strerror}: {error.filename}") from error
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return Running(process, reader, capture, mark, flood_bytes)
