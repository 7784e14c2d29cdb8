"""`agentx logs` and `agentx events`: what happened in a job, for people and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import click

from agentx.cli.live import Teller, said_in
from agentx.cli.output import answer
from agentx.cli.session import Session
from agentx.errors import StateError
from agentx.jobs.lock import held
from agentx.jobs.store import Job, Store
from agentx.journal import Entry

POLL_SECONDS = 0.2


def entries(job: Job, after: int, follow: bool) -> Iterator[Entry]:
    """The entries after *after*; when following, until the job's process is gone and all is told.

    Each batch is read and released: a reader that holds on would make the journal's log grow.
    """
    journal = job.journal(read_only=True)
    try:
        while True:
            runs = held(job.lock_file)
            batch = journal.read(after, limit=500)
            yield from batch
            if batch:
                after = batch[-1].seq
            elif not follow or not runs:
                return
            else:
                time.sleep(POLL_SECONDS)
    finally:
        journal.close()


@click.command()
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job's process ends.")
@click.option("--json", "as_json", is_flag=True, help="The events themselves, one a line, as `agentx events`.")
@click.pass_obj
def logs(session: Session, job: str, *, follow: bool, as_json: bool) -> None:
    """Tell what happened in JOB, one line for each thing that matters."""
    found = Store(session.paths().jobs).find(job)
    if as_json:
        for entry in entries(found, 0, follow):
            answer(entry.line(found.id))
        return
    teller = Teller()
    day = ""
    for entry in entries(found, 0, follow):
        if line := teller.line(entry.event, said_in(entry)):
            local = datetime.fromtimestamp(entry.time).astimezone()
            if day != (day := f"{local:%Y-%m-%d}"):
                answer(day)
            answer(f"{local:%H:%M:%S} {line}")
    if not day and found.log.exists():
        raise StateError(
            f"{found.id}: nothing happened yet; its process said: {found.log.read_text(errors='replace')[-400:]}"
        )


@click.command()
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job's process ends.")
@click.option("--after", type=int, default=0, metavar="SEQ", help="Only events after this `seq`.")
@click.option("--json", "as_json", is_flag=True, help="Events are always JSON lines; accepted for symmetry.")
@click.pass_obj
def events(session: Session, job: str, *, follow: bool, after: int, as_json: bool) -> None:
    """Print the events of JOB as JSON, one a line."""
    del as_json
    found = Store(session.paths().jobs).find(job)
    for entry in entries(found, after, follow):
        answer(entry.line(found.id))
