"""Totals: the sums of a journal, read once and then only as far as it grew."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from agentx.agent.limits import Totals
from agentx.events import Compacted, Event, JobEnded, JobResumed, JobStarted, LinkSwitched, Replied, Warned
from agentx.jobs.status import Meter, totals
from agentx.journal import Journal

STARTED = JobStarted(task="t", chain=["a"], workspace="w", limits={}, version="1")
REPLY = Replied(link="a", model="m", finish="stop", usage={"input": 10, "output": 2}, seconds=1.0, cost=0.25)
SUMMARY = Replied(link="a", model="m", finish="stop", usage=None, seconds=1.0, purpose="summary")
COMPACTED = Compacted(cause="c", policy="p", tiers=[], before=9, after=3, effective=True)
EVENTS: list[Event] = [
    REPLY,
    SUMMARY,
    COMPACTED,
    LinkSwitched(from_="a", to="b", reason="r"),
    Warned(message="m"),
    JobEnded(ending="stopped", exit=9, message="m"),
    JobResumed(reason="stopped", version="1"),
]


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


def test_totals_count_what_is_known_and_only_the_time_at_work(tmp_path: Path) -> None:
    clock = Clock()
    journal = Journal(tmp_path / "journal.db", now=clock)
    for event in (STARTED, REPLY, SUMMARY, COMPACTED, JobEnded(ending="stopped", exit=9, message="m")):
        journal.append(event)
    clock.time += 5_000
    journal.append(JobResumed(reason="stopped", version="1"))
    journal.append(REPLY)
    expected = Totals(turns=2, seconds=5.0, cost=0.5, unpriced=1, input=20, output=4, compactions=1)
    assert totals(journal) == expected
    assert totals(journal, clock.time + 7).seconds == 12.0


@given(st.lists(st.lists(st.sampled_from(EVENTS), max_size=5), max_size=6))
def test_a_meter_reads_the_same_as_one_who_reads_everything(batches: list[list[Event]]) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.db", now=Clock())
        journal.append(STARTED)
        meter = Meter(journal)
        for batch in batches:
            for event in batch:
                journal.append(event)
            assert meter.read() == totals(journal)
        journal.close()
