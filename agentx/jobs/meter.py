"""What a job has used and lost, summed up from the events of its journal; nothing here is stored a second time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentx.agent.limits import Failed, Lost, Totals
from agentx.journal import Journal

SEEN = "seen"
"""The journal's small fact of when a waiting process was last alive (epoch seconds)."""

Range = tuple[int, int]
"""Entries after the first `seq`, up to the second."""


def totals(journal: Journal, now: float | None = None) -> Totals:
    """What the job has used. Time counts only while a process ran; *now* closes a run that still goes on."""
    return Meter(journal).read(now)


@dataclass(slots=True)
class _Sums:
    """What is added up entry by entry; `failing` are the seconds of failed attempts, `switching` those of them
    that led to another link."""

    replies: Totals = field(default_factory=Totals)
    attempts: Counter[str] = field(default_factory=Counter[str])
    failed: Failed = field(default_factory=Failed)
    failing: float = 0.0
    switching: float = 0.0


class Meter:
    """The totals of a journal that grows: who asks at each turn reads each time only what is new."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen = 0
        self._sums = _Sums()

    def read(self, now: float | None = None) -> Totals:
        """The totals; *now* closes a run that still goes on."""
        ((newest,),) = self._journal.query("select coalesce(max(seq), 0) from entries")
        new = (self._seen, newest)
        self._seen = newest
        self._replies(new)
        self._failures(new)
        self._steps(new)
        sums, used, failed = self._sums, self._sums.replies, self._sums.failed
        runs = _runs(self._journal, now)
        lost = Lost(
            waiting=round(_waited(self._journal, runs), 3),
            retrying=round(max(0.0, sums.failing - sums.switching), 3),
            switching=round(sums.switching, 3),
        )
        return replace(
            used,
            seconds=round(sum(run.seconds for run in runs), 3),
            cost=round(used.cost + failed.cost, 6),
            input=used.input + failed.input,
            output=used.output + failed.output,
            lost=lost,
            failed=replace(failed, cost=round(failed.cost, 6), attempts=dict(sums.attempts)),
        )

    def _replies(self, new: Range) -> None:
        (row,) = self._journal.query(
            "select total(json_extract(data, '$.purpose') = 'turn'), total(json_extract(data, '$.cost')),"
            " total(json_extract(data, '$.cost') is null), total(json_extract(data, '$.usage.input')),"
            " total(json_extract(data, '$.usage.output')) from entries"
            " where type = 'reply' and seq > ? and seq <= ?",
            new,
        )
        used = self._sums.replies
        self._sums.replies = replace(
            used,
            turns=used.turns + int(row[0]),
            cost=used.cost + row[1],
            unpriced=used.unpriced + int(row[2]),
            input=used.input + int(row[3]),
            output=used.output + int(row[4]),
        )

    def _failures(self, new: Range) -> None:
        for row in self._journal.query(
            "select json_extract(data, '$.class'), count(*), total(json_extract(data, '$.tokens.input')),"
            " total(json_extract(data, '$.tokens.output')), total(json_extract(data, '$.cost')),"
            " total(json_extract(data, '$.cost') is null),"
            " total(json_extract(data, '$.seconds')) + total(json_extract(data, '$.pause')) from entries"
            " where type = 'link.failed' and seq > ? and seq <= ? group by 1",
            new,
        ):
            before = self._sums.failed
            self._sums.attempts[str(row[0])] += int(row[1])
            self._sums.failing += row[6]
            self._sums.failed = replace(
                before,
                input=before.input + int(row[2]),
                output=before.output + int(row[3]),
                cost=before.cost + row[4],
                unpriced=before.unpriced + int(row[5]),
            )

    def _steps(self, new: Range) -> None:
        counts = {
            str(kind): (int(number), float(lost))
            for kind, number, lost in self._journal.query(
                "select type, count(*), total(json_extract(data, '$.seconds_lost')) from entries"
                " where type in ('compaction', 'link.switched') and seq > ? and seq <= ? group by type",
                new,
            )
        }
        used = self._sums.replies
        switches, lost = counts.get("link.switched", (0, 0.0))
        self._sums.switching += lost
        self._sums.replies = replace(
            used,
            compactions=used.compactions + counts.get("compaction", (0, 0.0))[0],
            switches=used.switches + switches,
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """One process at work: its first entry, the first of the next run (None for the last), and its time."""

    first: int
    following: int | None
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.end - self.begin)


def _runs(journal: Journal, now: float | None) -> list[_Run]:
    """Each run counts from its first entry to its last, or to when it was last seen waiting; what lies between
    two runs does not."""
    starts = journal.query(
        "select seq, time, json_extract(data, '$.seen') from entries"
        " where type in ('job.started', 'job.resumed') order by seq"
    )
    runs: list[_Run] = []
    for (first, begin, _), following in zip(starts, [*starts[1:], None], strict=True):
        before = "" if following is None else f" where seq < {int(following[0])}"
        ((last, end),) = journal.query(f"select type, time from entries{before} order by seq desc limit 1")
        if following is not None:
            end = max(end, _epoch(following[2]))
        elif now is not None:
            end = max(end, now)
        elif last != "job.ended":
            end = max(end, float(journal.meta(SEEN) or 0.0))
        runs.append(_Run(first, None if following is None else following[0], begin, end))
    return runs


def _waited(journal: Journal, runs: list[_Run]) -> float:
    """Seconds of all waits. A wait ends with what happens next in its run, whatever is warned of meanwhile, or
    with the run."""
    waits = journal.query(
        "select seq, time, (select min(seq) from entries as next where next.seq > entries.seq"
        " and next.type != 'warning') from entries where type = 'waiting' order by seq"
    )
    total = 0.0
    for seq, begin, following in waits:
        run = next(run for run in reversed(runs) if run.first <= seq)
        if following is None or (run.following is not None and following >= run.following):
            end = run.end
        else:
            ((end,),) = journal.query("select time from entries where seq = ?", (following,))
        total += max(0.0, end - begin)
    return total


def _epoch(iso: str | None) -> float:
    return 0.0 if iso is None else datetime.fromisoformat(iso).timestamp()
