"""A job in a process of its own: started so that it outlives the terminal, and stopped from anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agentx.errors import StateError
from agentx.jobs.lock import Owner, held
from agentx.jobs.store import Job

GRACE_SECONDS = 10.0


def detach(job: Job, environ: Mapping[str, str], arguments: tuple[str, ...]) -> int:
    """Run *job* in a new session with *arguments* of `agentx`; the pid, once it can be watched and stopped.

    Waits without a limit for the launch record (the job's owner, written under the job's lock). Raises StateError
    with what it said when the process ends first. Ctrl-C while waiting ends the process.
    """
    home = environ.get("AGENTX_HOME")
    absolute = {"AGENTX_HOME": os.path.abspath(Path(home).expanduser())} if home else {}  # noqa: PTH100  no resolving
    with job.log.open("ab") as log:
        job.log.chmod(0o600)
        before = job.log.stat().st_size
        child = subprocess.Popen(
            [sys.executable, "-m", "agentx", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**environ, **absolute},
            cwd="/",
        )
    try:
        while True:
            code = child.poll()
            if _launched(job, child.pid):
                return child.pid
            if code is not None:
                text = job.log.read_bytes()[before:].decode(errors="replace").strip()
                raise StateError(f"{job.id}: its process ended with {code}: {text or 'it said nothing'}")
            time.sleep(0.02)
    except BaseException:
        if child.poll() is None:
            child.terminate()
        raise


def _launched(job: Job, pid: int) -> bool:
    journal = job.journal(read_only=True)
    try:
        owner = Owner.from_json(journal.meta("owner") or "")
        return owner is not None and owner.pid == pid and journal.last("job.started") is not None
    finally:
        journal.close()


def owner_of(job: Job) -> Owner | None:
    """The live process that runs *job*; None when none does."""
    if not held(job.lock_file):
        return None
    journal = job.journal(read_only=True)
    try:
        text = journal.meta("owner")
    finally:
        journal.close()
    owner = Owner.from_json(text or "")
    return owner if owner is not None and owner.alive else None


def ask_to_stop(job: Job) -> None:
    """Leave the request in the job's inbox: it stops after the current step."""
    journal = job.journal()
    try:
        if not journal.letters("stop"):
            journal.post("stop")
    finally:
        journal.close()


def stop_now(job: Job, *, sleep: Callable[[float], None] = time.sleep, grace: float = GRACE_SECONDS) -> bool:
    """End the job's process: TERM, *grace* seconds, KILL. True when it is gone (or was not there)."""
    owner = owner_of(job)
    if owner is None:
        return True
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.kill(owner.pid, number)
        except ProcessLookupError:
            return True
        waited = 0.0
        while waited < patience:
            if not owner.alive:
                return True
            sleep(0.05)
            waited += 0.05
    return not owner.alive
