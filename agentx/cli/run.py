"""`agentx run`: a task to its end, in the foreground or detached."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentx.cli.output import answer, answer_json, tell
from agentx.cli.session import Session
from agentx.cli.words import instructed
from agentx.config.links import Link
from agentx.errors import UsageError
from agentx.jobs.lock import held
from agentx.jobs.store import Order, Store


class Amount(click.ParamType[float]):
    """A number from 0, and not one without an end."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(click.FLOAT.convert(value, param, ctx))
        if not 0 <= number < math.inf:
            self.fail(f"{value} is not a number from 0.", param, ctx)
        return number


@click.command()
@click.argument("task")
@click.option("-d", "--detach", is_flag=True, help="Run in the background; prints the job's id and returns.")
@click.option("--chain", metavar="NAME", help="A chain of the config, or models: a/b,c/d.")
@click.option(
    "--workspace", type=click.Path(path_type=Path), metavar="DIR", help="Where the model works (default: here)."
)
@click.option("--name", metavar="NAME", help="A name for the job, besides its id.")
@click.option(
    "--policy", metavar="NAME", help="How its context is made smaller: a policy of agentx or the config."
)
@click.option("--until", metavar="CMD", help="The job is done only when this command succeeds.")
@click.option("--max-cost", type=Amount(), metavar="DOLLARS", help="Stop when this much is spent.")
@click.option("--max-hours", type=Amount(), metavar="HOURS", help="Stop after this time (8 by default).")
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Stop after this many replies.")
@click.option("--dry-run", is_flag=True, help="Say what would run; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Events on stdout, one a line; `job.ended` is the last.")
@click.pass_obj
def run(
    session: Session,
    task: str,
    *,
    detach: bool,
    chain: str | None,
    workspace: Path | None,
    name: str | None,
    policy: str | None,
    until: str | None,
    max_cost: float | None,
    max_hours: float | None,
    max_turns: int | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run TASK (`-` reads it from stdin) to its end.

    The answer goes to stdout, the story to stderr. The exit code says how it ended: 0 done, 1 unfinished,
    5 every link failed, 6 a limit was reached, 7 the context cannot be made to fit, 9 stopped.
    """
    text = _from_stdin() if task == "-" else task
    if not text.strip():
        raise UsageError("the task is empty", hint='say what to do: `agentx run "..."`')
    if until is not None and not until.strip():
        raise UsageError("the check is empty", hint='give a command, for example `--until "pytest -q"`')
    folder = (session.cwd / (workspace or Path())).resolve()
    if not folder.is_dir():
        raise UsageError(f"{workspace}: the workspace is not a folder", hint=f"make it: `mkdir -p {workspace}`")
    if name:
        _check_name(session, name)
    limits = {"cost": max_cost, "hours": max_hours, "turns": max_turns}
    overrides = [f"limits.{key}={value}" for key, value in limits.items() if value is not None]
    if policy is not None:
        _check_policy(session, folder, policy)
        overrides.append(f"compaction.policy={json.dumps(policy)}")
    session = replace(session, overrides=(*session.overrides, *overrides))
    order = Order(
        task=text,
        workspace=str(folder),
        chain=chain,
        overrides=session.overrides,
        until=until,
        name=name,
    )
    if dry_run:
        return _dry_run(session, order, as_json)
    if detach:
        return _detached(session, order, as_json)
    return _here(session, order, as_json)


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError("the task on stdin is not UTF-8 text") from error


def _check_name(session: Session, name: str) -> None:
    """A name means the newest job that bears it: one that still runs must not lose its name."""
    for job in Store(session.paths().jobs).named(name):
        if held(job.lock_file):
            raise UsageError(
                f"{job.id} runs under the name `{name}`",
                hint=f"choose another name, or stop it: `agentx stop {job.id}`",
            )


def _check_policy(session: Session, folder: Path, name: str) -> None:
    from agentx.config.policy import BUILT_IN
    from agentx.config.problems import did_you_mean

    known = [*BUILT_IN, *session.config(folder).settings.compaction.policies]
    if name not in known:
        raise UsageError(f"there is no policy `{name}`", hint=did_you_mean(name, known))


def _here(session: Session, order: Order, as_json: bool) -> int:
    from agentx.cli.foreground import foreground, surroundings

    around = surroundings(session, order)
    job = Store(session.paths().jobs).create(order)
    return foreground(job, around, as_json=as_json)


def _detached(session: Session, order: Order, as_json: bool) -> int:
    from agentx.cli.foreground import check_order
    from agentx.jobs.detach import detach

    check_order(session, order)
    job = Store(session.paths().jobs).create(order)
    detach(job, session.environ, ("resume", "--unwatched", job.id))
    if as_json:
        answer_json({"id": job.id, "name": order.name})
    else:
        answer(job.id)
    tell(
        f"  agentx logs -f {job.id}    watch it\n"
        f"  agentx show {job.id}       how it stands\n"
        f"  agentx stop {job.id}       stop after the current step\n"
        f"  agentx ps{' ' * len(job.id)}          all jobs"
    )
    return 0


def _dry_run(session: Session, order: Order, as_json: bool) -> int:
    """Say what would run: links, windows, thresholds, limits. Asks servers for their windows, sends no prompt."""
    import asyncio

    from agentx.cli.foreground import links_of
    from agentx.cli.windows import rows_of
    from agentx.context.measure import text_tokens
    from agentx.context.own import policy_of
    from agentx.jobs.run import limits_of
    from agentx.jobs.workspace import instructions_of

    config = session.config(Path(order.workspace))
    links: tuple[Link, ...] = links_of(session, config, order)
    rows = asyncio.run(rows_of(session, links, refresh=False))
    limits, settings = limits_of(config).to_json(), config.settings
    policy = policy_of(settings.compaction)
    instructions = text_tokens(instructions_of(Path(order.workspace)).text)
    if as_json:
        told = {"task": order.task, "workspace": order.workspace, "until": order.until}
        found = {"links": rows, "limits": limits, "policy": policy.to_json(), "instructions": instructions}
        answer_json(told | found | {"on_exhausted": settings.on_exhausted, "max_wait": settings.max_wait})
        return 0
    answer("would run with")
    for link, row in zip(links, rows, strict=True):
        variable = link.key_variable
        keyless = variable and not link.provider.key_optional and not session.environ.get(variable, "").strip()
        answer(
            f"  {row['link']}  window {row['window']:,} ({row['source']}: {row['detail']}),"
            f" compacts at {row['threshold'] or 0:,}, reserve {row['reserve'] or 0:,}"
            + (f"; no key: `{variable}` is not set" if keyless else "")
        )
    shown = ", ".join(f"{key} {value:g}" for key, value in limits.items() if value is not None)
    answer(f"  limits    {shown or 'none'}")
    answer(f"  policy    {policy.name}: {policy.in_words}")
    longest = "" if settings.max_wait is None else f", at most {settings.max_wait:g} hours"
    ends = "the job ends" if settings.on_exhausted == "fail" else f"it waits{longest}"
    answer(f"  waits     when every link rests {ends}")
    answer(f"  until     {order.until or 'the model says that it is finished'}")
    answer(f"  workspace {order.workspace}{instructed(instructions)}")
    answer("nothing was sent")
    return 0
