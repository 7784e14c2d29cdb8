"""What a job is doing, read from its journal by any process; nothing here is stored a second time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentx.agent.limits import Totals
from agentx.errors import StateError
from agentx.events import Requested, ToolStarted, Waiting
from agentx.jobs.lock import Owner, held
from agentx.jobs.store import Job
from agentx.journal import Journal

State = Literal["running", "waiting", "idle", "stopped", "interrupted", "ended"]

RUN_BOUNDS = ("job.started", "job.resumed", "job.ended")

ENDING = ("ending", "exit", "message", "hint", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One line of `agentx ps`. `used` and `window` are tokens, `cost` US dollars, `seconds` time at work."""

    id: str
    name: str | None
    state: State
    pid: int | None
    link: str | None
    model: str | None
    turn: int
    used: int
    window: int | None
    cost: float
    doing: str
    waiting_until: str | None
    started: float
    seconds: float
    task: str
    workspace: str
    chain: list[str]
    ending: Mapping[str, Any] | None
    totals: Totals

    def to_json(self) -> dict[str, Any]:
        """As `ps --json` has it."""
        names = ("id", "name", "state", "pid", "link", "model", "turn", "used", "window", "cost", "doing")
        shown = {name: getattr(self, name) for name in names}
        return shown | {"waiting_until": self.waiting_until, "started": self.started, "seconds": self.seconds}

    def to_json_whole(self) -> dict[str, Any]:
        """As `show --json` has it."""
        more = {"task": self.task, "workspace": self.workspace, "chain": self.chain, "ending": self.ending}
        return self.to_json() | more | {"totals": self.totals.to_json()}


def status(job: Job, now: float) -> Status:
    """The state of *job*. Raises StateError when its journal cannot be read."""
    journal = job.journal(read_only=True)
    try:
        return _status(job, journal, now)
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # a journal that was not written by agentx
        raise StateError(f"{job.id}: the journal is broken: {error}") from error
    finally:
        journal.close()


def _status(job: Job, journal: Journal, now: float) -> Status:
    bounds = journal.read(types=RUN_BOUNDS)
    if not bounds:
        raise StateError(
            f"{job.id}: it never began",
            hint=f"`agentx resume {job.id}` begins it; `rm -r {job.folder}` forgets it",
        )
    first, last = bounds[0], bounds[-1]
    started = first.event.fields()
    runs = held(job.lock_file)
    ending = last.event.fields() if last.event.type == "job.ended" else None
    selected = journal.last("link.selected")
    link = selected.event.fields() if selected else {}
    recent = journal.last()
    waiting = recent.event if recent and isinstance(recent.event, Waiting) else None
    owner = Owner.from_json(journal.meta("owner") or "")
    used = totals(journal, now if runs else None)
    return Status(
        id=job.id,
        name=journal.meta("name"),
        state=_state(ending if not runs else None, runs, waiting is not None),
        pid=owner.pid if runs and owner else None,
        link=link.get("link"),
        model=link.get("model"),
        turn=used.turns,
        used=_used(journal),
        window=link.get("window"),
        cost=used.cost,
        doing=_doing(journal) if runs else "",
        waiting_until=waiting.until if waiting and runs else None,
        started=first.time,
        seconds=used.seconds,
        task=started["task"],
        workspace=started["workspace"],
        chain=list(started["chain"]),
        ending=None if ending is None or runs else {key: ending[key] for key in ENDING},
        totals=used,
    )


def _state(ending: Mapping[str, Any] | None, runs: bool, waiting: bool) -> State:
    if runs:
        return "waiting" if waiting else "running"
    if ending is None or ending["ending"] == "interrupted":
        return "interrupted"
    return "stopped" if ending["ending"] == "stopped" else "ended"


def _used(journal: Journal) -> int:
    """Tokens of the last turn, as the provider counted them: prompt and reply; the estimate where it did not."""
    rows = journal.query(
        "select json_extract(data, '$.usage.input') + json_extract(data, '$.usage.output')"
        " from entries where type = 'reply' and json_extract(data, '$.purpose') = 'turn'"
        " order by seq desc limit 1"
    )
    if rows and rows[0][0] is not None:
        return int(rows[0][0])
    request = journal.last("request")
    return request.event.estimate if request and isinstance(request.event, Requested) else 0


def _doing(journal: Journal) -> str:
    """What the job does at this moment, in a few words."""
    last = journal.last("request", "reply", "tool.started", "tool.ended", "waiting", "job.started", "job.resumed")
    match last.event if last else None:
        case ToolStarted() as tool:
            return f"{tool.name} {shortened(tool.arguments)}".rstrip()
        case Requested(purpose="summary"):
            return "summarising"
        case Requested() as request:
            return f"asking {request.link}"
        case Waiting() as waiting:
            return f"waiting: {waiting.reason}"
        case _:
            return "working"


def shortened(arguments: Mapping[str, Any], most: int = 60) -> str:
    """The arguments of a call in a few words, for people."""
    text = " ".join(" ".join(str(value).split()) for value in arguments.values()).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def totals(journal: Journal, now: float | None = None) -> Totals:
    """What the job has used. Time counts only while a process ran; *now* closes a run that still goes on."""
    return Meter(journal).read(now)


class Meter:
    """The totals of a journal that grows: who asks at each turn reads each time only what is new."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen = 0
        self._used = Totals()

    def read(self, now: float | None = None) -> Totals:
        """The totals; *now* closes a run that still goes on."""
        ((newest,),) = self._journal.query("select coalesce(max(seq), 0) from entries")
        used, new = self._used, (self._seen, newest)
        (row,) = self._journal.query(
            "select total(json_extract(data, '$.purpose') = 'turn'), total(json_extract(data, '$.cost')),"
            " total(json_extract(data, '$.cost') is null), total(json_extract(data, '$.usage.input')),"
            " total(json_extract(data, '$.usage.output')) from entries"
            " where type = 'reply' and seq > ? and seq <= ?",
            new,
        )
        counts = dict(
            self._journal.query(
                "select type, count(*) from entries where type in ('compaction', 'link.switched')"
                " and seq > ? and seq <= ? group by type",
                new,
            )
        )
        self._seen = newest
        self._used = used = Totals(
            turns=used.turns + int(row[0]),
            cost=used.cost + row[1],
            unpriced=used.unpriced + int(row[2]),
            input=used.input + int(row[3]),
            output=used.output + int(row[4]),
            compactions=used.compactions + counts.get("compaction", 0),
            switches=used.switches + counts.get("link.switched", 0),
        )
        seconds = round(_seconds_at_work(self._journal, now), 3)
        return replace(used, cost=round(used.cost, 6), seconds=seconds)


def _seconds_at_work(journal: Journal, now: float | None) -> float:
    """Each run counts from its first entry to its last; what lies between two runs does not."""
    starts = journal.query(
        "select seq, time from entries where type in ('job.started', 'job.resumed') order by seq"
    )
    total = 0.0
    for (_, begin), following in zip(starts, [*starts[1:], None], strict=True):
        before = "" if following is None else f" where seq < {int(following[0])}"
        ((end,),) = journal.query(f"select time from entries{before} order by seq desc limit 1")
        if following is None and now is not None:
            end = max(end, now)
        total += max(0.0, end - begin)
    return total
