"""A job in this very process, watched by a person or read by a program."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from agentx.cli.live import live
from agentx.cli.output import answer, tell
from agentx.cli.session import Session
from agentx.config.links import Link
from agentx.config.load import Config
from agentx.jobs.assemble import Listener, Surroundings
from agentx.jobs.run import run_job
from agentx.jobs.store import Job, Order
from agentx.journal import Entry


def links_of(session: Session, config: Config, order: Order) -> tuple[Link, ...]:
    """The chain that *order* asks for, or one made of what is there. Raises NoUsableModel."""
    links = config.chain(order.chain)
    if links:
        return links
    from agentx.chain.automatic import automatic_links
    from agentx.wires.local import installed
    from agentx.wires.make import client

    async def ask() -> tuple[Link, ...]:
        async with client() as http:
            return await automatic_links(config, http, session.environ, lambda: installed(session.environ))

    return asyncio.run(ask())


def surroundings(session: Session, order: Order) -> Surroundings:
    """What the job is given from outside. Raises ConfigError, NoUsableModel."""
    config = session.config(Path(order.workspace))
    return Surroundings(
        paths=session.paths(),
        environ=session.environ,
        config=config,
        links=links_of(session, config, order),
    )


def check_order(session: Session, order: Order) -> None:
    """Raise now what would be raised in the background."""
    surroundings(session, order)


def foreground(job: Job, around: Surroundings, *, as_json: bool, said: str | None = None) -> int:
    """Run *job* here; events as JSON lines, or the story on stderr and the answer on stdout. The exit code."""
    listener = _json_lines(job) if as_json else live()
    if not as_json:
        tell(f"job {job.id}")
    ending = run_job(job, replace(around, listener=listener), said=said)
    if as_json:
        return ending.exit
    if ending.hint:
        tell(f"\nhint: {ending.hint.replace('JOB', job.id)}")
    if ending.answer:
        answer(ending.answer)
    return ending.exit


def _json_lines(job: Job) -> Listener:
    def listen(entry: Entry) -> None:
        sys.stdout.write(entry.line(job.id) + "\n")
        sys.stdout.flush()

    return listen
