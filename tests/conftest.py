"""The outermost door for every test that needs it: `agentx` as a real process, in a home of its own."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

# How fast examples are made says something of the machine, nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure() -> None:
    """Jobs under test hear SIGHUP also where the tests themselves run under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class Done:
    """What a process said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


@dataclass
class Home:
    """AGENTX_HOME and a workspace, both empty, and a clean environment: no keys, no user's settings."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def environ(self) -> dict[str, str]:
        bare = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(self.folder)}
        return bare | {"AGENTX_HOME": str(self.folder / "home"), "PYTHONWARNINGS": "error"} | self.extra

    def configure(self, settings: Mapping[str, Any]) -> Path:
        """Write the user's agentx.yaml."""
        file = self.folder / "home" / "config" / "agentx.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(dict(settings), sort_keys=False))
        return file

    def run(self, *arguments: str, stdin: str | None = None, seconds: float = 100) -> Done:
        """`agentx` with *arguments*, in the workspace."""
        done = subprocess.run(
            [sys.executable, "-m", "agentx", *arguments],
            cwd=self.workspace,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *arguments: str) -> Generator[subprocess.Popen[str]]:
        """`agentx` with *arguments* as a process that still runs; killed at the end if it does."""
        process = subprocess.Popen(
            [sys.executable, "-m", "agentx", *arguments],
            cwd=self.workspace,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def until(question: Callable[[], Any], *, seconds: float = 40) -> Any:
    """The first true answer to *question*. Fails when there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := question():
            return value
        time.sleep(0.05)
    raise AssertionError(f"did not come true within {seconds:g} s")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.workspace.mkdir()
    return made


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Home]:
    """For tests that look at one and the same job in several ways."""

    def new_home() -> Home:
        made = Home(tmp_path_factory.mktemp("home"))
        made.workspace.mkdir()
        return made

    return new_home


@pytest.fixture
def usual_ports(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """For tests that listen where local servers usually are, or want nobody there: one at a time, everywhere."""
    with (tmp_path_factory.getbasetemp().parent / "usual-ports.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Any]:
    return until
