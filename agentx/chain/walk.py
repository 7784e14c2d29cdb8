"""The best reply that any link gives: preferred links first, resting ones skipped, and waiting when all rest.

It knows nothing of journals and windows: it is given a function that prepares the request for the very link that
is about to be asked, so it serves an agent as well as a library user. At most one request is in flight.
"""

from __future__ import annotations

import asyncio
import random as chance
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from agentx.chain import ledger, pause, verdict
from agentx.chain.classify import Failure
from agentx.chain.decide import BROKEN, MOST_TOLD, REFUSED, Attempts, Room, Step
from agentx.chain.health import Health, Rest
from agentx.chain.visit import Check, Means, Prepare, Shorter, Visit
from agentx.chain.walk_state import Charge, Walk
from agentx.config.links import Link
from agentx.errors import CapReached, ContextOverflow, NoUsableModel
from agentx.events import Event, LinkSwitched, Waiting, utc
from agentx.wires.messages import Reply, Request, Timers, Wire

LOOK_UP_SECONDS = 30.0
"""A wait looks at the clock this often: machines sleep, clocks jump, other jobs find that a link is well."""
MOST_REFUSALS = 2
MAX_WAIT_SECONDS = 8 * 86_400.0
"""No stated time is later than this (`waits` clamps it)."""
PATIENCE_SECONDS = 30.0


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
        learn: Callable[[Link, int, str], object] | None = None,
        guess: Callable[[Link, int, str], object] | None = None,
        log: Callable[[str], object] | None = None,
        price: ledger.Price = ledger.unknown,
        barred: Callable[[Link], str | None] = ledger.unknown,
    ) -> None:
        """*max_wait_seconds* is how long one request may be in trouble; *patience_seconds* how long a chain that
        never answered looks for somebody to connect to. *learn* hears of every window that a refusal proves,
        *guess* of those that a refusal without a word makes probable, *log* of tracebacks; *price* says what a
        failed attempt cost, *barred* why a link may not be asked because of what it costs.

        Raises NoUsableModel when there are no links.
        """
        if not links:
            raise NoUsableModel("the chain has no links", hint="name a model, e.g. `--chain ollama/qwen3:14b`")
        self.links = tuple(links)
        self.health = health or Health(None, environ={}, now=now)
        self._wires = wires
        self._tell = tell or _nothing
        self._now = now
        self._sleep = sleep
        self._random = random
        self._timers = timers or Timers()
        self._max_wait = max_wait_seconds
        self._patience = min(patience_seconds, max_wait_seconds)
        self._learn = learn or _nothing
        self._guess = guess or _nothing
        self._log = log or _nothing
        self._price = price
        self._barred = barred
        self._lost = 0.0
        self._started = now()
        self._current: Link | None = None
        self._answered = False
        self._too_small: set[str] = set()
        self._paid: set[str] = set()
        self._mended: set[str] = set()
        """Identities of those that take the history only when it is repaired."""
        self._rooms: dict[str, Room] = {}

    def likely(self) -> Link:
        """The link that will be asked next, as far as one can tell now."""
        allowed = [link for link in self.links if self._barred(link) is None] or self.links
        rests = [(link, self.health.resting(link)) for link in allowed]
        return min(rests, key=lambda pair: pair[1].until if pair[1] else 0.0)[0]

    async def ask(self, prepare: Prepare, *, check: Check | None = None, shorter: Shorter | None = None) -> Answer:
        """The first good reply. `prepare(link, reason)` makes the request for that link, just before it is sent,
        and may raise ContextOverflow or CapReached when it cannot; *check* may raise RequestFailed for a reply
        that is none; *shorter* sees to it that the next request tells the model to write less at a time.

        Raises ChainExhausted, NoUsableModel, ContextOverflow, LimitReached; and whatever `sleep` raises.
        """
        walk = Walk(prepare, check, shorter)
        self._lost = 0.0
        while True:
            link = self._ready(walk)
            if link is None:
                await self._wait(walk)
            elif self.health.claim(link):
                try:
                    answer = await self._visit(link, walk)
                finally:
                    self.health.release(link)
                if answer is not None:
                    return answer

    def _ready(self, walk: Walk, without: Collection[str] = ()) -> Link | None:
        """The first link that may be asked; else one that an earlier process put out, once: it may be mended."""
        left = [link for link in self.links if link.name not in walk.unfit and link.name not in without]
        rests = [(link, self.health.resting(link)) for link in left if self._barred(link) is None]
        for link, rest in rests:
            if rest is None:
                return link
        for link, rest in rests:
            if rest is not None and rest.out and rest.since < self._started and link.name not in walk.ended:
                return link
        return None

    async def _visit(self, link: Link, walk: Walk) -> Answer | None:
        """The answer of *link*; None when the next one should be asked."""
        again = walk.ended.get(link.name)
        if again is not None and walk.since is not None:
            self._check_time(walk, walk.since, self._now())
        fresh = again is None and self.health.failures(link) == 0
        attempts = Attempts(
            sent=0,
            fresh=fresh,
            broken=walk.broken.get(link.name, 0),
            told=walk.told if walk.shorter else MOST_TOLD,
            repaired=link.identity in self._mended,
            alone=self._ready(walk, without=self._at(link.address)) is None,
        )
        visit = Visit(link, self._reason(link, walk), attempts, self._means(walk))
        if link.name not in self._too_small:
            self._switch(link, visit.reason)
        try:
            outcome = await visit.run()
        except ContextOverflow as error:
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

    def _means(self, walk: Walk) -> Means:
        return Means(
            wires=self._wires,
            timers=self._timers,
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
            prepared=self._switch,
            log=self._log,
            rooms=self._rooms,
        )

    def _switch(self, link: Link, reason: str) -> None:
        """Say, once, that another link is asked than before."""
        self._too_small.discard(link.name)
        before, self._current = self._current, link
        if before is not None and before.name != link.name:
            lost, self._lost = round(self._lost, 3), 0.0
            paid = link.on_consent and not before.on_consent
            self._tell(LinkSwitched(from_=before.name, to=link.name, reason=reason, seconds_lost=lost, paid=paid))
        if link.on_consent and link.name not in self._paid:
            self._paid.add(link.name)
            if not all(other.on_consent for other in self.links[: self.links.index(link)]):
                self._tell(ledger.falls_to_paid(link))

    def _failed(self, link: Link, failure: Failure, spent: ledger.Spent, walk: Walk) -> None:
        self._tell(ledger.failed(link, failure, spent, self._price))
        self._lost += spent.seconds + spent.pause
        walk.reached = walk.reached or failure.connected
        self._note(walk, verdict.of_failure(link, failure))

    def _note(self, walk: Walk, ended: verdict.Ended) -> None:
        walk.ended[ended.link] = walk.last = ended
        if walk.since is None:
            walk.since = self._now()

    def _leave(self, visit: Visit, step: Step, walk: Walk) -> None:
        """Give the link its fate. Raises ChainExhausted when it is the request itself that is refused."""
        failure, link = visit.failure, visit.link
        assert failure is not None
        walk.broken[link.name], walk.told = visit.attempts.broken, visit.attempts.told
        if step.fate == "out":
            self.health.out(link, failure.error_class, failure.message, failure.reach)
        elif step.fate == "rest" or failure.error_class in BROKEN:
            missed = walk.missed.get(link.name)
            before = missed.before if missed else self.health.last(link)
            rest = self.health.rest(link, failure.retry_at, failure.error_class, failure.message, failure.reach)
            if not failure.connected:
                walk.missed[link.name] = Charge(link, rest, before)
        if step.fate == "unfit":
            walk.unfit.add(link.name)
        if failure.error_class in REFUSED and failure.scope == "request":
            walk.refusals += 1
            if walk.refusals >= MOST_REFUSALS:
                raise verdict.refused(self._endings(walk))

    def _served(self, visit: Visit, walk: Walk) -> None:
        """The link is well. What others refused and it did not was their own trouble: they rest."""
        self.health.succeeded(visit.link, visit.sent)
        if visit.attempts.repaired:
            self._mended.add(visit.link.identity)
        self._answered = True
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
            return "asked again after a rest" if same else f"{walk.last.link}: {walk.last.error_class}"
        for other in self.links[: self.links.index(link)]:
            if (why := self._barred(other)) is not None:
                return f"{other.name}: {why}"
            if (rest := self.health.resting(other)) is not None:
                return f"{other.name}: {rest.error_class}"
        returns = self._current is not None and self._current.name != link.name
        return "its rest is over" if returns else "first of the chain"

    async def _wait(self, walk: Walk) -> None:
        """Sleep until a link may be asked again. Raises what ends the request when no waiting helps."""
        rests = [(link, rest) for link in self.links if (rest := self._coming_back(link, walk)) is not None]
        if not rests:
            raise verdict.nothing_left(self._endings(walk), answered=self._answered)
        now = self._now()
        if walk.since is None:
            walk.since = now
        # With links asked and none reached it is the network that is gone, whatever else rests meanwhile.
        offline = bool(walk.missed) and not walk.reached
        missed = {name for charge in walk.missed.values() for name in self._sharing(charge)}
        wait = pause.offline(rests, missed, walk.offline_rounds, now) if offline else pause.limited(rests)
        self._check_time(walk, walk.since, wait.until, nobody=wait.nobody and not self._answered)
        until = wait.until + pause.jitter(wait.until - now, self._random())
        self._tell(Waiting(until=utc(until), reason=wait.reason))
        passed_over = missed if offline else ()
        while (left := until - self._now()) > 0:
            await self._sleep(min(LOOK_UP_SECONDS, left))
            if self._ready(walk, without=passed_over) is not None:
                break
        if offline:  # no link is to blame
            walk.offline_rounds += 1
            for charge in walk.missed.values():
                self.health.take_back(charge.link, charge.rest, charge.before)
        walk.missed, walk.reached = {}, False

    def _at(self, address: str) -> list[str]:
        return [link.name for link in self.links if link.address == address]

    def _sharing(self, charge: Charge) -> list[str]:
        """Whom *charge* lets rest."""
        return self._at(charge.link.address) if charge.rest.reach == "address" else [charge.link.name]

    def _coming_back(self, link: Link, walk: Walk) -> Rest | None:
        asked = link.name not in walk.unfit and self._barred(link) is None
        rest = self.health.resting(link) if asked else None
        return None if rest is None or rest.out else rest

    def _check_time(self, walk: Walk, since: float, until: float, *, nobody: bool = False) -> None:
        """Raises what ends the request when *until* is later than a request in trouble *since* then may take.
        *nobody*: no link could be connected to, ever."""
        allowed = self._patience if nobody else self._max_wait
        if until <= since + allowed:
            return
        endings = self._endings(walk)
        if nobody:
            raise verdict.nobody_there(endings)
        raise verdict.waited_enough(endings, wanted_seconds=until - self._now(), allowed_seconds=allowed)

    def _endings(self, walk: Walk) -> list[verdict.Ended]:
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
