"""What a job may use up: turns, hours, money, tokens. Checked before each request, from the journal's own sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agentx.errors import LimitReached


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None is no limit. `cost` is in US dollars; `tokens` counts input and output of all attempts."""

    cost: float | None = None
    hours: float | None = None
    turns: int | None = None
    tokens: int | None = None

    def to_json(self) -> dict[str, float | int | None]:
        return {"cost": self.cost, "hours": self.hours, "turns": self.turns, "tokens": self.tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Seconds that brought nothing. `waiting`: for a link to come back. `switching`: failed attempts that led to
    another link. `retrying`: all other failed attempts. The pauses after failed attempts belong to them."""

    waiting: float = 0.0
    retrying: float = 0.0
    switching: float = 0.0

    @property
    def seconds(self) -> float:
        return self.waiting + self.retrying + self.switching


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Attempts that brought no reply, how many of each class; what they used, as far as it was reported.
    `unpriced` counts those of which nobody knows what they cost."""

    attempts: Mapping[str, int] = field(default_factory=dict[str, int])
    input: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def number(self) -> int:
        return sum(self.attempts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a job has used so far, failed attempts included. `cost` counts only what has a known price; `unpriced`
    counts the replies that have none."""

    turns: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    unpriced: int = 0
    input: int = 0
    output: int = 0
    compactions: int = 0
    switches: int = 0
    lost: Lost = field(default_factory=Lost)
    failed: Failed = field(default_factory=Failed)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_limits(limits: Limits, used: Totals) -> None:
    """Raises LimitReached for the first limit that is used up."""
    spent: Mapping[str, tuple[float, float | None, str]] = {
        "cost": (used.cost, limits.cost, "{:.4g} of {:g} dollars are spent"),
        "hours": (used.seconds / 3600, limits.hours, "{:.2f} of {:g} hours are over"),
        "turns": (used.turns, limits.turns, "{:g} of {:g} turns are made"),
        "tokens": (used.input + used.output, limits.tokens, "{:,.0f} of {:,.0f} tokens are used"),
    }
    for name, (value, limit, sentence) in spent.items():
        if limit is not None and value >= limit:
            raise LimitReached(
                name,
                f"limit of {name}: {sentence.format(value, limit)}",
                hint=f"go on with more: `agentx -c limits.{name}=N resume JOB`",
            )
