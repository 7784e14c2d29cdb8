"""How long to wait when no link may be asked, and why: limits, or a network that is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentx.chain.health import Rest
from agentx.config.links import Link

OFFLINE_FIRST, OFFLINE_LONGEST = 5.0, 60.0
JITTER, MOST_JITTER = 0.1, 30.0
WRITTEN = 0.001
"""A time that was written down is exact to the millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """`until` in epoch seconds, without jitter. `nobody`: no link has another reason to rest than the network."""

    until: float
    reason: str
    nobody: bool = False


def limited(rests: Sequence[tuple[Link, Rest]]) -> Pause:
    """Until the first of *rests* is over."""
    first, rest = min(rests, key=lambda pair: pair[1].until)
    why = f"{first.name} is back first ({rest.error_class}: {rest.message})"
    return Pause(until=rest.until, reason=f"every link rests; {why}")


def offline(message: str, others: Collection[float], rounds: int, now: float) -> Pause:
    """Until the network may be back, after *rounds* such waits: 5 s doubling to a minute.

    *message* is how a connection failed. *others* rest on limits until then: they are waited for no longer.
    """
    next_try = now + min(OFFLINE_LONGEST, OFFLINE_FIRST * 2.0 ** min(rounds, 10))
    return Pause(
        until=min([next_try, *others]), reason=f"offline: no link can be reached ({message})", nobody=not others
    )


def wake(until: float, now: float, chance: float, planned: float | None) -> float:
    """When to wake for what is back at *until*: a little later, so that many jobs do not wake at once.

    The little is decided once: what was *planned* for the same end before, perhaps by a process that was killed
    since, stays. *chance* is 0 to 1.
    """
    if planned is not None and until - WRITTEN <= planned <= until + MOST_JITTER:
        return planned
    return until + chance * min(JITTER * (until - now), MOST_JITTER)
