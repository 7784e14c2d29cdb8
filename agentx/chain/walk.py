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
from agentx.chain.decide import MOST_TOLD, REFUSED, Attempts, Room, Step
from agentx.chain.health import Health, Rest
from agentx.chain.record import Record
from agentx.chain.returns import PROBE_ABOVE, PROBE_SECONDS, UNWELL, probed, small_request
from agentx.chain.vigil import LOOK_SECONDS, News, Reach, Vigil, reach_link
from agentx.chain.visit import Check, Means, Prepare, Shorter, Visit
from agentx.chain.walk_state import Walk
from agentx.config.links import Link
from agentx.errors import CapReached, ContextOverflow, NoUsableModel
from agentx.events import Event, Purpose
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
        self._barred = barred
        self._started = now()
        self.answered = False
        self._imageless: set[str] = set()
        self._image_bytes: dict[str, int] = {}
        self._rooms: dict[str, Room] = {}
        self._record = Record(links, health=self.health, tell=self._tell, price=price, now=now)
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

    @property
    def links(self) -> tuple[Link, ...]:
        return self._record.links

    def likely(self) -> Link:
        """The link that will be asked next, as far as one can tell now."""
        links = self._in_order()
        allowed = [link for link in links if self._barred(link) is None] or links
        rests = [(link, self.health.resting(link)) for link in allowed]
        return min(rests, key=lambda pair: pair[1].until if pair[1] else 0.0)[0]

    def too_small(self, link: Link) -> None:
        """*link* is known not to hold the request: it is passed over without a word until one can be made."""
        self._record.too_small.add(link.name)

    async def ask(self, prepare: Prepare, *, check: Check | None = None, shorter: Shorter | None = None) -> Answer:
        """The first good reply. `prepare(link, reason)` makes the request for that link, just before it is sent,
        and may raise ContextOverflow or CapReached when it cannot; *check* may raise RequestFailed for a reply
        that is none; *shorter* sees to it that the next request tells the model to write less at a time.

        Raises ChainExhausted, NoUsableModel, ContextOverflow, LimitReached; and whatever `sleep` raises.
        """
        walk = Walk(prepare, check, shorter)
        self._record.begin()
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
        self._record.links = tuple(links)
        self._started = self._now()
        self._record.too_small.clear()
        walk.anew()

    def _in_order(self) -> Sequence[Link]:
        return self._record.position.in_order(self.links, self._now())

    def _worth_a_probe(self, link: Link, walk: Walk) -> bool:
        """The rest of *link* is over, nobody knows whether it is well, and asking it for the turn would cost much
        where another could answer: much to read, or a long wait for one that was silent. One's own server is asked
        for the turn: a probe would only push the conversation out of its memory."""
        last = self.health.last(link)
        return (
            walk.last is None
            and last is not None
            and (self._record.position.size > PROBE_ABOVE or last.error_class == "timeout")
            and not link.provider.self_hosted
            and self._record.returning(link)
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
            self._record.tried(link, failure, found.spent, "probe")
            return True
        self._failed(link, failure, found.spent, walk, "probe")
        self._record.charge(link, failure, walk, out=failure.error_class in ("auth", "not_found"))
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
            repaired=link.identity in self._record.mended,
            alone=self.ready(walk, without=self.at(link.address)) is None,
        )
        visit = Visit(link, self._record.why(link, walk, self._barred), attempts, self._means(link, walk))
        if link.name not in self._record.too_small and not self._record.returning(
            link
        ):  # it has returned when it answers
            self._record.switch(link, visit.reason)
        try:
            outcome = await visit.run()
        except ContextOverflow as error:
            self._record.unmade(link, error, self._now() - visit.sent, walk)
            return None
        except CapReached as error:
            self._record.shut_out(walk, verdict.of_cap(link, error.message, error.hint))
            return None
        if isinstance(outcome, Step):
            self._record.fate(visit, outcome, walk)
            self._check_refusals(visit, walk)
            return None
        assert visit.request is not None
        self._record.served(visit, walk)
        self.answered = True
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
            image_bytes=self._image_bytes,
        )

    def _prepared(self, link: Link, reason: str) -> None:
        self._record.too_small.discard(link.name)
        if not self._record.returning(link):
            self._record.switch(link, reason)

    def _failed(
        self, link: Link, failure: Failure, spent: ledger.Spent, walk: Walk, purpose: Purpose = "turn"
    ) -> None:
        self._time_left()  # where the time is over, that is why it failed
        self._record.failed(link, failure, spent, walk, purpose)

    def _check_refusals(self, visit: Visit, walk: Walk) -> None:
        """Raises ChainExhausted when it is the request itself that is refused."""
        failure = visit.failure
        if failure is None or failure.error_class not in REFUSED or failure.scope != "request":
            return
        walk.refusals += 1
        if walk.refusals >= MOST_REFUSALS:
            raise verdict.refused(self.endings(walk))

    def at(self, address: str) -> list[str]:
        """The links at *address*, by name."""
        return [link.name for link in self.links if link.address == address]

    def coming_back(self, link: Link, walk: Walk) -> Rest | None:
        """The rest of *link*, where it may be asked after it."""
        return self._record.coming_back(link, walk, self._barred)

    def endings(self, walk: Walk) -> list[verdict.Ended]:
        """How it stands with each link, in order."""
        return self._record.endings(walk, self._barred)


def _nothing(*_: object) -> None:
    """For a caller who does not listen."""
