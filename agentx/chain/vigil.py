"""The wait itself, when no link may be asked: until a known time, or until somebody can be connected to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentx.chain import pause, verdict
from agentx.chain.health import Health, Rest
from agentx.chain.walk_state import Charge, Walk
from agentx.config.links import Link
from agentx.events import Event, Waiting, Woken, utc
from agentx.wires.reach import reachable

FIRST_LOOK, LOOK_SECONDS = 1.0, 30.0
"""A wait looks up so soon, then at twice the time, and at last this often: machines sleep, clocks jump, people
mend things, other jobs know more."""
Reach = Callable[[Link], Awaitable[bool | None]]


@dataclass(frozen=True, slots=True)
class News:
    """The surroundings have changed: the links as they are now, and what happened, in words."""

    reason: str
    links: Sequence[Link]


class Waiter(Protocol):
    """The chain that waits."""

    health: Health
    answered: bool

    @property
    def links(self) -> tuple[Link, ...]: ...
    def at(self, address: str) -> list[str]: ...
    def ready(self, walk: Walk, without: Collection[str] = ()) -> Link | None: ...
    def coming_back(self, link: Link, walk: Walk) -> Rest | None: ...
    def endings(self, walk: Walk) -> list[verdict.Ended]: ...
    def use(self, links: Sequence[Link], walk: Walk) -> None: ...


@dataclass(kw_only=True)
class Vigil:
    """`max_wait` is how long one request may be in trouble, `patience` how long a chain that never answered looks
    for somebody to connect to (seconds). `look` says what changed since it was last asked; `reach` whether a link
    can be connected to, without a request. `planned` is when it wakes, as decided by an earlier process."""

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    tell: Callable[[Event], object]
    look: Callable[[], News | None]
    reach: Reach
    max_wait: float
    patience: float
    look_seconds: float = LOOK_SECONDS
    planned: float | None = None

    async def wait(self, chain: Waiter, walk: Walk) -> None:
        """Until a link may be asked again. Raises what ends the request when no waiting helps."""
        rests = [(link, rest) for link in chain.links if (rest := chain.coming_back(link, walk)) is not None]
        if not rests:
            raise verdict.nothing_left(chain.endings(walk), answered=chain.answered)
        since = walk.in_trouble(self.now())
        # With links asked and none reached it is the network that is gone, whatever else rests meanwhile.
        if walk.missed and not walk.reached:
            await self._for_the_network(chain, walk, since, rests)
        else:
            wait = pause.limited(rests)
            self.check_time(chain, walk, since, wait.until)
            self.planned = pause.wake(wait.until, self.now(), self.random(), self.planned)
            self.tell(Waiting(until=utc(self.planned), reason=wait.reason))
            await self._sit(chain, walk, wait.until, self.planned)
        walk.missed, walk.reached = {}, False

    async def _for_the_network(
        self, chain: Waiter, walk: Walk, since: float, rests: Sequence[tuple[Link, Rest]]
    ) -> None:
        """No link is to blame: nobody is charged, and no request is sent before somebody can be connected to."""
        missed = {name for charge in walk.missed.values() for name in _sharing(chain, charge)}
        message = next((rest.message for link, rest in rests if link.name in missed), "cannot connect")
        for charge in walk.missed.values():
            chain.health.take_back(charge.link, charge.rest, charge.before)
        while True:
            found = (chain.coming_back(link, walk) for link in chain.links if link.name not in missed)
            others = [rest.until for rest in found if rest is not None]
            wait = pause.offline(message, others, walk.offline_rounds, self.now())
            nobody = wait.nobody and not chain.answered
            self.check_time(chain, walk, since, wait.until, nobody=nobody)
            self.tell(Waiting(until=utc(wait.until), reason=wait.reason))
            walk.offline_rounds += 1
            if await self._sit(chain, walk, wait.until, wait.until, without=missed):
                return
            links = [charge.link for charge in walk.missed.values()]
            reached = await asyncio.gather(*(self.reach(link) for link in links))
            for link, there in zip(links, reached, strict=True):
                if there:
                    self.tell(Woken(reason=f"{link.name} can be connected to"))
                    return
            if None in reached:  # only a request can tell
                return

    async def _sit(
        self, chain: Waiter, walk: Walk, due: float, until: float, without: Collection[str] = ()
    ) -> bool:
        """Sleep until *until*, a little after what is *due*, or less when something happens before; whether a link
        may be asked then, or the surroundings have changed."""
        began = self.now()
        while (left := until - self.now()) > 0:
            waited = max(0.0, self.now() - began)
            # Soon at first: another job may have taken it on itself to ask, and know in a moment that all is well.
            await self.sleep(min(self.look_seconds, left, FIRST_LOOK + waited))
            news = self.look()
            if news is not None:
                chain.use(news.links, walk)
            link = chain.ready(walk, without) if self.now() < due else None
            if link is not None:
                self.tell(Woken(reason=news.reason if news else f"{link.name} does not rest any more"))
            if link is not None or news is not None:
                return True
        return chain.ready(walk, without) is not None

    def check_time(self, chain: Waiter, walk: Walk, since: float, until: float, *, nobody: bool = False) -> None:
        """Raises what ends the request when *until* is later than a request in trouble *since* then may take.
        *nobody*: no link could be connected to, ever."""
        allowed = min(self.patience, self.max_wait) if nobody else self.max_wait
        if until <= since + allowed:
            return
        endings = chain.endings(walk)
        if nobody:
            raise verdict.nobody_there(endings)
        raise verdict.waited_enough(endings, wanted_seconds=until - self.now(), allowed_seconds=allowed)


def _sharing(chain: Waiter, charge: Charge) -> list[str]:
    """Whom *charge* lets rest."""
    return chain.at(charge.link.address) if charge.rest.reach == "address" else [charge.link.name]


async def reach_link(link: Link) -> bool | None:
    return await reachable(link.provider.base_url)
