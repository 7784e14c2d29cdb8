"""What can happen in a job, one frozen class for each kind; to one JSON line and back.

The names and fields are a contract (DESIGN.md section 9): programs read them with `agentx events` and
`agentx run --json`. Fields are only ever added. A line also has `seq`, `time` and `job`, which the journal
gives. What only the job itself needs (the text of a reply, a checkpoint) is the journal's *payload*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

Fields = Mapping[str, Any]
Purpose = Literal["turn", "summary", "probe"]


def no_fields() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The root of all kinds. A trailing underscore in a field's name is not part of the JSON key."""

    type: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        return {f.name.rstrip("_"): getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    """`limits` maps `cost`, `hours`, `turns`, `tokens` to a number or null; `caps` maps links that are only used
    within a cap to US dollars, or to null where it is `limits.cost`. `instructions` is what AGENTS.md takes of
    every request, in tokens (estimated)."""

    type = "job.started"
    task: str
    chain: Sequence[str]
    workspace: str
    limits: Fields
    version: str
    name: str | None = None
    caps: Fields = field(default_factory=no_fields)
    instructions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed(Event):
    """A process took the job up again; `reason` says why it had ended before. `seen` (UTC, ISO form) is when a
    process that died without a word was last known to wait. `instructions` is as in `job.started`. `purpose` is
    `work`, or `compact` where the job is only compacted; then it ends as it had ended before."""

    type = "job.resumed"
    reason: str
    version: str
    seen: str | None = None
    caps: Fields = field(default_factory=no_fields)
    purpose: Literal["work", "compact"] = "work"
    instructions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(Event):
    """Something a person said after the task: a correction, sent or given with `resume`."""

    type = "message"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudged(Event):
    """Something agentx itself said to the model: to go on, to stop repeating, to wrap up."""

    type = "nudge"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSelected(Event):
    """`window`, `threshold` and `reserve` are tokens, of this link as it is now."""

    type = "link.selected"
    link: str
    model: str
    window: int
    window_source: str
    threshold: int
    reserve: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(Event):
    """`messages` is their number; `estimate` and `max_tokens` are tokens.

    Of a turn, `system` and `tools` are the parts of `estimate` that are system prompt and descriptions of tools,
    and `view` is the `seq` of the compaction whose checkpoint it was made with, 0 for the whole conversation."""

    type = "request"
    link: str
    model: str
    messages: int
    estimate: int
    max_tokens: int | None
    purpose: Purpose = "turn"
    system: int = 0
    tools: int = 0
    view: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied(Event):
    """`usage` has input, output, cache_read, cache_write, reasoning in tokens (input includes cached ones).

    `cost` is in US dollars, null when the price is not known."""

    type = "reply"
    link: str
    model: str
    finish: str
    usage: Fields | None
    seconds: float
    cost: float | None = None
    purpose: Purpose = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFailed(Event):
    """One attempt that brought no reply. `retry_at` is UTC in ISO form; `limit` and `actual` are tokens, where a
    refusal said them.

    `seconds` is what the attempt took, `pause` what was waited before the same link was asked again. `tokens` has
    input and output, null where nothing was reported; `cost` is in US dollars, null when it is not known."""

    type = "link.failed"
    link: str
    class_: str
    status: int | None
    message: str
    retry_at: str | None = None
    limit: int | None = None
    actual: int | None = None
    seconds: float = 0.0
    pause: float = 0.0
    tokens: Fields | None = None
    cost: float | None = None
    purpose: Purpose = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSwitched(Event):
    """`seconds_lost` is what the failed attempts took that led to it, pauses included and waits not. `paid`: the
    new link costs money (it is marked `paid` or has a `max_cost`) and the one before did not."""

    type = "link.switched"
    from_: str
    to: str
    reason: str
    seconds_lost: float = 0.0
    paid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Event):
    """Nothing can be asked until `until` (UTC, ISO form)."""

    type = "waiting"
    until: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken(Event):
    """The last `waiting` is over before its time, because of `reason`."""

    type = "woken"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLearned(Event):
    """The endpoint proved a window of `value` tokens; before, `was` was believed."""

    type = "window.learned"
    link: str
    value: int
    was: int | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(Event):
    """The server read `reported` tokens of about `estimate`, and answered 200."""

    type = "truncated"
    link: str
    reported: int
    estimate: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    type = "tool.started"
    id: str
    name: str
    arguments: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded(Event):
    """`bytes` is the size of the whole result; `clipped` says that the model saw only head and tail of it."""

    type = "tool.ended"
    id: str
    name: str
    ok: bool
    seconds: float
    bytes: int
    clipped: bool = False
    restored_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Event):
    """`tiers` is a list of {tier, name, before, after, ok, why}, with the breaker's `cause` where a model failed.
    All sizes are tokens."""

    type = "compaction"
    cause: str
    policy: str
    tiers: Sequence[Fields]
    before: int
    after: int
    effective: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged(Event):
    type = "breaker"
    state: str
    cause: str
    until: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesUpdated(Event):
    type = "notes"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpdated(Event):
    """`items` is a list of {text, done}."""

    type = "plan"
    items: Sequence[Fields]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    type = "warning"
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """The last event of a run. `answer` is the text of the last reply."""

    type = "job.ended"
    ending: str
    exit: int
    message: str
    hint: str | None = None
    answer: str | None = None
    totals: Fields = field(default_factory=no_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event of a newer agentx: kept and shown, not understood."""

    type = "unknown"
    name: str
    data: Fields

    def fields(self) -> dict[str, Any]:
        return dict(self.data)


KINDS: dict[str, type[Event]] = {
    kind.type: kind
    for kind in (
        JobStarted, JobResumed, UserMessage, Nudged, LinkSelected, Requested, Replied, LinkFailed, LinkSwitched,
        Waiting, Woken, WindowLearned, Truncated, ToolStarted, ToolEnded, Compacted, BreakerChanged, NotesUpdated,
        PlanUpdated, Warned, JobEnded,
    )
}  # fmt: skip


def name_of(event: Event) -> str:
    """The event's `type` as it stands in JSON."""
    return event.name if isinstance(event, Unknown) else event.type


def from_fields(name: str, data: Fields) -> Event:
    """The event of kind *name* with *data*; fields that this version does not know are left out."""
    kind = KINDS.get(name)
    if kind is None:
        return Unknown(name=name, data=data)
    known = {f.name.rstrip("_"): f.name for f in fields(kind)}
    return kind(**{known[key]: value for key, value in data.items() if key in known})


def utc(seconds: float) -> str:
    """Epoch *seconds* as UTC in ISO form, to the millisecond: `2026-11-29T02:14:09.120Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(seq: int, time: float, job: str, event: Event) -> str:
    """One JSON line, as `agentx events` prints it."""
    head = {"seq": seq, "time": utc(time), "job": job, "type": name_of(event)}
    return json.dumps(head | event.fields(), ensure_ascii=False)
