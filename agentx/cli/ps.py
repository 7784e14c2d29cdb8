"""`agentx ps` and `agentx show`: what jobs are doing, read from their folders; no configuration is loaded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from agentx.cli.output import answer, answer_json, local_time, table, tell
from agentx.cli.session import Session
from agentx.cli.words import count, duration, failures, lost, meter
from agentx.errors import StateError
from agentx.events import utc
from agentx.jobs.status import Status, shortened, status
from agentx.jobs.store import Store

FINISHED = ("ended", "stopped")


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Also jobs that have ended.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def ps(session: Session, *, everything: bool, as_json: bool) -> None:
    """List jobs: state, link in use, turn, context, cost, what each does now."""
    now = time.time()
    found: list[Status] = []
    for job in Store(session.paths().jobs).all():
        try:
            found.append(status(job, now))
        except StateError as error:
            tell(f"warning: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    found.sort(key=lambda one: one.started)
    shown = [one for one in found if everything or one.state not in FINISHED]
    if as_json:
        answer_json({"as_of": utc(now), "jobs": [one.to_json() for one in shown]})
        return
    answer(
        table(
            ["ID", "NAME", "STATE", "FOR", "LINK", "TURN", "CONTEXT", "COST", "DOING"],
            [_row(one) for one in shown],
        )
    )
    if not found:
        tell('no jobs yet; `agentx run "..."` starts one')
    elif not shown:
        tell(f"{count(len(found), 'job')} ended; `agentx ps -a` lists what there is")


def _row(one: Status) -> list[object]:
    doing = _doing(one)
    if one.ending and one.state == "ended":
        doing = str(one.ending["ending"])
    return [
        one.id,
        one.name or "",
        one.state,
        duration(one.seconds),
        one.link or "",
        one.turn,
        meter(one.used, one.window).removeprefix("ctx "),
        _cost(one),
        doing,
    ]


@click.command()
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def show(session: Session, job: str, *, as_json: bool) -> None:
    """Show JOB (id, unique prefix or name): task, chain, context, cost, how it ended, its answer."""
    found = Store(session.paths().jobs).find(job)
    one = status(found, time.time())
    if as_json:
        answer_json(one.to_json_whole())
        return
    name = f"{one.name} ({one.id})" if one.name else one.id
    pid = f", pid {one.pid}" if one.pid else ""
    used = one.totals
    lines = [
        f"{name}  {one.state}, {duration(one.seconds)} at work{pid}",
        f"task      {shortened({'task': one.task}, 100)}",
        f"workspace {one.workspace}",
        f"chain     {' → '.join(one.chain)}",
        f"link      {one.link or 'none yet'}",
        f"context   {meter(one.used, one.window).removeprefix('ctx ')}",
        f"used      {count(used.turns, 'turn')} · {used.input:,} tokens in, {used.output:,} out · {_spent(one)}",
        f"story     {count(used.switches, 'switch')} · {count(used.compactions, 'compaction')}",
        *_losses(one),
        *(f"paid link {_capped(row)}" for row in one.spending),
        f"files     {found.folder}",
    ]
    if one.doing:
        lines.append(f"doing     {_doing(one)}")
    if one.state == "interrupted" and not one.ending:
        lines.append("ending    none: its process is gone without a word (killed, or the machine stopped)")
    if one.ending:
        lines.append(f"ending    {one.ending['ending']} (exit {one.ending['exit']}): {one.ending['message']}")
    if one.state in ("interrupted", "stopped"):
        lines.append(f"go on     agentx resume {one.id}")
    elif one.ending and one.ending["hint"]:
        lines.append(f"hint      {str(one.ending['hint']).replace('JOB', one.id)}")
    if one.ending and one.ending["ending"] in ("done", "unfinished") and one.ending["answer"]:
        lines += ["", str(one.ending["answer"])]
    answer("\n".join(lines))


def _cost(one: Status) -> str:
    """What is known of the cost; `+ ?` where some of it is not."""
    unpriced = one.totals.unpriced + one.totals.failed.unpriced
    if not unpriced:
        return f"${one.cost:.2f}"
    return f"${one.cost:.2f} + ?" if one.cost else "?"


def _spent(one: Status) -> str:
    used = one.totals
    unpriced = f" · {count(used.unpriced, 'reply')} of unknown price" if used.unpriced else ""
    return (f"${used.cost:.2f}" if used.cost or not unpriced else "cost unknown") + unpriced


def _capped(row: Mapping[str, Any]) -> str:
    """What was spent on a link that is only used within a cap."""
    most = "" if row["max_cost"] is None else f" of at most ${row['max_cost']:g}"
    return f"{row['link']}: ${row['cost']:.4g}{most}"


def _losses(one: Status) -> list[str]:
    """What went to links that failed: time, and money where there is any."""
    totals, failed = one.totals.to_json(), one.totals.failed
    lines = [f"lost      {lost(totals)}"] if lost(totals) else []
    if not failed.number:
        return lines
    told = failures(totals)
    if failed.input + failed.output:
        told += f" · {failed.input:,} tokens in, {failed.output:,} out"
    if failed.cost:
        told += f" · ${failed.cost:.2f}"
    if failed.unpriced:
        told += f" · what {failed.unpriced:,} of them cost is unknown"
    return [*lines, f"failed    {told}"]


def _doing(one: Status) -> str:
    """What it does, and until when it waits."""
    if one.waiting_until is None:
        return one.doing
    return f"waiting until {local_time(one.waiting_until)}, because {one.doing.removeprefix('waiting: ')}"
