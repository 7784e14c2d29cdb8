"""What the chain keeps in mind while one request looks for its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentx.chain import verdict
from agentx.chain.health import Rest
from agentx.chain.visit import Check, Prepare, Shorter
from agentx.config.links import Link


@dataclass(frozen=True, slots=True)
class Charge:
    """A rest, and what was known before it."""

    link: Link
    rest: Rest
    before: Rest | None


@dataclass(slots=True)
class Walk:
    """What is known while one request looks for its answer; links are named by their `name`."""

    prepare: Prepare
    check: Check | None
    shorter: Shorter | None
    ended: dict[str, verdict.Ended] = field(default_factory=dict[str, verdict.Ended])
    unfit: set[str] = field(default_factory=set[str])
    """They are not asked again for this request."""
    reached: bool = False
    """A link was connected to since the last wait."""
    missed: dict[str, Charge] = field(default_factory=dict[str, Charge])
    """Those that could not be connected to since the last wait, and what they were charged for it."""
    broken: dict[str, int] = field(default_factory=dict[str, int])
    told: int = 0
    """How often the model was told to write less at a time."""
    refusals: int = 0
    last: verdict.Ended | None = None
    since: float | None = None
    """When it was first seen that this request is in trouble (epoch seconds)."""
    offline_rounds: int = 0

    def in_trouble(self, now: float) -> float:
        """Since when, which is *now* unless it was known before."""
        if self.since is None:
            self.since = now
        return self.since

    def anew(self) -> None:
        """Forget what links said: they are other links now, or may have been mended."""
        for known in (self.ended, self.unfit, self.missed, self.broken):
            known.clear()
        self.last, self.refusals = None, 0
