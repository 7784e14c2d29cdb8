"""The best reply that any link gives: preferred links first, resting ones skipped, and waiting when all rest.

It knows nothing of journals and windows: it is given a function that prepares the request for the very link that
is about to be asked, so it serves an agent as well as a library user. At most one request is in flight.
"""

from __future__ import annotations

import asyncio
import math
import os
import random as chance
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from agentx.chain import ledger, verdict
from agentx.chain.classify import Failure
from agentx.chain.decide import BROKEN, MOST_TOLD, REFUSED, Attempts, Room, Step
from agentx.chain.health import Health, Rest
from agentx.chain.returns import PROBE_ABOVE, PROBE_SECONDS, UNWELL, Position, probed, small_request
from agentx.chain.vigil import LOOK_SECONDS, News, Reach, Vigil, reach_link
from agentx.chain.visit import Check, Means, Prepare, Shorter, Visit
from agentx.chain.walk_state import Charge, Walk
from agentx.config.links import Link
from agentx.errors import CapReached, ContextOverflow, NoUsableModel
from agentx.events import Event, LinkSwitched, Purpose
from agentx.wires.messages import Reply, Request, Timers, Wire
from agentx.wires.timing import timers_for

MOST_REFUSALS = 2
MAX_WAIT_SECONDS = 8 * 86_400.0
"""No stated time is later than this (`waits` clamps it)."""
PATIENCE_SECONDS = 30.0
SHORTEST_ATTEMPT = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole and checked reply, the request it answers, and who gave it."""

    link: Link
    request: Request
    reply: Reply


class Chain:
    """Links in order of preference, asked one after the other until one answers."""

    def __init__(
        self,
        links: Sequence[Link],
        *,
        wires: Callable[[Link], Wire],
        health: Health | None = None,
        tell: Callable[[Event], object] | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = chance.random,
        timers: Timers | None = None,
        max_wait_seconds: float = MAX_WAIT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
        look: Callable[[], News | None] | None = None,
        reach: Reach | None = None,
        planned_wake: float | None = None,
        time_left: Callable[[], float] | None = None,
        probe: Callable[[Link, Timers], Awaitable[object]] | None = None,
        learn: Callable[[Link, int, str], object] | None = None,
        guess: Callable[[Link, int, str], object] | None = None,
        log: Callable[[str], object] | None = None,
        price: ledger.Price = ledger.unknown,
        barred: Callable[[Link], str | None] = ledger.unknown,
    ) -> None:
        """*max_wait_seconds* is how long one request may be in trouble; *patience_seconds* how long a chain that
        never answered looks for somebody to connect to; *look_seconds* how often a wait looks up, *look* at what
        and *reach* whether a link can be connected to. *planned_wake* is when an earlier process meant to wake.
        *time_left* gives the seconds that a request may still take, and may raise what ends it. *probe* asks a
        link something small. *learn* hears of every window that a refusal proves, *guess* of those that a refusal
        without a word makes probable, *log* of tracebacks; *price* says what a failed attempt cost, *barred* why a
        link may not be asked because of what it costs.

        Raises NoUsableModel when there are no links.
        """
        if not links:
            raise NoUsableModel("the chain has no links", hint="name a model, e.g. `--chain ollama/qwen3:14b`")
        self.links = tuple(links)
        self.health = health or Health(None, environ=os.environ, now=now)
        self._wires = wires
        self._tell = tell or _nothing
        self._now = now
        self._sleep = sleep
        self._random = random
        self._timers = timers or Timers()
        self._max_wait = max_wait_seconds
        self._time_left = time_left or (lambda: math.inf)
        self._probe = probe or self._ask_little
        self._learn = learn or _nothing
        self._guess = guess or _nothing
        self._log = log or _nothing
        self._price = price
        self._barred = barred
        self._lost = 0.0
        self._started = now()
        self.answered = False
        self._too_small: set[str] = set()
        self._paid: set[str] = set()
        self._mended: set[str] = set()
        """Identities of those that take the history only when it is repaired."""
        self._imageless: set[str] = set()
        self._rooms: dict[str, Room] = {}
        self._position = Position()
        self._vigil = Vigil(
            now=now,
            sleep=sleep,
            random=random,
            tell=self._tell,
            look=look or (lambda: None),
            reach=reach or reach_link,
            max_wait=max_wait_seconds,
            patience=patience_seconds,
            look_seconds=look_seconds,
            planned=planned_wake,
        )

    def likely(self) -> Link:
        """The link that will be asked next, as far as one can tell now."""
        links = self._in_order()
        allowed = [link for link in links if self._barred(link) is None] or links
        rests = [(link, self.health.resting(link)) for link in allowed]
        return min(rests, key=lambda pair: pair[1].until if pair[1] else 0.0)[0]

    def too_small(self, link: Link) -> None:
        """*link* is known not to hold the request: it is passed over without a word until one can be made."""
        self._too_small.add(link.name)

    async def ask(self, prepare: Prepare, *, check: Check | None = None, shorter: Shorter | None = None) -> Answer:
        """The first good reply. `prepare(link, reason)` makes the request for that link, just before it is sent,
        and may raise ContextOverflow or CapReached when it cannot; *check* may raise RequestFailed for a reply
        that is none; *shorter* sees to it that the next request tells the model to write less at a time.

        Raises ChainExhausted, NoUsableModel, ContextOverflow, LimitReached; and whatever `sleep` raises.
        """
        walk = Walk(prepare, check, shorter)
        self._lost = 0.0
        while True:
            link = self.ready(walk)
            if link is None:
                await self._vigil.wait(self, walk)
            elif self.health.claim(link):
                try:
                    well = not self._worth_a_probe(link, walk) or await self._is_well(link, walk)
                    answer = await self._visit(link, walk) if well else None
                finally:
                    self.health.release(link)
                if answer is not None:
                    return answer

    def ready(self, walk: Walk, without: Collection[str] = ()) -> Link | None:
        """The first link that may be asked; else one that an earlier process put out, once: it may be mended."""
        left = [link for link in self._in_order() if link.name not in walk.unfit and link.name not in without]
        rests = [(link, self.health.resting(link)) for link in left if self._barred(link) is None]
        for link, rest in rests:
            if rest is None:
                return link
        for link, rest in rests:
            if rest is not None and rest.out and rest.since < self._started and link.name not in walk.ended:
                return link
        return None

    def use(self, links: Sequence[Link], walk: Walk) -> None:
        """Ask *links* from now on, and all of them: what they said before may have been mended."""
        self.links = tuple(links)
        self._started = self._now()
        self._too_small.clear()
        walk.anew()

    def _in_order(self) -> Sequence[Link]:
        return self._position.in_order(self.links, self._now())

    def _returning(self, link: Link) -> bool:
        return self._position.returning(link, self.links)

    def _worth_a_probe(self, link: Link, walk: Walk) -> bool:
        """The rest of *link* is over, nobody knows whether it is well, and asking it for the turn would cost much
        where another could answer: much to read, or a long wait for one that was silent. One's own server is asked
        for the turn: a probe would only push the conversation out of its memory."""
        last = self.health.last(link)
        return (
            walk.last is None
            and last is not None
            and (self._position.size > PROBE_ABOVE or last.error_class == "timeout")
            and not link.provider.self_hosted
            and self._returning(link)
            and self.ready(walk, without=[link.name]) is not None
        )

    async def _is_well(self, link: Link, walk: Walk) -> bool:
        """Whether *link* answers something small; it rests longer where it does not."""
        timers = self._timers_for(link, walk)
        asking = self._probe(link, replace(timers, total=min(timers.total, PROBE_SECONDS)))
        found = await probed(link, asking, self._now)
        if found is None:
            return True
        failure = found.failure
        if failure.error_class not in UNWELL:
            self._tell(ledger.failed(link, failure, found.spent, self._price, "probe"))
            return True
        self._failed(link, failure, found.spent, walk, "probe")
        self._charge(link, failure, walk, out=failure.error_class in ("auth", "not_found"))
        return False

    async def _ask_little(self, link: Link, timers: Timers) -> None:
        await self._wires(link).ask(small_request(link), timers)

    def _timers_for(self, link: Link, walk: Walk) -> Timers:
        """Those of the next request to *link*: no attempt takes longer than is left of the time that all share.

        What may be waited in trouble bounds only links that have failed this request: the first try at a healthy
        one, which may think for long, is no waiting. Raises what ends the request.
        """
        left = self._time_left()
        if link.name in walk.ended and walk.since is not None:
            left = min(left, walk.since + self._max_wait - self._now())
        timers = timers_for(link, self._timers)
        return replace(timers, total=max(SHORTEST_ATTEMPT, min(timers.total, left)))

    async def _visit(self, link: Link, walk: Walk) -> Answer | None:
        """The answer of *link*; None when the next one should be asked."""
        again = walk.ended.get(link.name)
        if again is not None and walk.since is not None:
            self._vigil.check_time(self, walk, walk.since, self._now())
        fresh = again is None and self.health.failures(link) == 0
        attempts = Attempts(
            sent=0,
            fresh=fresh,
            broken=walk.broken.get(link.name, 0),
            told=walk.told if walk.shorter else MOST_TOLD,
            repaired=link.identity in self._mended,
            alone=self.ready(walk, without=self.at(link.address)) is None,
        )
        visit = Visit(link, self._reason(link, walk), attempts, self._means(link, walk))
        if link.name not in self._too_small and not self._returning(link):  # it has returned when it answers
            self._switch(link, visit.reason)
        try:
            outcome = await visit.run()
        except ContextOverflow as error:
            if link.name not in self._too_small:
                took = self._now() - visit.sent
                self._tell(ledger.unmade(link, error, took))
                self._lost += took
            self._too_small.add(link.name)
            walk.unfit.add(link.name)
            self._note(walk, verdict.of_overflow(link, error))
            return None
        except CapReached as error:
            self._too_small.add(link.name)
            walk.unfit.add(link.name)
            self._note(walk, verdict.of_cap(link, error.message, error.hint))
            return None
        if isinstance(outcome, Step):
            self._leave(visit, outcome, walk)
            return None
        assert visit.request is not None
        self._served(visit, walk)
        return Answer(link, visit.request, outcome)

    def _means(self, link: Link, walk: Walk) -> Means:
        return Means(
            wires=self._wires,
            timers=lambda: self._timers_for(link, walk),
            now=self._now,
            sleep=self._sleep,
            random=self._random,
            learn=self._learn,
            guess=self._guess,
            taught=self.health.taught,
            prepare=walk.prepare,
            check=walk.check,
            shorter=walk.shorter,
            failed=lambda link, failure, spent: self._failed(link, failure, spent, walk),
            prepared=self._prepared,
            log=self._log,
            rooms=self._rooms,
            imageless=self._imageless,
        )

    def _prepared(self, link: Link, reason: str) -> None:
        self._too_small.discard(link.name)
        if not self._returning(link):
            self._switch(link, reason)

    def _switch(self, link: Link, reason: str) -> None:
        """Say, once, that another link is asked than before."""
        before = self._position.move(link, self.links)
        if before is not None:
            lost, self._lost = round(self._lost, 3), 0.0
            paid = link.on_consent and not before.on_consent
            self._tell(LinkSwitched(from_=before.name, to=link.name, reason=reason, seconds_lost=lost, paid=paid))
        if link.on_consent and link.name not in self._paid:
            self._paid.add(link.name)
            if not all(other.on_consent for other in self.links[: self.links.index(link)]):
                self._tell(ledger.falls_to_paid(link))

    def _failed(
        self, link: Link, failure: Failure, spent: ledger.Spent, walk: Walk, purpose: Purpose = "turn"
    ) -> None:
        self._time_left()  # where the time is over, that is why it failed
        self._tell(ledger.failed(link, failure, spent, self._price, purpose))
        self._lost += spent.seconds + spent.pause
        walk.reached = walk.reached or failure.connected
        self._note(walk, verdict.of_failure(link, failure))

    def _note(self, walk: Walk, ended: verdict.Ended) -> None:
        walk.ended[ended.link] = walk.last = ended
        walk.in_trouble(self._now())

    def _leave(self, visit: Visit, step: Step, walk: Walk) -> None:
        """Give the link its fate. Raises ChainExhausted when it is the request itself that is refused."""
        failure, link = visit.failure, visit.link
        assert failure is not None
        walk.broken[link.name], walk.told = visit.attempts.broken, visit.attempts.told
        if step.fate in ("out", "rest") or failure.error_class in BROKEN:
            self._charge(link, failure, walk, out=step.fate == "out")
        if step.fate == "unfit":
            walk.unfit.add(link.name)
        if failure.error_class in REFUSED and failure.scope == "request":
            walk.refusals += 1
            if walk.refusals >= MOST_REFUSALS:
                raise verdict.refused(self.endings(walk))

    def _charge(self, link: Link, failure: Failure, walk: Walk, *, out: bool) -> None:
        """Let *link* rest for *failure*."""
        self._position.failed(link, self._now())
        if out:
            self.health.out(link, failure.error_class, failure.message, failure.reach)
            return
        missed = walk.missed.get(link.name)
        before = missed.before if missed else self.health.last(link)
        rest = self.health.rest(link, failure.retry_at, failure.error_class, failure.message, failure.reach)
        if not failure.connected:
            walk.missed[link.name] = Charge(link, rest, before)

    def _served(self, visit: Visit, walk: Walk) -> None:
        """The link is well. What others refused and it did not was their own trouble: they rest."""
        assert visit.request is not None
        self._switch(visit.link, visit.reason)
        self._position.served(visit.link, visit.request.estimate)
        self.health.succeeded(visit.link, visit.sent)
        if visit.attempts.repaired:
            self._mended.add(visit.link.identity)
        self.answered = True
        for other in self.links:
            ended = walk.ended.get(other.name)
            if ended is None or ended.error_class == "cut":  # a reply that is too long is no link's trouble
                continue
            if other.name in walk.unfit and other.name not in self._too_small:
                self.health.rest(other, None, ended.error_class, ended.message)

    def _reason(self, link: Link, walk: Walk) -> str:
        """Why *link* is the one to be asked."""
        if walk.last is not None:
            same = walk.last.link == link.name
            what = "its cap" if walk.last.capped else walk.last.error_class
            return "asked again after a rest" if same else f"{walk.last.link}: {what}"
        for other in self.links[: self.links.index(link)]:
            if (why := self._barred(other)) is not None:
                return f"{other.name}: {why}"
            if (rest := self.health.resting(other)) is not None:
                return f"{other.name}: {rest.error_class}"
            if self._position.held(other, self._now()):
                return f"{other.name}: it came back before and did not last"
        current = self._position.current
        return "its rest is over" if current and current.name != link.name else "first of the chain"

    def at(self, address: str) -> list[str]:
        """The links at *address*, by name."""
        return [link.name for link in self.links if link.address == address]

    def coming_back(self, link: Link, walk: Walk) -> Rest | None:
        """The rest of *link*, where it may be asked after it."""
        asked = link.name not in walk.unfit and self._barred(link) is None
        rest = self.health.resting(link) if asked else None
        return None if rest is None or rest.out else rest

    def endings(self, walk: Walk) -> list[verdict.Ended]:
        """How it stands with each link, in order: what it said to this request, else why it rests."""
        endings: list[verdict.Ended] = []
        for link in self.links:
            if (why := self._barred(link)) is not None:
                endings.append(verdict.of_cap(link, why))
            elif link.name in walk.ended:
                endings.append(walk.ended[link.name])
            elif (rest := self.health.resting(link)) is not None:
                endings.append(verdict.of_rest(link, rest))
        return endings


def _nothing(*_: object) -> None:
    """For a caller who does not listen."""
