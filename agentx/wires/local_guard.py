"""Runs a program that must not outlive its parent, not even when the parent is killed with -9.

Started as a script: `python -I -S local_guard.py PARENT PROGRAM ARGUMENT...`. On Linux the kernel does it and no
process is added; elsewhere this process stays and looks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
LOOK_EVERY_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform != "linux":
        return watch(parent, command)
    import ctypes

    # It survives exec. Done here, not between fork and exec of the parent, where threads may hold locks.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the setting stood
        return 1
    return os.execv(command[0], command)


def watch(parent: int, command: list[str]) -> int:
    """Run *command* as a child until it ends or *parent* is gone; the exit code, negative for a signal."""
    with subprocess.Popen(command) as child:
        while child.poll() is None:
            if os.getppid() != parent:
                child.kill()
            time.sleep(LOOK_EVERY_SECONDS)
        return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
