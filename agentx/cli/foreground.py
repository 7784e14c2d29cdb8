"""A job in this very process, watched by a person or read by a program."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO, TypeVar

from agentx.cli.live import Live
from agentx.cli.output import answer, heard_or_not, tell
from agentx.cli.session import Session
from agentx.config.links import Link
from agentx.config.load import Config
from agentx.events import Event
from agentx.jobs.assemble import Surroundings, key_values
from agentx.jobs.run import run_job
from agentx.jobs.store import Job, Order
from agentx.journal import Entry
from agentx.tools.cleaning import Redactor

Told = TypeVar("Told")
STORY_SO_FAR = ("link.selected", "reply", "tool.started", "tool.ended")


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
        read_config=lambda: session.config(Path(order.workspace)),
    )


def check_order(session: Session, order: Order) -> None:
    """Raise now what would be raised in the background."""
    surroundings(session, order)


def foreground(job: Job, around: Surroundings, *, as_json: bool, said: str | None = None) -> int:
    """Run *job* here; events as JSON lines, or the story on stderr and the answer on stdout. The exit code.

    The job goes on when nobody can be told any more (a closed pipe, a full disk): the journal has it all.
    """
    if as_json:
        return run_job(job, replace(around, listener=_undisturbed(_json_lines(job), sys.stdout)), said=said).exit
    with heard_or_not(sys.stderr):
        tell(f"job {job.id}")
    story = Live(sys.stderr, earlier=earlier(job), hide=Redactor(key_values(around)).redacted)
    watched = replace(
        around,
        listener=_undisturbed(story.listen, sys.stderr),
        hear=_undisturbed(story.hear, sys.stderr) if story.terminal else None,
    )
    ending = run_job(job, watched, said=said)
    if ending.hint:
        with heard_or_not(sys.stderr):
            tell(f"\nhint: {ending.hint.replace('JOB', job.id)}")
    if ending.answer:
        with heard_or_not(sys.stdout):
            answer(ending.answer)
    return ending.exit


def earlier(job: Job) -> list[Event]:
    """What happened before this run, as far as the story needs it: turns, the link, calls without an ending."""
    journal = job.journal(read_only=True)
    try:
        return [entry.event for entry in journal.read(types=STORY_SO_FAR)]
    finally:
        journal.close()


def _undisturbed(listener: Callable[[Told], object], stream: TextIO) -> Callable[[Told], None]:
    def listen(told: Told) -> None:
        with heard_or_not(stream):
            listener(told)

    return listen


def _json_lines(job: Job) -> Callable[[Entry], None]:
    def listen(entry: Entry) -> None:
        sys.stdout.write(entry.line(job.id) + "\n")
        sys.stdout.flush()

    return listen
