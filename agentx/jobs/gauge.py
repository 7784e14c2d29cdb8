"""The gauge of a job's context: what fills it, what it may hold, what compaction did; read from its journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agentx.context.contents import contents
from agentx.context.items import KINDS, Transcript
from agentx.context.state import State
from agentx.errors import StateError
from agentx.events import LinkSelected, utc
from agentx.jobs.lock import held
from agentx.jobs.status import Status, status
from agentx.jobs.store import Job
from agentx.journal import Entry, Journal

WORST_FIRST = ("open", "half_open", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """As `context --json` has it. Sizes are tokens; what is not known before the first request is None.

    `used` is what the next request would hold: what the provider counted (`counted`) and an estimate of what came
    since. `fills` says of what, and adds up to it. `checkpoints` are the compactions that a view can be made with.
    """

    id: str
    name: str | None
    state: str
    waiting_until: str | None
    link: str | None
    model: str | None
    window: int | None
    window_source: str | None
    threshold: int | None
    reserve: int | None
    used: int
    counted: bool
    fills: Mapping[str, int]
    messages: int
    left_out: int
    journal: list[Mapping[str, Any]]
    checkpoints: list[Mapping[str, Any]]
    compactions: list[Mapping[str, Any]]
    breaker: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The newest request of a turn: what its view was made of."""

    seq: int = 0
    system: int = 0
    tools: int = 0
    view: int = 0


def gauge(job: Job, now: float) -> Gauge:
    """The gauge of *job*, whether it runs or not. Raises StateError when its journal cannot be read."""
    journal = job.journal(read_only=True)
    try:
        begun = journal.last("job.started") is not None
        return _gauge(job, journal, status(job, now) if begun else None, now)
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # a journal that was not written by agentx
        raise StateError(f"{job.id}: the journal is broken: {error}") from error
    finally:
        journal.close()


def _gauge(job: Job, journal: Journal, found: Status | None, now: float) -> Gauge:
    state = State()
    state.read(journal)
    selected = journal.last("link.selected")
    link = selected.event if selected and isinstance(selected.event, LinkSelected) else None
    asked = _asked(journal)
    used = _generation(state, asked)
    filled = contents(
        state,
        _identity(journal, link.link) if link else "",
        generation=used,
        system=asked.system,
        tools=asked.tools,
    )
    compactions = journal.read(types=("compaction",))
    return Gauge(
        id=job.id,
        name=journal.meta("name"),
        state=found.state if found else "running" if held(job.lock_file) else "idle",
        waiting_until=found.waiting_until if found else None,
        link=link.link if link else None,
        model=link.model if link else None,
        window=link.window if link else None,
        window_source=link.window_source if link else None,
        threshold=link.threshold if link else None,
        reserve=link.reserve if link else None,
        used=filled.used,
        counted=filled.counted,
        fills={str(part): size for part, size in filled.fills.items()},
        messages=filled.messages,
        left_out=filled.left_out,
        journal=_kinds(state.transcript),
        checkpoints=[
            _checkpoint(one, in_use=one.seq == used) for one in compactions if one.seq in state.checkpoints
        ],
        compactions=[{"seq": one.seq, "time": utc(one.time)} | one.event.fields() for one in compactions],
        breaker=_breaker(state, now),
    )


def _asked(journal: Journal) -> _Asked:
    rows = journal.query(
        "select seq, json_extract(data, '$.system'), json_extract(data, '$.tools'), json_extract(data, '$.view')"
        " from entries where type = 'request' and json_extract(data, '$.purpose') = 'turn'"
        " order by seq desc limit 1"
    )
    return _Asked(*(int(value or 0) for value in rows[0])) if rows else _Asked()


def _generation(state: State, asked: _Asked) -> int:
    """The checkpoint in use: that of a compaction since the newest request, else that of the request."""
    newest = max(state.checkpoints, default=0)
    if newest > asked.seq:
        return newest
    return asked.view if asked.view in state.checkpoints else 0


def _identity(journal: Journal, link: str) -> str:
    """The identity of the link of that name, as its newest reply tells it; empty before its first."""
    rows = journal.query(
        "select json_extract(payload, '$.view.link') from entries where type = 'reply' and payload is not null"
        " and json_extract(data, '$.link') = ? order by seq desc limit 1",
        (link,),
    )
    return str(rows[0][0] or "") if rows else ""


def _kinds(transcript: Transcript) -> list[Mapping[str, Any]]:
    """The whole conversation by kind of entry, whether a view shows it or not."""
    rows: list[Mapping[str, Any]] = []
    for type_, kind in KINDS.items():
        items = [item for item in transcript.between(0) if item.kind == kind]
        characters = sum(
            len(item.message.text) + sum(len(call.name) + len(call.arguments) for call in item.message.tool_calls)
            for item in items
        )
        if items:
            tokens = sum(item.tokens for item in items)
            rows.append({"type": type_, "messages": len(items), "characters": characters, "tokens": tokens})
    return rows


def _checkpoint(entry: Entry, *, in_use: bool) -> dict[str, Any]:
    told = entry.event.fields()
    by = [tier.get("name", tier["tier"]) for tier in told["tiers"] if tier["ok"]]
    return {
        "generation": entry.seq,
        "time": utc(entry.time),
        "cause": told["cause"],
        "by": by,
        "before": told["before"],
        "after": told["after"],
        "in_use": in_use,
    }


def _breaker(state: State, now: float) -> dict[str, Any] | None:
    """Every cause that has failures in a row, and the worst of them; None when there is none.

    `until` is when a cause cools down by itself, in UTC; growth of the conversation re-arms it sooner.
    """
    breaker, tokens = state.breaker, state.transcript.tokens_after(0)
    causes: list[dict[str, Any]] = []
    for cause, strikes in breaker.causes.items():
        until = breaker.until(cause)
        known = {"cause": cause, "state": breaker.state(cause, now, tokens), "failures": strikes.count}
        causes.append(known | {"until": None if until is None else utc(until)})
    if not causes:
        return None
    worst = min(causes, key=lambda one: WORST_FIRST.index(one["state"]))
    return {"state": worst["state"], "cause": worst["cause"], "until": worst["until"], "causes": causes}
