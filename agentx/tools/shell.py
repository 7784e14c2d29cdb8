"""`shell` and `shell_output`: commands that end, and commands in the background that end with the job."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx.errors import ToolFailed
from agentx.tools.capture import Capture, Store
from agentx.tools.cleaning import Redactor
from agentx.tools.launch import command_env, find_shell, launch
from agentx.tools.noise import Noise
from agentx.tools.process import Ended, Outcome, Running, end_marked, start
from agentx.tools.tool import Arguments, Limits, Result, Spec

FIRST_LOOK = 1.0
"""Seconds for which a background command is watched before its start is reported."""
COMMAND_CHARS = 80

SHELL = Spec(
    "shell",
    "Run a bash command in the workspace, without input or terminal. Gives exit code and output (head and tail "
    "when it is long). What it leaves running is ended: servers need background=true and are read with "
    "shell_output. To read, change and search files use the other tools.",
    "Run a command",
    "act",
    {
        "command": {"type": "string"},
        "timeout": {"type": "number", "description": "seconds, else 600; at most 3600"},
        "background": {"type": "boolean", "description": "return at once with an id"},
    },
    ("command",),
)
OUTPUT = Spec(
    "shell_output",
    "What a background command printed since you last asked, and whether it still runs.",
    "Background output",
    "read",
    {
        "id": {"type": "string", "description": "such as `b1`"},
        "wait": {"type": "number", "description": "seconds to wait for its end"},
        "stop": {"type": "boolean", "description": "end it"},
    },
    ("id",),
    rare=("stop",),
)


@dataclass(eq=False)
class Background:
    """A command that goes on while the model works. `seconds`, `outcome` and `ended` are set at its end."""

    id: str
    command: str
    running: Running
    capture: Capture
    started: float
    seconds: float | None = None
    outcome: Outcome = "exited"
    ended: Ended | None = None
    task: asyncio.Task[None] | None = None


class Commands:
    """Starts commands, and knows those in the background. `close` ends them."""

    def __init__(
        self,
        workspace: Path,
        store: Store,
        limits: Limits,
        environ: Mapping[str, str],
        secrets: Callable[[], Sequence[str]],
        monotonic: Callable[[], float],
        owner: str,
    ) -> None:
        """*owner* is the same for all runs of one job: by it a later run knows what an earlier one left behind."""
        self.limits = limits
        self._owner = owner
        self.monotonic = monotonic
        self._workspace = workspace
        self._store = store
        self._environ = environ
        self._secrets = secrets
        self._shell = find_shell(environ)
        self._numbers = itertools.count(1)
        self._born = f"{os.getpid()}.{monotonic():.6f}"
        self._background: dict[str, Background] = {}

    def environment(self) -> dict[str, str]:
        """What a command sees of the environment."""
        return command_env(self._environ, self._secrets())

    async def start(self, command: str, name: str, *, eager: bool = False) -> Running:
        """Start *command*; its output, where it is long, is kept under *name*. Raises ToolFailed."""
        if not command.strip():
            raise ToolFailed("`command` is empty")
        if "\0" in command:
            raise ToolFailed("the command holds a NUL character")
        mark = f"{self._owner}.{self._born}.{next(self._numbers)}"
        redactor = Redactor(self._secrets())
        head, tail = self.limits.head_chars, self.limits.tail_chars
        noise = Noise() if self.limits.filter_noise else None
        capture = Capture(self._store, name, redactor, head=head, tail=tail, eager=eager, noise=noise)
        plan = launch(command, self._workspace, self.environment(), self._shell, mark)
        return await start(plan, capture, mark, self.limits.flood_bytes)

    async def end_left_over(self) -> list[str]:
        """End the commands that a run before this one left behind when it was killed; their programs."""
        return await end_marked(f"{self._owner}.")

    async def start_background(self, command: str) -> Background:
        """Start *command*; it goes on until it exits, prints too much, is stopped, or the job ends."""
        if len(self.running()) >= self.limits.background:
            raise ToolFailed(
                f"{self.limits.background} commands run in the background already",
                hint="end one with shell_output: `stop` true",
            )
        id_ = f"b{len(self._background) + 1}"
        running = await self.start(command, f"{id_}-{self._born}.txt", eager=True)
        job = Background(id_, command, running, running.capture, self.monotonic())
        job.task = asyncio.create_task(self._watch(job))
        self._background[id_] = job
        return job

    async def _watch(self, job: Background) -> None:
        try:
            job.outcome = await job.running.wait(None)
        finally:
            job.ended = await job.running.end(self.limits.grace)
            job.seconds = self.monotonic() - job.started

    def background(self, id_: str) -> Background:
        """The background command of that id. Raises ToolFailed that names those there are."""
        job = self._background.get(id_.strip())
        if job is None:
            known = ", ".join(f"`{each}`" for each in self._background) or "none was started"
            raise ToolFailed(
                f"no background command `{id_}`", hint=f"known: {known}; they end with the process of agentx"
            )
        return job

    def running(self) -> list[Background]:
        return [job for job in self._background.values() if job.seconds is None]

    async def close(self) -> None:
        """End all background commands."""
        jobs = self.running()
        for job in jobs:
            job.running.stop()
        await asyncio.gather(*(job.task for job in jobs if job.task is not None), return_exceptions=True)


class Shell:
    def __init__(self, commands: Commands) -> None:
        self.spec = SHELL
        self._commands = commands

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        command = str(arguments["command"])
        if arguments.get("background", False):
            return await self._start(command, call_id)
        limits = self._commands.limits
        timeout = min(max(0.1, float(arguments.get("timeout", limits.timeout))), limits.longest_timeout)
        before = self._commands.monotonic()
        running = await self._commands.start(command, f"{file_name(call_id)}.txt")
        try:
            outcome = await running.wait(timeout)
            seconds = self._commands.monotonic() - before
        finally:
            ended = await running.end(limits.grace)
        said = how_it_ended(outcome, running.exit_code, seconds, limits, ended)
        capture = running.capture
        text = f"[{said}]\n{capture.text(bring_back(call_id)) or '(no output)'}"
        ok = outcome == "exited" and running.exit_code == 0
        whole = capture.whole if capture.partial else None
        return Result(text, ok, size=capture.total, whole=whole)

    async def _start(self, command: str, call_id: str) -> Result:
        job = await self._commands.start_background(command)
        assert job.task is not None
        await asyncio.wait({job.task}, timeout=FIRST_LOOK)
        return report(job, self._commands, call_id)


class ShellOutput:
    def __init__(self, commands: Commands) -> None:
        self.spec = OUTPUT
        self._commands = commands

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        job = self._commands.background(str(arguments["id"]))
        assert job.task is not None
        wait = min(max(0.0, float(arguments.get("wait", 0))), self._commands.limits.timeout)
        if arguments.get("stop", False):
            job.running.stop()
            await asyncio.wait({job.task})
        else:
            await asyncio.wait({job.task}, timeout=wait)
        return report(job, self._commands, call_id)


def report(job: Background, commands: Commands, call_id: str) -> Result:
    """How *job* stands, and what it printed since the last report."""
    if job.seconds is None:
        seconds = commands.monotonic() - job.started
        said = f"{job.id} runs in the background since {seconds:.1f} s, process group {job.running.pid}"
    else:
        ended = how_it_ended(job.outcome, job.running.exit_code, job.seconds, commands.limits, job.ended)
        said = f"{job.id} has ended: {ended}"
    partial = job.capture.partial
    text = f"[{said}]\n{job.capture.take(bring_back(call_id)) or '(no new output)'}"
    ok = job.seconds is None or job.outcome == "stopped" or job.running.exit_code == 0
    whole = job.capture.whole if partial else None
    return Result(text, ok, size=job.capture.total, whole=whole)


def how_it_ended(outcome: Outcome, code: int | None, seconds: float, limits: Limits, ended: Ended | None) -> str:
    """One line: exit code and seconds, and what was ended by force."""
    force = "killed, since it ignored TERM" if ended and ended.killed else "terminated"
    names = ", ".join(ended.names) if ended else "nothing was left"
    match outcome:
        case "exited":
            left = (
                f"; still running and {force}: {names} (use background=true for what shall go on)" if ended else ""
            )
            return f"{exit_words(code)}, {seconds:.1f} s{left}"
        case "timed_out":
            return f"no end after {seconds:.1f} s: {force} ({names})"
        case "flooded":
            return f"more than {limits.flood_bytes:,} bytes of output after {seconds:.1f} s: {force} ({names})"
        case "stopped":
            return f"stopped after {seconds:.1f} s: {force} ({names})"


def exit_words(code: int | None) -> str:
    if code is None:
        return "it cannot be ended"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def bring_back(call_id: str) -> str:
    return f'restore_tool_result with id "{call_id}" brings them back'


def file_name(call_id: str) -> str:
    """*call_id* as a file name: providers choose ids."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:80] or "call"


def one_line(command: str) -> str:
    """*command* in one short line."""
    line = " ".join(command.split())
    return line if len(line) <= COMMAND_CHARS else f"{line[: COMMAND_CHARS - 3]}..."
