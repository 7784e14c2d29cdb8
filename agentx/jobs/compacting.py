"""A compaction that somebody asks for: by the job's process at its next turn, or here when no process runs it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace

from agentx import __version__
from agentx.events import JobEnded, JobResumed, Waiting, utc
from agentx.jobs.assemble import Surroundings, assemble, key_values
from agentx.jobs.lock import JobLock, Owner, held
from agentx.jobs.meter import SEEN, totals
from agentx.jobs.store import Job
from agentx.journal import Entry, Journal
from agentx.tools.cleaning import Redactor

LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking a job's process: `entry` tells what was done, None when nothing was yet.

    `gone`: the process has ended without doing it. `waits_until` (UTC, ISO form): it waits for its links.
    """

    entry: Entry | None = None
    gone: bool = False
    waits_until: str | None = None


def ask_to_compact(job: Job, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> Asked:
    """Ask the process of *job*, and look for *seconds* for what came of it. The request stays after that."""
    journal = job.journal()
    try:
        letter = journal.post("compact")
        for _ in range(max(1, round(seconds / LOOK_SECONDS))):
            runs = held(job.lock_file)
            if (entry := journal.answer(letter)) is not None:
                return Asked(entry)
            if not runs:
                journal.take(letter)
                return Asked(gone=True)
            newest = journal.last()
            if newest is not None and isinstance(newest.event, Waiting):
                return Asked(waits_until=newest.event.until)
            sleep(LOOK_SECONDS)
        return Asked()
    finally:
        journal.close()


def compact_job(job: Job, around: Surroundings) -> Entry:
    """Compact *job*, which no process runs: the entry that tells what came of it. It ends as it had ended before.

    Raises StateError when a process runs it, and what keeps it from being put together.
    """
    with JobLock(job.lock_file):
        journal = job.journal()
        try:
            journal.hide(Redactor(key_values(around)).redacted)
            ended = _take_up(journal, around)
            try:
                told = asyncio.run(_compact(job, journal, replace(around, works=False)))
            finally:
                if ended is not None:
                    journal.append(replace(ended, totals=totals(journal, time.time()).to_json()), durable=True)
            for letter in journal.letters("compact"):
                journal.take(letter, answer=told)
            return journal.read(told - 1, limit=1)[0]
        finally:
            journal.close()


def _take_up(journal: Journal, around: Surroundings) -> JobEnded | None:
    """Write down that a process takes the job up to compact it. Gives how the job had ended, if it had."""
    before = journal.last("job.started", "job.resumed", "job.ended")
    ended = before.event if before and isinstance(before.event, JobEnded) else None
    seen = journal.meta(SEEN) if ended is None else None
    journal.append(
        JobResumed(
            reason=ended.ending if ended else "interrupted",
            version=__version__,
            seen=utc(float(seen)) if seen else None,
            caps=around.caps,
            purpose="compact",
        )
    )
    journal.set_meta("owner", json.dumps(asdict(Owner.current())))
    return ended


async def _compact(job: Job, journal: Journal, around: Surroundings) -> int:
    async with AsyncExitStack() as stack:
        agent = await assemble(job, journal, around, stack)
        return await agent.turns.compact_now()
