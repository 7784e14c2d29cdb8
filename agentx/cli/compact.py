"""`agentx compact`: make room in a job's context now, although nothing asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentx.cli.live import compaction
from agentx.cli.output import answer, answer_json, local_time
from agentx.cli.session import Session
from agentx.errors import ContextOverflow, UsageError
from agentx.events import Compacted, Warned
from agentx.jobs.lock import held
from agentx.jobs.store import Job, Store
from agentx.journal import Entry

WAIT_SECONDS = 60.0
FAILED = 1
"""The exit code when a model was to summarise and could not, and nothing else made room either."""


@click.command()
@click.argument("job")
@click.option(
    "--wait",
    "seconds",
    type=click.FloatRange(min=0),
    default=WAIT_SECONDS,
    show_default=True,
    help="Seconds to wait for the turn of a running job to end; the request stays.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def compact(session: Session, job: str, *, seconds: float, as_json: bool) -> int:
    """Compact the context of JOB: at once, or when it runs, at its next turn. Says what was done, or why nothing.

    Nothing is lost: the journal keeps the whole conversation.
    """
    from agentx.jobs.compacting import ask_to_compact

    found = Store(session.paths().jobs).find(job)
    if held(found.lock_file):
        asked = ask_to_compact(found, seconds)
        if asked.entry is not None:
            return _told(found, asked.entry, as_json=as_json)
        if not asked.gone:
            until = asked.waits_until
            when = f"waits until {local_time(until)} and does it then" if until else "does it at its next turn"
            return _nothing(found, f"asked; the job {when}: `agentx logs -f {found.id}`", as_json=as_json)
    journal = found.journal(read_only=True)
    try:
        begun = journal.last("job.started") is not None
    finally:
        journal.close()
    if not begun:
        return _nothing(found, "not compacted: it never began", as_json=as_json)
    return _told(found, _at_once(session, found), as_json=as_json)


def _at_once(session: Session, job: Job) -> Entry:
    from agentx.cli.foreground import surroundings
    from agentx.jobs.compacting import compact_job

    order = job.order()
    if not Path(order.workspace).is_dir():
        raise UsageError(f"{order.workspace}: the job's workspace is not there any more")
    session = replace(session, overrides=order.overrides + session.overrides)
    return compact_job(job, surroundings(session, order))


def _told(job: Job, entry: Entry, *, as_json: bool) -> int:
    event = entry.event
    if isinstance(event, Compacted):
        applied = event.after < event.before
        tiers = {"before": event.before, "after": event.after, "tiers": list(event.tiers)}
        _print(job, compaction(event), applied=applied, more=tiers, as_json=as_json)
        return FAILED if not applied and any(tier.get("cause") for tier in event.tiers) else 0
    detail = event.message if isinstance(event, Warned) else "not compacted"
    _print(job, detail, applied=False, more={}, as_json=as_json)
    return ContextOverflow.exit_code


def _nothing(job: Job, detail: str, *, as_json: bool) -> int:
    _print(job, detail, applied=False, more={}, as_json=as_json)
    return 0


def _print(job: Job, detail: str, *, applied: bool, more: dict[str, Any], as_json: bool) -> None:
    if as_json:
        sizes: dict[str, Any] = {"before": None, "after": None, "tiers": []}
        answer_json({"target": job.id, "applied": applied, "detail": detail} | sizes | more)
    else:
        answer(f"{job.id}: {detail}")
