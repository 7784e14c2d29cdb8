"""The way back to a preferred link: at a turn boundary, by a small probe where the turn is large, and damped.

A warm prompt cache on the link in use does not delay the return. Reading the conversation afresh is paid once by
the preferred link, whenever it gets it; waiting a few turns would only save that where the job ends in between.
What must not happen is paying it at each turn: that is what the damping is for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agentx.chain.classify import Failure, classify
from agentx.chain.ledger import Spent, spent
from agentx.config.links import Link
from agentx.errors import ErrorClass, RequestFailed
from agentx.wires.messages import Message, Request

PROBE_ABOVE = 8_000
"""Tokens of the last request: below it the turn itself is as cheap a probe as any."""
PROBE_SECONDS = 10.0
PROBE_REPLY = 16
"""Tokens; some servers refuse less."""
UNWELL: frozenset[ErrorClass] = frozenset(
    {"rate_limit", "quota", "overloaded", "auth", "not_found", "timeout", "network", "server"}
)
"""What a probe can find out. All other failures say that somebody is there and read it."""

STEADY_TURNS = 10
"""A link that served so many turns since it came back is well."""
HOLD_SECONDS, LONGEST_HOLD = 60.0, 7_200.0
HOLD_TURNS, MOST_HOLD_TURNS = 6, 60


@dataclass(frozen=True, slots=True)
class Flap:
    """A link that came back: how many turns it `served` since (None: it is gone again), how often in a row it did
    not last (`level`), since when it is held off, and how many turns others must still serve."""

    served: int | None = 0
    level: int = 0
    since: float = 0.0
    turns_left: int = 0

    def failed(self, now: float) -> Flap:
        """It did not last: hold it off for 1, 2, 4 ... minutes, and for 6 turns, then 60."""
        turns = min(MOST_HOLD_TURNS, HOLD_TURNS * 10**self.level)
        return Flap(served=None, level=self.level + 1, since=now, turns_left=turns)

    def held(self, now: float) -> bool:
        """Two hours at most, for the sake of long turns. A clock that was set back holds nothing off."""
        if self.served is not None or not 0 <= now - self.since < LONGEST_HOLD:
            return False
        return self.turns_left > 0 or now - self.since < HOLD_SECONDS * 2.0 ** (self.level - 1)


class Position:
    """Where a job stands in its chain, and what it knows of its links' returns. It is written nowhere."""

    def __init__(self) -> None:
        self.current: Link | None = None
        self.size = 0
        """Tokens of the last request that was answered."""
        self._flaps: dict[str, Flap] = {}

    def in_order(self, links: Sequence[Link], now: float) -> Sequence[Link]:
        """*links* in the order in which they are asked: those that came back and did not last go behind."""
        return sorted(links, key=lambda link: self.held(link, now))

    def held(self, link: Link, now: float) -> bool:
        """*link* came back before and did not last: others are asked first."""
        flap = self._flaps.get(link.name)
        return flap is not None and flap.held(now)

    def returning(self, link: Link, links: Sequence[Link]) -> bool:
        """To ask *link* would be a return to a preferred one."""
        names = [one.name for one in links]
        current = None if self.current is None else self.current.name
        return current in names and names.index(link.name) < names.index(current)

    def move(self, link: Link, links: Sequence[Link]) -> Link | None:
        """*link* is the one in use from now on; gives the one before, where that was another."""
        if self.returning(link, links):
            flap = self._flaps.get(link.name, Flap())
            self._flaps[link.name] = replace(flap, served=0)
        before, self.current = self.current, link
        return None if before is None or before.name == link.name else before

    def served(self, link: Link, size: int) -> None:
        """*link* answered a turn of *size* tokens."""
        self.size = size
        for name, flap in [*self._flaps.items()]:
            if name != link.name:
                self._flaps[name] = replace(flap, turns_left=max(0, flap.turns_left - 1))
            elif flap.served is not None and flap.served + 1 >= STEADY_TURNS:
                del self._flaps[name]
            elif flap.served is not None:
                self._flaps[name] = replace(flap, served=flap.served + 1)

    def failed(self, link: Link, now: float) -> None:
        """*link* was given up for now."""
        flap = self._flaps.get(link.name)
        if flap is not None and flap.served is not None:
            self._flaps[link.name] = flap.failed(now)


def small_request(link: Link) -> Request:
    """Asks whether somebody is there."""
    return Request(
        model=link.model,
        messages=[Message(role="user", text="Answer with one word: ready?")],
        max_tokens=PROBE_REPLY,
        purpose="probe",
        estimate=10,
    )


@dataclass(frozen=True, slots=True)
class Probed:
    """How a probe failed, and what that took."""

    failure: Failure
    spent: Spent


async def probed(link: Link, asking: Awaitable[object], now: Callable[[], float]) -> Probed | None:
    """What *asking* something small of *link* finds out; None when it answered."""
    began = now()
    try:
        await asking
    except RequestFailed as error:
        failure = classify(error, link.provider, now())
        return Probed(failure, spent(error, now() - began))
    return None
