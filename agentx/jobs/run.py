"""A job in this process: everything is put together here, run to its ending, and the ending is written down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path

from agentx import __version__
from agentx.agent.ending import Ending, ending_of, interrupted, unfinished
from agentx.context.measure import text_tokens
from agentx.errors import AgentxError, StateError
from agentx.events import JobEnded, JobResumed, JobStarted, Warned, utc
from agentx.jobs.assemble import Surroundings, assemble, key_values, limits_of, write_log
from agentx.jobs.lock import JobLock, Owner
from agentx.jobs.meter import SEEN, totals
from agentx.jobs.store import Job, Order
from agentx.jobs.workspace import instructions_of
from agentx.journal import Journal
from agentx.tools.cleaning import Redactor
from agentx.wires.messages import Message

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_job(job: Job, around: Surroundings, *, said: str | None = None) -> Ending:
    """Run *job* here until it ends; *said* is what a person adds on resuming. The ending is in the journal.

    Raises StateError when another process runs it, or when its journal cannot be written.
    """
    with JobLock(job.lock_file):
        journal = job.journal()
        try:
            if around.listener is not None:
                journal.listen(around.listener)
            hide = Redactor(key_values(around)).redacted
            journal.hide(hide)
            _begin(journal, around, said)
            return asyncio.run(_to_the_end(job, journal, around, hide))
        finally:
            journal.close()


def _begin(journal: Journal, around: Surroundings, said: str | None) -> None:
    """The first entries of this run, and who runs it."""
    order = Order.from_json(journal.meta("order") or "{}")
    limits = limits_of(around.config)
    caps = around.caps
    instructions = text_tokens(instructions_of(Path(order.workspace)).text)
    if journal.last("job.started") is None:
        started = JobStarted(
            task=order.task,
            chain=[link.name for link in around.links],
            workspace=order.workspace,
            limits=limits.to_json(),
            version=__version__,
            name=order.name,
            caps=caps,
            instructions=instructions,
        )
        journal.append(started, {"message": Message(role="user", text=order.task).to_json()}, durable=True)
    else:
        was = journal.last("job.ended", "job.resumed", "job.started")
        ended = was.event if was and isinstance(was.event, JobEnded) else None
        reason = ended.ending if ended else "interrupted"
        seen = journal.meta(SEEN) if ended is None else None
        seen_at = utc(float(seen)) if seen else None
        resumed = JobResumed(
            reason=reason, version=__version__, seen=seen_at, caps=caps, instructions=instructions
        )
        journal.append(resumed)
        for letter in journal.letters("stop"):
            journal.take(letter)
    journal.set_meta("owner", json.dumps(asdict(Owner.current())))
    if said:
        journal.post("message", said)
    for warning in around.config.warnings:
        journal.append(Warned(message=warning))


async def _to_the_end(job: Job, journal: Journal, around: Surroundings, hide: Callable[[str], str]) -> Ending:
    """Run until the ending is written, whatever happens; signals end it as `interrupted`.

    A second signal ends the waiting for commands that do not end when they are asked to.
    """
    loop = asyncio.get_running_loop()
    work = asyncio.current_task()
    assert work is not None
    caught: list[int] = []

    def on_signal(number: int) -> None:
        caught.append(number)
        if len(caught) <= 2:  # more would break off what puts things in order
            work.cancel()

    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:  # `nohup` wants it ignored
            loop.add_signal_handler(number, on_signal, number)
    ending = await _ending(job, journal, around, caught, hide)
    return _end(journal, ending)  # no await between here and the end: no signal comes in between


async def _ending(
    job: Job, journal: Journal, around: Surroundings, caught: Sequence[int], hide: Callable[[str], str]
) -> Ending:
    try:
        async with AsyncExitStack() as stack:
            agent = await assemble(job, journal, around, stack)
            return await agent.run()
    except asyncio.CancelledError:
        if not caught:
            raise
        return interrupted(caught[0])
    except AgentxError as error:
        return ending_of(error)
    except Exception as error:  # noqa: BLE001  the job's last line: whatever broke, the job has an ending
        write_log(job, traceback.format_exc(), hide)
        return unfinished(
            f"internal error: {type(error).__name__}: {error}",
            hint=f"the traceback is in {job.log}; please report it, then `agentx resume {job.id}`",
        )


def _end(journal: Journal, ending: Ending) -> Ending:
    """Write *ending* down; what is given back is what was written. Raises StateError when it cannot be written."""
    answer = ending.answer if ending.answer is not None else last_answer(journal)
    entry = journal.append(
        JobEnded(
            ending=ending.name,
            exit=ending.exit,
            message=ending.message,
            hint=ending.hint,
            answer=answer,
            totals=totals(journal, time.time()).to_json(),
        ),
        durable=True,
    )
    with contextlib.suppress(StateError):  # the ending stands; a full disk only keeps the journal in two files
        journal.shrink()
    assert isinstance(entry.event, JobEnded)
    return replace(ending, message=entry.event.message, hint=entry.event.hint, answer=entry.event.answer)


def last_answer(journal: Journal) -> str | None:
    """The text of the last reply of a turn."""
    rows = journal.query(
        "select json_extract(payload, '$.message.text') from entries where type = 'reply'"
        " and payload is not null order by seq desc limit 1"
    )
    return rows[0][0] if rows else None
