"""One compaction: the tiers of the policy in order until the view is small enough, and a record of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentx.context.breaker import INEFFECTIVE, Breaker, cause_of
from agentx.context.checkpoint import Checkpoint
from agentx.context.choose import Candidate
from agentx.context.policies import Policy, Room, TierName, due
from agentx.context.state import State
from agentx.context.summarise import Summariser
from agentx.context.tiers.all import TIERS
from agentx.context.tiers.work import Prepared, Step, Work
from agentx.context.view import project
from agentx.errors import ContextOverflow
from agentx.events import BreakerChanged, Compacted, utc
from agentx.journal import Journal

ACTIVE = frozenset({"summary", "prepared"})
"""The tiers whose summaries come from the model whose turn it is."""
BELOW = 0.95
"""Of what starts a compaction: a view above that after one has hardly room for the next turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compacted, for whom and why. `must_fit`: nothing that is there can be sent."""

    base: Candidate
    link: str
    threshold: int
    room: Room
    factor: float
    memory: str
    prepared: Callable[[float], Awaitable[Prepared | None]]
    cause: str
    active: Sequence[Summariser]
    cheap: Summariser | None
    must_fit: bool = False
    forced: bool = False
    """A person asks for it: nothing forbids the attempt."""
    counted_out: bool = False
    """The policy's counter asks for it, whatever the size of the view."""

    @property
    def asked(self) -> bool:
        return self.forced or self.counted_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`entry` is the `seq` of the entry that tells it, `generation` the new checkpoint's, None when there
    is none. Sizes are tokens."""

    entry: int
    generation: int | None
    before: int
    after: int
    tiers: tuple[Mapping[str, Any], ...]
    why: str = ""


@dataclass(slots=True)
class _Run:
    work: Work
    size: int
    """Of the view that the draft of `work` makes, plain."""
    tiers: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    changed: bool = False
    asked: bool = False
    """A model was asked for a summary."""
    waits: bool = False
    """Another step is for larger views: what came of the others is no failure."""
    overflow: ContextOverflow | None = None


class Compaction:
    """Runs compactions over one journal and keeps its breaker."""

    def __init__(self, journal: Journal, state: State, policy: Policy, now: Callable[[], float]) -> None:
        self.journal = journal
        self.state = state
        self.policy = policy
        self.now = now

    async def run(self, wish: Wish) -> Outcome | None:
        """What came of it; None when the breaker allows no attempt. Raises ContextOverflow when it must fit and
        cannot."""
        if (pending := self.state.pending) is not None:  # no provider has judged the last one: its estimates do
            self.state.pending = None
            self.judge(pending.helped(pending.after, self.policy.gain))
        opened = self._open(summary=False) or self._enough_for_one_turn()
        if opened and not (wish.must_fit or wish.forced):
            return None
        draft = replace(wish.base.checkpoint or Checkpoint(), memory=wish.memory)
        work = Work(
            transcript=self.state.transcript,
            draft=draft,
            room=wish.room,
            policy=self.policy,
            plan=self.state.ledger.open_items,
            active=wish.active,
            prepared=wish.prepared,
            cheap=wish.cheap,
        )
        run = _Run(work, work.size())
        for step in self.policy.steps:
            size, tier = run.size, TIERS[step.tier]
            asked = wish.asked and not run.changed
            if not asked and not due(step, wish.room, size):
                run.waits = run.waits or (step.above is not None and not tier.last)
                continue
            if opened and not wish.forced and not tier.last:
                continue  # a view that does not fit goes straight to the last tier, breaker or not
            if asked and tier.last and size <= wish.room.usable:
                continue  # who asks for a compaction does not ask for the last resort
            await self._tier(run, wish, step.tier)
        if run.waits and not run.changed and not run.asked and not wish.must_fit:
            return None  # nothing could be done yet, and the next step is for larger views
        return self._recorded(wish, run)

    def judge(self, helped: bool) -> None:
        """Tell the breaker whether the last compaction helped."""
        if helped:
            self._keep(self.state.breaker.succeeded(INEFFECTIVE), INEFFECTIVE)
        else:
            self.failed(INEFFECTIVE)

    def failed(self, cause: str) -> None:
        """Tell the breaker of a failure for *cause*."""
        self._keep(self.state.breaker.failed(cause, self.now(), self._tokens()), cause)

    async def _tier(self, run: _Run, wish: Wish, name: TierName) -> None:
        size = run.size
        tier, models = TIERS[name], "" if name in ACTIVE else name
        opened = self._open(summary=True, tier=models) if tier.asks else None
        if opened and not wish.forced:
            step = Step(None, f"the breaker is open: {opened}")
        else:
            try:
                step = await tier.run(run.work)
                run.asked = run.asked or (tier.asks and (step.draft is not None or step.cause is not None))
            except ContextOverflow as error:
                run.overflow = error
                step = Step(None, error.message)
        if step.draft is not None:
            run.changed = True
            run.work = run.work.with_draft(step.draft)
            run.size = run.work.size()
        told: dict[str, Any] = {"tier": tier.number, "name": name, "ok": step.draft is not None, "why": step.why}
        if step.by:
            told["by"] = step.by
        if (refused := step.cause or opened) is not None:
            told["cause"] = refused
        run.tiers.append(told | {"before": round(size * wish.factor), "after": round(run.size * wish.factor)})
        if step.cause is not None:
            self.failed(cause_of(step.cause, models))
        elif step.draft is not None and (tier.asks or name in ACTIVE):
            for cause in self.state.breaker.summary_causes(models):
                self._keep(self.state.breaker.succeeded(cause), cause)

    def _recorded(self, wish: Wish, run: _Run) -> Outcome:
        """The new checkpoint in the journal, if there is one that is smaller than what it came from."""
        size = run.size
        before, after = round(wish.base.plain * wish.factor), round(size * wish.factor)
        smaller = run.changed and size < wish.base.plain
        payload: dict[str, Any] = {"link": wish.link, "measured": wish.base.counted}
        if run.waits:
            payload["waits"] = True
        if wish.room.ceiling < wish.room.usable:  # there is room to go on without: better than to do it every turn
            payload["below"] = round(wish.room.ceiling * wish.factor * BELOW)
        if smaller:
            checkpoint = replace(
                run.work.draft,
                at=self.state.transcript.last,
                tokens=project(self.state.transcript, run.work.draft).tokens,
                threshold=wish.threshold,
                instead=wish.asked,
            )
            payload["checkpoint"] = checkpoint.to_json()
        entry = self.journal.append(
            Compacted(
                cause=wish.cause,
                policy=self.policy.name,
                tiers=run.tiers,
                before=before,
                after=after if smaller else before,
                effective=smaller and after <= before * (1 - self.policy.gain),
            ),
            payload,
        )
        self.state.read(self.journal)
        if not smaller:
            if not run.waits:
                self.judge(False)
            if wish.must_fit:
                raise run.overflow or ContextOverflow(
                    f"the conversation cannot be made to fit {wish.room.usable:,} tokens"
                )
        reasons = [str(tier["why"]) for tier in run.tiers if tier["why"]]
        why = "" if smaller else "; ".join(reasons) or "there is nothing to leave out"
        return Outcome(
            entry=entry.seq,
            generation=entry.seq if smaller else None,
            before=before,
            after=after if smaller else before,
            tiers=tuple(run.tiers),
            why=why,
        )

    def _enough_for_one_turn(self) -> str | None:
        most = self.policy.most_a_turn
        return None if most is None or self.state.attempts < most else f"{most} compactions in this turn"

    def _open(self, *, summary: bool, tier: str = "") -> str | None:
        return self.state.breaker.open_cause(self.now(), self._tokens(), summary=summary, tier=tier)

    def _tokens(self) -> int:
        return self.state.transcript.tokens_after(0)

    def _keep(self, breaker: Breaker, cause: str) -> None:
        if breaker == self.state.breaker:
            return
        now, tokens = self.now(), self._tokens()
        state = breaker.state(cause, now, tokens)
        until = breaker.until(cause)
        self.journal.append(
            BreakerChanged(state=state, cause=cause, until=None if until is None else utc(until)),
            {"breaker": breaker.to_json()},
        )
        self.state.read(self.journal)
