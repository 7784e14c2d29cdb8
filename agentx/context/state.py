"""What the context knows of a job, folded from its journal entry by entry: the same after a restart as before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentx.context.breaker import Breaker
from agentx.context.checkpoint import Checkpoint
from agentx.context.items import KINDS, Transcript, item_of
from agentx.context.measure import Calibration, Sample, message_tokens, view_fields
from agentx.context.memory import Ledger
from agentx.events import BreakerChanged, Compacted, Replied
from agentx.journal import Entry, Journal
from agentx.wires.messages import Message

MANUAL = "manual"
"""The cause of a compaction that somebody asked for."""
TYPES = (*KINDS, "notes", "plan", "compaction", "breaker")
NEAR = 1.1
"""Of two views whose sizes are nearer than this, the smaller one does for both."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A compaction whose gain no provider has confirmed yet. Sizes are tokens; `measured` says that a provider
    had counted the view before it. Above `below` the next turn would only compact again."""

    generation: int
    before: int
    after: int
    measured: bool
    link: str
    below: int | None = None

    def helped(self, after: int, gain: float) -> bool:
        """Whether a view that has *after* tokens now was worth it: *gain* is the share that must be saved."""
        return after <= self.before * (1 - gain) and (self.below is None or after <= self.below)


@dataclass(slots=True)
class State:
    """Folded by `read`, from entries, so that a restart forgets nothing."""

    transcript: Transcript = field(default_factory=Transcript)
    ledger: Ledger = field(default_factory=Ledger)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict[int, Checkpoint])
    """By generation: the seq of the entry that holds it. Those that show hardly more than another are let go, so
    that a job of a thousand compactions keeps some dozens."""
    samples: dict[tuple[str, int], Sample] = field(default_factory=dict[tuple[str, int], Sample])
    """The newest for each link (its identity) and generation."""
    calibrations: dict[str, Calibration] = field(default_factory=dict[str, Calibration])
    breaker: Breaker = field(default_factory=Breaker)
    pending: Pending | None = None
    judged: Pending | None = None
    """The compaction that the newest reply tells about; whoever reads it judges and forgets it."""
    generation: int = 0
    """Of the view that the last reply came from."""
    asked: int = 0
    """The newest checkpoint that somebody, or the policy's counter, asked for; 0 when nobody did."""
    link: str = ""
    """The identity of the link that the last reply came from."""
    replies: int = 0
    """Tokens: the input and output of each reply since the last compaction, added up."""
    attempts: int = 0
    """Compactions since the last reply that nobody asked for, those that came to nothing included."""
    shown: dict[str, int] = field(default_factory=dict[str, int])
    """The generation that each link (its identity) was shown last."""
    thinking: set[str] = field(default_factory=set[str])
    """Links (by identity) that think before they answer."""
    calling: set[str] = field(default_factory=set[str])
    """Links that have called a tool: their server does read the tools."""
    seen: int = 0

    def read(self, journal: Journal) -> None:
        """Take in what was appended since the last time."""
        for entry in journal.read(self.seen, types=TYPES):
            self.seen = entry.seq
            self._see(entry)

    def calibration(self, link: str) -> Calibration:
        return self.calibrations.get(link, Calibration())

    def _see(self, entry: Entry) -> None:
        item = item_of(entry)
        if item is not None:
            self.transcript.add(item)
            if item.kind == "assistant":
                self.ledger.asked(item.message)
        self.ledger.see(entry)
        payload: Mapping[str, Any] = entry.payload or {}
        event = entry.event
        if isinstance(event, Replied) and event.purpose == "turn":
            self._replied(entry.seq, event, payload)
        elif isinstance(event, Compacted):
            self._compacted(entry.seq, event, payload)
        elif isinstance(event, BreakerChanged) and "breaker" in payload:
            self.breaker = self.breaker.with_json(payload["breaker"])

    def _replied(self, seq: int, event: Replied, payload: Mapping[str, Any]) -> None:
        known = view_fields(payload.get("view"))
        if known is None:
            return
        generation, last, estimate, fixed, link = known
        self.generation = self.shown[link] = generation
        self.link = link
        message: Mapping[str, Any] = payload.get("message") or {}
        usage = event.usage or {}
        self.attempts = 0
        self.replies += _counted(usage, payload)
        if message.get("reasoning") or usage.get("reasoning"):
            self.thinking.add(link)
        if message.get("tool_calls"):
            self.calling.add(link)
        if not usage.get("input"):
            return
        if self.pending is not None and self.pending.generation == generation:
            self.judged, self.pending = self.pending, None
        output = max(0, int(usage.get("output", 0)) - int(usage.get("reasoning", 0)))
        self.samples[link, generation] = Sample(
            generation=generation,
            last=last,
            reply=seq,
            estimate=estimate,
            fixed=fixed,
            input=int(usage["input"]),
            output=output,
        )
        self.calibrations[link] = self.calibration(link).after(int(usage["input"]), estimate)

    def _compacted(self, seq: int, event: Compacted, payload: Mapping[str, Any]) -> None:
        if "breaker" in payload:
            self.breaker = self.breaker.with_json(payload["breaker"])
        self.attempts += event.cause != MANUAL
        if "checkpoint" not in payload:
            return
        self.replies = 0
        self.checkpoints[seq] = Checkpoint.from_json(payload["checkpoint"])
        if event.cause == MANUAL or self.checkpoints[seq].instead:
            self.asked = seq
        self._thin_out(seq)
        self.pending = (
            None
            if payload.get("waits")
            else Pending(
                generation=seq,
                before=event.before,
                after=event.after,
                measured=bool(payload.get("measured")),
                link=str(payload.get("link", "")),
                below=payload.get("below"),
            )
        )

    def _thin_out(self, newest: int) -> None:
        """Let go of checkpoints, but for the *newest* and those in use, that show hardly more than a smaller one.

        What came since is the same for all, so two views that are near each other stay so.
        """
        used = {newest, self.asked, *self.shown.values()}
        sizes = {seq: one.tokens + self.transcript.tokens_after(one.at) for seq, one in self.checkpoints.items()}
        smaller = 0
        for seq in sorted(sizes, key=lambda seq: (sizes[seq], -seq)):
            if seq in used or sizes[seq] > smaller * NEAR:
                smaller = sizes[seq]
            else:
                del self.checkpoints[seq]
        kept = {0, *self.checkpoints}
        self.samples = {key: one for key, one in self.samples.items() if key[1] in kept}


def _counted(usage: Mapping[str, Any], payload: Mapping[str, Any]) -> int:
    """Input and output of one reply in tokens, as reported; else as its view was measured, and an estimate."""
    if usage.get("input"):
        return int(usage["input"]) + int(usage.get("output", 0))
    return int(payload["view"].get("measured", 0)) + message_tokens(Message.from_json(payload["message"]))
