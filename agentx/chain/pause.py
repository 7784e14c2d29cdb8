"""How long to wait when no link may be asked, and why: limits, or a network that is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentx.chain.health import Rest
from agentx.config.links import Link

OFFLINE_FIRST, OFFLINE_LONGEST = 5.0, 60.0
JITTER, MOST_JITTER = 0.1, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """`until` in epoch seconds, without jitter. `nobody`: no link has another reason to rest than the network."""

    until: float
    reason: str
    offline: bool = False
    nobody: bool = False


def limited(rests: Sequence[tuple[Link, Rest]]) -> Pause:
    """Until the first of *rests* is over."""
    first, rest = min(rests, key=lambda pair: pair[1].until)
    why = f"{first.name} is back first ({rest.error_class}: {rest.message})"
    return Pause(until=rest.until, reason=f"every link rests; {why}")


def offline(rests: Sequence[tuple[Link, Rest]], missed: Collection[str], rounds: int, now: float) -> Pause:
    """Until the network may be back, after *rounds* such waits: 5 s doubling to a minute.

    *missed* could not be connected to. A link that rests on a limit meanwhile is waited for no longer than that.
    """
    others = [rest.until for link, rest in rests if link.name not in missed]
    message = next((rest.message for link, rest in rests if link.name in missed), "cannot connect")
    next_try = now + min(OFFLINE_LONGEST, OFFLINE_FIRST * 2.0 ** min(rounds, 10))
    return Pause(
        until=min([next_try, *others]),
        reason=f"offline: no link can be reached ({message})",
        offline=True,
        nobody=not others,
    )


def jitter(seconds: float, chance: float) -> float:
    """What is added to a wait of *seconds*, so that many jobs do not wake at once; *chance* is 0 to 1."""
    return chance * min(JITTER * seconds, MOST_JITTER)
