"""Stops compaction attempts that do not help, cause by cause, and lets them run again when it may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

State = Literal["closed", "open", "half_open"]

INEFFECTIVE = "ineffective"
"""The cause that stops compaction as a whole; every other one only stops asking a model for a summary."""


def cause_of(cause: str, tier: str = "") -> str:
    """The name of *cause* where the models of *tier* failed: they are not those whose turn it is, so each tier has
    its own failures."""
    return f"{tier}: {cause}" if tier else cause


@dataclass(frozen=True, slots=True)
class Strikes:
    """Failures in a row of one cause; `tokens` is the size of the transcript at the last one."""

    count: int = 0
    opened_at: float | None = None
    tokens: int = 0


def no_strikes() -> dict[str, Strikes]:
    return {}


@dataclass(frozen=True, slots=True)
class Breaker:
    """A value: ask it, then keep the one it returns. Times are epoch seconds.

    After `trip_after` failures in a row a cause is open. It is half open, so that one attempt may run, once the
    transcript has grown by `growth` over the last failed attempt or `cool_down` seconds have passed (for `auth`,
    which people have to mend, `auth_cool_down`).
    """

    trip_after: int = 3
    cool_down: float = 600.0
    auth_cool_down: float = 1_800.0
    growth: float = 0.25
    causes: Mapping[str, Strikes] = field(default_factory=no_strikes)

    def state(self, cause: str, now: float, tokens: int) -> State:
        strikes = self.causes.get(cause, Strikes())
        if strikes.opened_at is None:
            return "closed"
        grown = tokens >= strikes.tokens * (1 + self.growth)
        return "half_open" if grown or now >= strikes.opened_at + self._rest(cause) else "open"

    def open_cause(self, now: float, tokens: int, *, summary: bool, tier: str = "") -> str | None:
        """The cause that forbids an attempt now: to compact at all, or (with *summary*) to ask the models of
        *tier*; without a *tier* those are the one whose turn it is, and who stands in for it."""
        for cause in self.summary_causes(tier) if summary else (INEFFECTIVE,):
            if self.state(cause, now, tokens) == "open":
                return cause
        return None

    def failed(self, cause: str, now: float, tokens: int) -> Breaker:
        before = self.causes.get(cause, Strikes())
        count = before.count + 1
        strikes = Strikes(count, now if count >= self.trip_after else None, tokens)
        return replace(self, causes={**self.causes, cause: strikes})

    def succeeded(self, *causes: str) -> Breaker:
        """Forget the failures of *causes*."""
        if not any(cause in self.causes for cause in causes):
            return self
        left = {cause: strikes for cause, strikes in self.causes.items() if cause not in causes}
        return replace(self, causes=left)

    def summary_causes(self, tier: str = "") -> tuple[str, ...]:
        """The known causes for which the models of *tier* gave no summary."""
        own = f"{tier}: " if tier else ""
        return tuple(
            cause
            for cause in self.causes
            if cause != INEFFECTIVE and (cause.startswith(own) if own else ": " not in cause)
        )

    def until(self, cause: str) -> float | None:
        """When *cause* cools down by itself."""
        opened_at = self.causes.get(cause, Strikes()).opened_at
        return None if opened_at is None else opened_at + self._rest(cause)

    def _rest(self, cause: str) -> float:
        return self.auth_cool_down if cause == "auth" else self.cool_down

    def to_json(self) -> dict[str, Any]:
        return {cause: [s.count, s.opened_at, s.tokens] for cause, s in self.causes.items()}

    def with_json(self, data: Mapping[str, Any]) -> Breaker:
        """The same settings with the failures that *data* tells."""
        return replace(self, causes={cause: Strikes(*strikes) for cause, strikes in data.items()})
