"""The context of a job: gives each link the view that fits it, compacts when needed, and learns from the replies.

All that it knows comes from the journal, and all that it decides goes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentx.config.links import Link
from agentx.context.beside import Beside
from agentx.context.budget import SMALLEST_REPLY, Budget
from agentx.context.checkpoint import Checkpoint
from agentx.context.choose import Candidate, base_for, candidates, eligible, least_lossy, steady, wanted
from agentx.context.compact import Compaction, Outcome, Wish
from agentx.context.doubt import Doubt
from agentx.context.measure import Calibration, message_tokens, rendered, tools_tokens
from agentx.context.memory import memory_text
from agentx.context.policies import MUST_LEAVE, Policy, ceiling, policy_named, room_for
from agentx.context.state import MANUAL, State
from agentx.context.summarise import Ask, Other, Summariser, in_order, no_others
from agentx.context.thrift import forbidden, spent_on_summaries
from agentx.context.tiers.prune import LARGER, SMALLEST_ROOM
from agentx.context.tiers.summary import by_active_model
from agentx.context.tiers.work import Work
from agentx.context.tokenizer import count_tokens
from agentx.context.view import View, project, shortened
from agentx.errors import ContextOverflow
from agentx.journal import Journal
from agentx.wires.messages import Message, Request, Tool, Usage

Count = Callable[[Request], Awaitable[int | None]]
IN_ONE_GO = 0.6
"""Of a window: what its model can be given to summarise at once."""
THINKING = 4_096
MOST_CONFIRMED = 2
"""A view whose estimate is more than so many times what can be sent is not counted: no counter can save it."""
MUST_SHARE = 0.4
"""Of the threshold: the most that the user's words, and the newest exchange, may claim before they are trimmed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a view is for. `fixed` is the plain estimate of system prompt and tools, `factor` what plain estimates
    are multiplied with on this link."""

    link: Link
    budget: Budget
    system: str
    tools: tuple[Tool, ...]
    fixed: int
    factor: float


class Context:
    """Views of one journal. `policy` is a policy or its name; `counter` a real tokenizer for one text."""

    def __init__(
        self,
        journal: Journal,
        *,
        policy: Policy | str,
        now: Callable[[], float],
        read_file: Callable[[str], str | None],
        background: Callable[[], str],
        output: Path,
        counter: Callable[[str], int | None] = count_tokens,
        cheap: Callable[[], Other] | None = None,
        goal: str | None = None,
    ) -> None:
        self.journal = journal
        self.policy = policy_named(policy) if isinstance(policy, str) else policy
        self.now = now
        self.read_file = read_file
        self.background = background
        self.output = output
        self.counter = counter
        self.cheap = cheap
        self.goal = goal
        self.state = State()
        self.doubt = Doubt(self.state, counter)
        self.beside = Beside()
        self._tools: tuple[tuple[Tool, ...], int] | None = None

    async def view(
        self,
        link: Link,
        budget: Budget,
        *,
        system: str,
        tools: Sequence[Tool],
        ask: Ask | None,
        others: Callable[[], Sequence[Other]] = no_others,
        count: Count | None = None,
    ) -> View:
        """What *link* is to be sent, within *budget*. Compacts first when nothing that is there fits.

        *ask* is the model of *link* (None: no model may be asked), *others* gives the links that may be asked for
        a summary besides it, *count* is its server's own counter. Raises ContextOverflow when not
        even the last tier can make it fit, and StateError.
        """
        self._read()
        frame = self._frame(link, budget, system, tools)
        found = wanted(
            candidates(self.state, link.identity, frame.fixed), threshold=budget.threshold, asked=self.state.asked
        )
        allowed = eligible(found, threshold=budget.threshold, used=self.state.generation)
        counted_out = self.policy.counted_out(budget, self.state.replies)
        shown, ceiling = self.state.shown.get(link.identity), self._ceiling(frame)
        best = None
        if not counted_out:
            best = (
                steady(allowed, shown=shown, threshold=budget.threshold, ceiling=ceiling)
                or least_lossy(allowed, ceiling)
                or await self._confirmed(found, frame, count)
            )
        if best is not None:
            view = self._view(best, frame)
            if view.measured <= budget.usable:
                self._prepare(frame, best, ask, others)
                return view
        must_fit = least_lossy(found, budget.usable) is None or best is not None
        too_large = least_lossy(found, budget.window - SMALLEST_REPLY) is None
        cause, models = "overflow" if too_large else "threshold", self._models(frame, ask, others)
        outcome = await self._compact(frame, models, cause, must_fit=must_fit, counted_out=counted_out)
        return self._view(self._what_there_is(frame, outcome), frame)

    def cannot_hold(
        self, link: Link, budget: Budget, *, system: str, tools: Sequence[Tool]
    ) -> ContextOverflow | None:
        """Why *link* can never serve within *budget*: what is fixed leaves no room. None when it can."""
        self._read()
        frame = self._frame(link, budget, system, tools)
        need = frame.fixed + min(SMALLEST_ROOM, self.state.transcript.tokens_after(0))
        if need <= budget.usable:  # by the plain estimate: what is in doubt is decided by who counts
            return None
        return ContextOverflow(
            f"system prompt, tools and the task take {need:,} tokens or more; a window of {budget.window:,} has"
            f" {budget.usable:,} for them",
            hint=LARGER,
            limit=budget.usable,
            actual=need,
        )

    async def compact_now(
        self,
        link: Link,
        budget: Budget,
        *,
        system: str,
        tools: Sequence[Tool],
        ask: Ask | None,
        others: Callable[[], Sequence[Other]] = no_others,
    ) -> Outcome:
        """Compact although nothing asks for it. The outcome says what was done, or why nothing."""
        self._read()
        frame = self._frame(link, budget, system, tools)
        outcome = await self._compact(frame, self._models(frame, ask, others), MANUAL, forced=True)
        assert outcome is not None  # only the breaker stops an attempt, and a forced one runs past it
        return outcome

    def replied(self, link: Link, view: View, usage: Usage | None) -> None:
        """A reply to *view* was appended to the journal, with the view in its payload: learn from its counts, and
        judge the last compaction by them.

        All of that stands in the journal; the arguments only say for which reply it is done.
        """
        self.state.judged = None
        self.state.read(self.journal)
        judged = self.state.judged
        if judged is None or usage is None or judged.link != link.identity:
            return
        after = usage.input if judged.measured else judged.after
        self._compaction().judge(judged.helped(after, self.policy.gain))

    async def close(self) -> None:
        """End what is being prepared."""
        await self.beside.close()

    def calibrated(self, link: Link) -> bool:
        """Whether *link* has counted a request before."""
        return link.identity in self.state.calibrations

    def factor(self, link: Link) -> float:
        """What plain estimates are multiplied with on *link*."""
        return self.state.calibration(link.identity).factor

    def _read(self) -> None:
        self.state.read(self.journal)
        self.state.judged = None  # replies of an earlier process were judged there

    def _frame(self, link: Link, budget: Budget, system: str, tools: Sequence[Tool]) -> Frame:
        tools = tuple(tools)
        if self._tools is None or self._tools[0] is not tools:  # the same ones at nearly every turn
            self._tools = tools, tools_tokens(tools)
        fixed = message_tokens(Message(role="system", text=system)) + self._tools[1]
        return Frame(link, budget, system, tools, fixed, self.state.calibration(link.identity).factor)

    def _must(self, frame: Frame) -> int:
        """The plain estimate of the user's words and the newest exchange, each only as far as it may claim: what
        no model has read yet stays whole where it can be sent."""
        transcript = self.state.transcript
        most = int(MUST_SHARE * frame.budget.threshold / frame.factor)
        said, unread = min(most, transcript.said_tokens), transcript.tokens_after(transcript.read)
        room = int(MUST_LEAVE * frame.budget.usable / frame.factor) - frame.fixed - said
        return said + (unread if unread <= room else min(most, unread))

    def _ceiling(self, frame: Frame) -> int:
        return ceiling(frame.budget, frame.fixed + self._must(frame), frame.factor)

    def _view(self, candidate: Candidate, frame: Frame) -> View:
        shown = project(self.state.transcript, candidate.checkpoint, frame.system, link=frame.link.name)
        plain = frame.fixed + shown.tokens
        # Merged and repaired messages make a difference of some tokens to the sum of all items.
        measured = candidate.measured + max(0, round((plain - candidate.plain) * frame.factor))
        return View(
            messages=shown.messages,
            estimate=plain,
            measured=measured,
            generation=candidate.generation,
            last=self.state.transcript.last,
            fixed=frame.fixed,
            link=frame.link.identity,
            window=frame.budget.window,
            fits=measured <= self._ceiling(frame),
            shortened=shortened(candidate.checkpoint, self.state.transcript.said),
        )

    async def _confirmed(self, found: Sequence[Candidate], frame: Frame, count: Count | None) -> Candidate | None:
        """The view in use, when only an estimate says that it is too large and a real counter says otherwise."""
        used = next((c for c in found if c.generation == self.state.generation), found[0])
        if used.counted or used.plain > frame.budget.usable * MOST_CONFIRMED:
            return None
        shown = project(self.state.transcript, used.checkpoint, frame.system, link=frame.link.name)
        plain, most = frame.fixed + shown.tokens, self._ceiling(frame)
        counted = None
        if count is not None:
            request = Request(
                model=frame.link.model, messages=shown.messages, tools=frame.tools, purpose="probe", estimate=plain
            )
            counted = await count(request)
        if counted is not None:
            self.state.calibrations.setdefault(frame.link.identity, Calibration().after(counted, plain))
        elif plain <= most:
            local = await asyncio.to_thread(self.counter, rendered(shown.messages, frame.tools))
            counted = None if local is None else max(local, plain)
        return replace(used, measured=counted) if counted is not None and counted <= most else None

    async def _compact(
        self,
        frame: Frame,
        models: Sequence[Summariser],
        cause: str,
        *,
        must_fit: bool = False,
        forced: bool = False,
        counted_out: bool = False,
    ) -> Outcome | None:
        link, budget = frame.link, frame.budget
        factor = self.state.calibration(link.identity).factor
        frame = replace(frame, factor=factor)
        found = candidates(self.state, link.identity, frame.fixed)
        in_one_go = int((models[0].window if models else budget.window) * IN_ONE_GO)
        too_large = [candidate for candidate in found if candidate.measured > self._ceiling(frame)]
        base = base_for(too_large or found, used=self.state.generation, in_one_go=in_one_go)
        factor = max(factor, base.factor)
        room = room_for(self.policy, budget, fixed=frame.fixed, must=self._must(frame), factor=factor)
        memory = memory_text(
            self.state.ledger,
            room.memory,
            read_file=self.read_file,
            background=self.background(),
            goal=self.goal,
        )
        wish = Wish(
            base=base,
            link=link.identity,
            threshold=budget.threshold,
            room=room,
            factor=factor,
            memory=memory,
            prepared=self.beside.prepared,
            cause=cause,
            active=models,
            cheap=None if self.cheap is None else self._summariser(self.cheap()),
            must_fit=must_fit,
            forced=forced,
            counted_out=counted_out,
        )
        return await self._compaction().run(wish)

    def _what_there_is(self, frame: Frame, outcome: Outcome | None) -> Candidate:
        """The view to send after a compaction, or after none that helped. Raises ContextOverflow."""
        found = candidates(self.state, frame.link.identity, frame.fixed)
        wanted = self.state.generation if outcome is None or outcome.generation is None else outcome.generation
        sendable = [candidate for candidate in found if candidate.measured <= frame.budget.usable]
        if not sendable:
            raise ContextOverflow(
                f"{frame.link.name}: the conversation cannot be made to fit {frame.budget.usable:,} tokens",
                limit=frame.budget.usable,
                actual=min(candidate.measured for candidate in found),
            )
        for candidate in sendable:
            if candidate.generation == wanted:
                return candidate
        return min(sendable, key=lambda candidate: (candidate.measured, -candidate.generation))

    def _prepare(
        self, frame: Frame, shown: Candidate, ask: Ask | None, others: Callable[[], Sequence[Other]]
    ) -> None:
        """Begin a summary beside the work, where the policy wants that and the view is near its threshold."""
        near = shown.measured >= self.policy.prepare_at * frame.budget.threshold
        if not (self.policy.prepares and near):
            return
        failure = self.beside.failure()
        if failure is not None and failure.cause is not None:
            self._compaction().failed(failure.cause)
        if self.beside.made_for == shown.generation:
            return
        tokens = self.state.transcript.tokens_after(0)
        if self.state.breaker.open_cause(self.now(), tokens, summary=True) is not None:
            return
        factor = max(frame.factor, shown.factor)
        base = shown.checkpoint or Checkpoint()
        work = Work(
            transcript=self.state.transcript,
            draft=base,
            room=room_for(self.policy, frame.budget, fixed=frame.fixed, must=self._must(frame), factor=factor),
            policy=self.policy,
            active=self._models(frame, ask, others),
        )
        if work.tells:
            self.beside.start(shown.generation, base, by_active_model(work))

    def _models(self, frame: Frame, ask: Ask | None, others: Callable[[], Sequence[Other]]) -> list[Summariser]:
        """Who is asked for a summary, in order; nobody where *ask* is None."""
        if ask is None:
            return []
        link, budget = frame.link, frame.budget
        own = Other(
            link=link.identity,
            name=link.name,
            ask=ask,
            window=budget.window,
            output=budget.output,
            cuts=link.provider.cuts,
        )
        return [self._summariser(one) for one in in_order(own, others(), last=self.state.link)]

    def _summariser(self, other: Other) -> Summariser:
        return Summariser(
            ask=other.ask,
            window=other.window,
            factor=self.state.calibration(other.link).factor,
            seconds=self.policy.summary_seconds,
            counter=self.counter,
            thinking=THINKING if other.link in self.state.thinking else 0,
            output=other.output,
            name=other.name,
            forbidden=lambda: forbidden(spent_on_summaries(self.journal, self.now()), free=other.free),
            cut=other.cut,
            cuts=other.cuts,
        )

    def _compaction(self) -> Compaction:
        return Compaction(self.journal, self.state, self.policy, self.now)
