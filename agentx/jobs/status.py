"""What a job is doing, read from its journal by any process; nothing here is stored a second time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentx.agent.limits import Totals
from agentx.errors import StateError
from agentx.events import Compacted, JobResumed, JobStarted, Requested, ToolStarted, Waiting
from agentx.jobs.lock import Owner, held
from agentx.jobs.meter import totals
from agentx.jobs.store import Job
from agentx.journal import Entry, Journal

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
    spending: list[Mapping[str, Any]]
    """Links that are only used within a cap: `link`, `cost` and `max_cost` in US dollars."""

    def to_json(self) -> dict[str, Any]:
        """As `ps --json` has it."""
        names = ("id", "name", "state", "pid", "link", "model", "turn", "used", "window", "cost", "doing")
        shown = {name: getattr(self, name) for name in names}
        return (
            shown
            | {"waiting_until": self.waiting_until, "started": self.started, "seconds": self.seconds}
            | {"spending": self.spending}
        )

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
        spending=_spending(journal, bounds),
    )


def _spending(journal: Journal, bounds: Sequence[Entry]) -> list[Mapping[str, Any]]:
    """What was spent on the links that the newest run uses within a cap."""
    runs = [e.event for e in bounds if isinstance(e.event, JobStarted | JobResumed)]
    caps: Mapping[str, Any] = runs[-1].caps if runs else {}
    spent = dict(
        journal.query(
            "select json_extract(data, '$.link'), total(json_extract(data, '$.cost')) from entries"
            " where type in ('reply', 'link.failed') group by 1"
        )
    )
    return [{"link": link, "cost": round(spent.get(link, 0.0), 6), "max_cost": cap} for link, cap in caps.items()]


def _state(ending: Mapping[str, Any] | None, runs: bool, waiting: bool) -> State:
    if runs:
        return "waiting" if waiting else "running"
    if ending is None or ending["ending"] == "interrupted":
        return "interrupted"
    return "stopped" if ending["ending"] == "stopped" else "ended"


def _used(journal: Journal) -> int:
    """Tokens of the last turn, as the provider counted them: prompt and reply; the estimate where it did not.

    After a compaction it is what that left.
    """
    rows = journal.query(
        "select seq, json_extract(data, '$.usage.input') + json_extract(data, '$.usage.output')"
        " from entries where type = 'reply' and json_extract(data, '$.purpose') = 'turn'"
        " order by seq desc limit 1"
    )
    compacted = journal.last("compaction")
    if compacted and isinstance(compacted.event, Compacted) and (not rows or compacted.seq > rows[0][0]):
        return compacted.event.after
    if rows and rows[0][1] is not None:
        return int(rows[0][1])
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
