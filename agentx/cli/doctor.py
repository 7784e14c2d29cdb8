"""`agentx doctor`: checks everything, changes nothing, and says for each fault the command that mends it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import click

from agentx import __version__
from agentx.cli.output import answer, answer_json
from agentx.cli.session import Session
from agentx.errors import AgentxError, StateError
from agentx.jobs.status import status
from agentx.jobs.store import Order, Store

Verdict = Literal["ok", "note", "wrong"]
MARKS: dict[Verdict, str] = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
LEAST_FREE = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    verdict: Verdict
    said: str
    hint: str | None = None


@click.command()
@click.option("--fault", is_flag=True, help="Instead: see what a chain survives, on a server that fails.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def doctor(session: Session, *, fault: bool, as_json: bool) -> int:
    """Say what is wrong, and the command that mends it. Changes nothing; exits 1 when something is wrong.

    With --fault, a chain of two links is run against a server of agentx's own on this machine that fails in some
    fifty ways. Nothing is configured, sent elsewhere or spent.
    """
    if fault:
        from agentx.cli.doctor_fault import show_faults
        from agentx.testing.named import NAMED

        return show_faults({name: one for name, one in NAMED.items() if not one.harmless}, as_json=as_json)
    findings = list(_examine(session))
    code = 1 if any(found.verdict == "wrong" for found in findings) else 0
    if as_json:
        shown = [
            {"what": found.what, "verdict": found.verdict, "said": found.said, "hint": found.hint}
            for found in findings
        ]
        answer_json({"findings": shown, "ok": code == 0})
        return code
    for found in findings:
        answer(f"{MARKS[found.verdict]}  {found.what:<9} {found.said}")
    hints = list(dict.fromkeys(found.hint for found in findings if found.hint))
    if hints:
        answer("\n" + "\n".join(f"hint: {hint}" for hint in hints))
    return code


def _examine(session: Session) -> Iterator[Finding]:
    yield Finding("agentx", "ok", f"{__version__}, Python {platform.python_version()}, {platform.system()}")
    checks: list[Callable[[Session], Iterator[Finding]]] = [_config, _folders, _programs, _models, _jobs]
    for check in checks:
        try:
            yield from check(session)
        except AgentxError as error:
            what = check.__name__.removeprefix("_")
            yield Finding(what, "wrong", error.message.replace("\n", "; "), error.hint)


def _config(session: Session) -> Iterator[Finding]:
    config = session.config()
    read = ", ".join(map(str, config.files)) or "none found: the chain is made of what is there"
    yield Finding("config", "ok", f"valid ({read})")
    for warning in config.warnings:
        yield Finding("config", "note", warning)


def _folders(session: Session) -> Iterator[Finding]:
    state = session.paths().state
    there = state
    while not there.exists():
        there = there.parent
    if not os.access(there, os.W_OK):
        raise StateError(f"{state}: cannot be written", hint="choose another folder: `AGENTX_HOME=DIR`")
    free = shutil.disk_usage(there).free
    size = f"{free / 1024**3:.1f} GiB free in {state}"
    if free < LEAST_FREE:
        yield Finding("disk", "wrong", size, "free some space: a night's journal and tool output need room")
    else:
        yield Finding("disk", "ok", size)


def _programs(session: Session) -> Iterator[Finding]:
    from agentx.tools.find import find_ripgrep

    rg = find_ripgrep(session.environ, sys.executable)
    if rg is None:
        yield Finding("search", "wrong", "ripgrep is not found", "`pip install ripgrep`, or your system's package")
    else:
        yield Finding("search", "ok", str(rg))
    yield Finding(
        "sandbox",
        "note",
        "commands of the model run as you, without a sandbox; keys are kept out of their environment",
    )


def _models(session: Session) -> Iterator[Finding]:
    from agentx.cli.foreground import links_of
    from agentx.cli.windows import rows_of

    config = session.config()
    links = links_of(session, config, Order(task="", workspace=str(session.cwd)))
    rows = asyncio.run(rows_of(session, links, refresh=True))
    for link, row in zip(links, rows, strict=True):
        variable = link.key_variable
        if variable and not link.provider.key_optional and not session.environ.get(variable):
            yield Finding("model", "wrong", f"{link.name}: {variable} is not set", f"`export {variable}=...`")
            continue
        trouble = "; ".join(row["warnings"])
        window = f"{row['window']:,} tokens ({row['source']})"
        verdict: Verdict = "note" if trouble or row["confidence"] == "assumed" else "ok"
        yield Finding("model", verdict, f"{link.name}: window {window}" + (f"; {trouble}" if trouble else ""))


def _jobs(session: Session) -> Iterator[Finding]:
    now = time.time()
    jobs = Store(session.paths().jobs).all()
    lost: list[str] = []
    for job in jobs:
        try:
            if status(job, now).state == "interrupted":
                lost.append(job.id)
        except StateError as error:
            yield Finding("jobs", "note", error.message)
    if lost:
        hint = f"go on with `agentx resume {lost[0]}`"
        yield Finding("jobs", "note", f"{len(lost)} without an ending: {', '.join(lost)}", hint)
    else:
        yield Finding("jobs", "ok", f"{len(jobs)} on disk")
