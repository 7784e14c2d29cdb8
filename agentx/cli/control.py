"""`agentx send`, `stop` and `resume`: acting on a job that is there."""

from __future__ import annotations

import click

from agentx.cli.output import answer, answer_json, tell
from agentx.cli.session import Session
from agentx.errors import StateError, UsageError
from agentx.jobs.lock import held
from agentx.jobs.store import Job, Store


@click.command()
@click.argument("job")
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def send(session: Session, job: str, text: str, *, as_json: bool) -> None:
    """Say TEXT to JOB. It is delivered at the job's next turn, or when it is resumed."""
    if not text.strip():
        raise UsageError("the text is empty", hint=f'say something: `agentx send {job} "..."`')
    found = Store(session.paths().jobs).find(job)
    journal = found.journal()
    try:
        journal.post("message", text)
    finally:
        journal.close()
    runs = held(found.lock_file)
    where = "delivered at its next turn" if runs else f"delivered with `agentx resume {found.id}`"
    _said(found, applied=True, detail=where, as_json=as_json)


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--now", is_flag=True, help="Do not wait for the step: end the process.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each job on stdout.")
@click.pass_obj
def stop(session: Session, jobs: tuple[str, ...], *, now: bool, as_json: bool) -> None:
    """Stop each JOB after its current step; it can be resumed. Stopping twice is fine."""
    from agentx.jobs.detach import ask_to_stop, stop_now

    store = Store(session.paths().jobs)
    for found in [store.find(job) for job in jobs]:
        if not held(found.lock_file):
            _said(found, applied=False, detail="it does not run", as_json=as_json)
        elif now:
            if not stop_now(found):
                raise StateError(f"{found.id}: the process does not end")
            _said(found, applied=True, detail="ended", as_json=as_json)
        else:
            ask_to_stop(found)
            detail = f"stopping after the current step; `agentx stop --now {found.id}` does not wait"
            _said(found, applied=True, detail=detail, as_json=as_json)


@click.command()
@click.argument("job")
@click.argument("text", required=False)
@click.option("-d", "--detach", is_flag=True, help="Run in the background; prints the job's id and returns.")
@click.option("--json", "as_json", is_flag=True, help="Events on stdout, one a line; `job.ended` is the last.")
@click.option("--unwatched", is_flag=True, hidden=True)  # how `-d` starts the process in the background
@click.pass_obj
def resume(session: Session, job: str, text: str | None, *, detach: bool, as_json: bool, unwatched: bool) -> int:
    """Go on with JOB where it stopped; TEXT is said to it first."""
    from dataclasses import replace
    from pathlib import Path

    from agentx.cli.foreground import foreground, surroundings

    found = Store(session.paths().jobs).find(job)
    if held(found.lock_file):
        raise UsageError(f"{found.id}: it runs already", hint=f"`agentx logs -f {found.id}` watches it")
    order = found.order()
    if not Path(order.workspace).is_dir():
        raise UsageError(f"{order.workspace}: the job's workspace is not there any more")
    session = replace(session, overrides=order.overrides + session.overrides)
    around = replace(surroundings(session, order), watched=not unwatched)
    if detach:
        from agentx.jobs.detach import detach as start

        flags = [flag for override in session.overrides for flag in ("-c", override)]
        start(found, session.environ, (*flags, "resume", "--unwatched", "--", found.id, *([text] if text else [])))
        if not as_json:
            answer(found.id)
        _said(found, applied=True, detail="running again", as_json=as_json)
        return 0
    return foreground(found, around, as_json=as_json, said=text)


def _said(job: Job, *, applied: bool, detail: str, as_json: bool) -> None:
    if as_json:
        answer_json({"target": job.id, "applied": applied, "detail": detail})
    else:
        tell(f"{job.id}: {detail}")
