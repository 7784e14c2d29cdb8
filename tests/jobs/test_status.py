"""Totals: the sums of a journal, read once and then only as far as it grew."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from agentx.agent.limits import Failed, Lost, Totals
from agentx.events import (
    Compacted,
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    LinkFailed,
    LinkSwitched,
    Replied,
    Requested,
    Waiting,
    Warned,
    utc,
)
from agentx.jobs.meter import SEEN, Meter, totals
from agentx.journal import Journal

STARTED = JobStarted(task="t", chain=["a"], workspace="w", limits={}, version="1")
REPLY = Replied(link="a", model="m", finish="stop", usage={"input": 10, "output": 2}, seconds=1.0, cost=0.25)
SUMMARY = Replied(link="a", model="m", finish="stop", usage=None, seconds=1.0, purpose="summary")
COMPACTED = Compacted(cause="c", policy="p", tiers=[], before=9, after=3, effective=True)
REQUEST = Requested(link="a", model="m", messages=1, estimate=10, max_tokens=5)
WAITING = Waiting(until=utc(1_000_000.0), reason="r")
BROKEN = LinkFailed(
    link="a",
    class_="empty_reply",
    status=200,
    message="m",
    seconds=2.0,
    tokens={"input": 100, "output": 7},
    cost=0.5,
)
EVENTS: list[Event] = [
    REPLY,
    SUMMARY,
    COMPACTED,
    LinkSwitched(from_="a", to="b", reason="r", seconds_lost=0.5),
    LinkFailed(link="a", class_="network", status=None, message="m", seconds=0.5, pause=0.25, cost=0.0),
    BROKEN,
    WAITING,
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


def test_failed_attempts_count_by_class_with_what_they_used_and_took(tmp_path: Path) -> None:
    """What led to another link is lost to switching, everything else to retrying."""
    journal = Journal(tmp_path / "journal.db", now=Clock())
    unknown = LinkFailed(link="a", class_="timeout", status=None, message="m", seconds=3.0, pause=0.25)
    switched = LinkSwitched(from_="a", to="b", reason="r", seconds_lost=3.25)
    for event in (STARTED, unknown, switched, BROKEN, REPLY):
        journal.append(event)
    used = totals(journal)
    assert used.lost == Lost(waiting=0.0, retrying=2.0, switching=3.25)
    assert used.failed == Failed(
        attempts={"timeout": 1, "empty_reply": 1}, input=100, output=7, cost=0.5, unpriced=1
    )
    assert (used.cost, used.input, used.output, used.unpriced) == (0.75, 110, 9, 0)


def test_a_wait_lasts_until_something_happens_and_a_warning_does_not_end_it(tmp_path: Path) -> None:
    clock = Clock()
    journal = Journal(tmp_path / "journal.db", now=clock)
    journal.append(STARTED)
    journal.append(WAITING)
    clock.time += 60
    journal.append(Warned(message="m"))
    clock.time += 60
    journal.append(REQUEST)
    clock.time += 60
    journal.append(REPLY)
    assert totals(journal).lost.waiting == 122.0


def test_a_wait_counts_while_it_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    journal = Journal(tmp_path / "journal.db", now=clock)
    journal.append(STARTED)
    journal.append(WAITING)
    assert totals(journal, clock.time + 30).lost.waiting == 30.0


def test_a_wait_that_was_killed_counts_until_its_process_was_last_seen(tmp_path: Path) -> None:
    """Neither the hours in which nobody waited nor nothing at all: before the resume and after it."""
    clock = Clock()
    journal = Journal(tmp_path / "journal.db", now=clock)
    journal.append(STARTED)
    journal.append(WAITING)
    journal.set_meta(SEEN, str(clock.time + 40))
    assert (totals(journal).lost.waiting, totals(journal).seconds) == (40.0, 41.0)
    seen = utc(clock.time + 40)
    clock.time += 10_000
    journal.append(JobResumed(reason="interrupted", version="1", seen=seen))
    journal.append(REQUEST)
    assert (totals(journal).lost.waiting, totals(journal).seconds) == (40.0, 42.0)


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
