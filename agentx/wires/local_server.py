"""One `llama-server` process: its command line, its start, its end, and what a death of it means."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from agentx.errors import ErrorClass, RequestFailed

HOST = "127.0.0.1"
GUARD = Path(__file__).with_name("local_guard.py")
LOOK_EVERY_SECONDS = 0.1
STOP_SECONDS = 5.0
LARGEST_LOG = 1_048_576
KEPT_LOGS = 10
PORTS_TRIED = 3
CACHE_MIB = 256
"""For prompts that were read before; the server's own default is 8 GiB."""
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES")
PASSED_ON_PREFIXES = ("VK_", "GGML_", "HIP_", "ROCR_", "HSA_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is started. `window` in tokens; `extra` are more arguments for the server."""

    program: Path
    model: Path
    window: int
    template: Path | None = None
    threads: int | None = None
    extra: tuple[str, ...] = ()

    def command(self, port: int) -> list[str]:
        """The command line. `--parallel 1`: several slots would share the window."""
        command = [str(self.program), "-m", str(self.model), "--host", HOST, "--port", str(port)]
        command += ["-c", str(self.window), "--parallel", "1", "-t", str(self.threads or usual_threads())]
        if self.template is not None:
            command += ["--jinja", "--chat-template-file", str(self.template)]
        return [*command, *self.extra]

    def environment(self, environ: Mapping[str, str], key: str) -> dict[str, str]:
        """What the server gets of *environ*: no keys of providers. Older servers do not know all of ours."""
        kept = {
            name: value
            for name, value in environ.items()
            if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
        }
        libraries = [str(self.program.parent), *filter(None, [kept.get("LD_LIBRARY_PATH")])]
        return kept | {
            "LD_LIBRARY_PATH": os.pathsep.join(libraries),
            "LLAMA_API_KEY": key,
            "LLAMA_ARG_ENDPOINT_SLOTS": "0",
            "LLAMA_ARG_WEBUI": "0",
            "LLAMA_ARG_CACHE_RAM": str(CACHE_MIB),
            "LLAMA_OFFLINE": "1",
        }


def usual_threads() -> int:
    """One for each core but one: threads wait by spinning, and a core that somebody else needs stops them all.

    Measured on two busy cores: 2.5 tokens a second with two, 12.5 with one. Of many cores half: twins do not help.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, count - 1) if count <= 4 else count // 2


@dataclass(frozen=True, slots=True)
class Death:
    """Why a server ended: `what` follows its name. No `error_class`: it may well run when started again."""

    what: str
    hint: str | None = None
    error_class: ErrorClass | None = None


def cause_of_death(code: int, said: str) -> Death:
    """From the exit code (negative: a signal) and the end of what the server *said*. Pure."""
    low = said.lower()
    if code in (-signal.SIGILL, 128 + signal.SIGILL):
        hint = "install a llama.cpp made for this processor and set `AGENTX_LOCAL_SERVER` to its `llama-server`"
        return Death("this processor cannot run it (illegal instruction)", hint, "not_found")
    memory = "close other programs, or give the link a smaller `window:`"
    if any(words in low for words in ("cannot allocate", "failed to allocate", "bad_alloc", "out of memory")):
        return Death("not enough memory", memory, "overloaded")
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return Death("it was killed; most often that is the system, short of memory", memory)
    if "error while loading shared libraries" in low:
        library = low.partition("error while loading shared libraries: ")[2].partition(":")[0]
        return Death(f"the library `{library}` is missing", "install it, or another llama.cpp", "not_found")
    if "failed to load model" in low or "failed to read magic" in low or "error loading model" in low:
        hint = "`agentx local pull --force` gets the file again"
        return Death("it cannot load the model file", hint, "not_found")
    if "unrecognized argument" in low or "invalid argument" in low:
        return Death("it does not know an argument that it was given", "take a newer llama.cpp", "not_found")
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "nothing said")
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return Death(f"it ended {how}: {last[:200]}")


def port_is_taken(said: str) -> bool:
    low = said.lower()
    return "couldn't bind" in low or "address already in use" in low or "failed to bind" in low


class Server:
    """A running server; `stop` it. It dies with this process, however that ends."""

    def __init__(self, launch: Launch, environ: Mapping[str, str], logs: Path) -> None:
        self.port = free_port()
        self.key = secrets.token_urlsafe(24)
        self.ready = False
        logs.mkdir(parents=True, exist_ok=True)
        drop_old_logs(logs)
        self.log = logs / f"llama-server-{os.getpid()}-{self.port}.log"
        command = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *launch.command(self.port)]
        with self.log.open("ab") as output:  # appending: cutting the file then frees the room at once
            self.process = subprocess.Popen(
                command,
                env=launch.environment(environ, self.key),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C is for us: the server ends when the job has ended
            )

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def ended(self) -> int | None:
        """The exit code, once it ended."""
        return self.process.poll()

    def said(self) -> str:
        """The end of its log."""
        try:
            return self.log.read_bytes()[-8_192:].decode("utf-8", "replace")
        except OSError:
            return ""

    def trim_log(self) -> None:
        """Empty the log when it is too long."""
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
            os.truncate(self.log, 0)

    async def wait_ready(
        self,
        client: httpx.AsyncClient,
        seconds: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> bool:
        """True when it answers within *seconds*; False when it ended instead. Raises RequestFailed (timed out)."""
        until = monotonic() + seconds
        while self.ended is None:
            try:
                if (await client.get(f"{self.address}/health", timeout=2.0)).status_code == 200:
                    self.ready = True
                    return True
            except httpx.HTTPError:
                pass  # it does not listen yet
            if monotonic() > until:
                what = f"local: `llama-server` was not ready within {seconds:g} s"
                raise RequestFailed(what, phase="connect", timed_out=True, hint=f"its log is {self.log}")
            await sleep(LOOK_EVERY_SECONDS)
        return False

    async def stop(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """End it: asked first, killed after five seconds. The log of a server that was well is dropped."""
        was_well = self.ended is None
        self._signal(signal.SIGTERM)
        for _ in range(int(STOP_SECONDS / LOOK_EVERY_SECONDS)):
            if self.ended is not None:
                break
            await sleep(LOOK_EVERY_SECONDS)
        self._signal(signal.SIGKILL)
        self.process.wait()
        if was_well:
            self.log.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals) -> None:
        if self.ended is None:
            os.killpg(self.process.pid, number)


def free_port() -> int:
    """A port of this machine that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def drop_old_logs(logs: Path) -> None:
    """Keep the newest: those that are left were of servers that died."""
    old = sorted(logs.glob("llama-server-*.log"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in old[KEPT_LOGS:]:
        file.unlink(missing_ok=True)
