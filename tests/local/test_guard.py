"""Nothing that was started outlives a process that is killed with -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentx.wires import local_guard

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", {guard!r}, str(__import__("os").getpid()), {program!r}])
print(child.pid, flush=True)
time.sleep(60)
"""
WATCHING = """
import sys
sys.path.insert(0, {folder!r})
import local_guard
sys.exit(local_guard.watch(int(sys.argv[1]), sys.argv[2:]))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that writes its process id and then sleeps."""
    file = tmp_path / "program"
    file.write_text(
        f'#!/bin/sh\necho $$ > "{tmp_path}/pid.new"; mv "{tmp_path}/pid.new" "{tmp_path}/pid"\nexec sleep 60\n'
    )
    file.chmod(0o755)
    return file


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("way", ["the kernel's", "watching"])
def test_a_program_dies_with_a_parent_that_is_killed(
    way: str, program: Path, tmp_path: Path, until: Callable[..., Any]
) -> None:
    guard = Path(local_guard.__file__)
    if way == "watching":
        text, guard = WATCHING.format(folder=str(guard.parent)), tmp_path / "guard.py"
        guard.write_text(text)
    code = PARENT.format(guard=str(guard), program=str(program))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        assert alive(pid)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    until(lambda: not alive(pid))


def test_the_exit_code_of_the_program_is_passed_on() -> None:
    assert local_guard.watch(os.getppid(), ["/bin/sh", "-c", "exit 7"]) == 7


def test_a_program_whose_parent_is_gone_is_not_started(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", local_guard.__file__, "1", str(program)], check=False, timeout=20
    )
    assert done.returncode == 1
    assert not (tmp_path / "pid").exists()
