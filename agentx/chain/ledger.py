"""What a failed attempt cost, in seconds, tokens and money: what went wrong at night is told with its price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentx.chain.classify import Failure
from agentx.config.links import Link
from agentx.errors import ContextOverflow, ErrorClass, RequestFailed
from agentx.events import LinkFailed, Purpose, Warned, utc
from agentx.wires.messages import Usage

Price = Callable[[Link, Usage | None], float | None]
"""US dollars for what one link used; None where the price or the usage is not known."""

NEVER_READ: frozenset[ErrorClass] = frozenset(
    {
        "rate_limit", "quota", "overloaded", "auth", "not_found", "offline", "overflow", "output_cap",
        "too_many_bytes", "malformed_history", "bad_request",
    }
)  # fmt: skip
"""Refusals before a model read anything: nobody bills them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one failed attempt took: `seconds` from the sending on, `pause` before the same link is asked again."""

    seconds: float
    usage: Usage | None = None
    pause: float = 0.0


def spent(error: RequestFailed, seconds: float, pause: float = 0.0) -> Spent:
    """What the attempt took that ended with *error*; a clock that was set back makes it no gain."""
    usage = Usage(**error.usage) if error.usage else None
    return Spent(seconds=round(max(0.0, seconds), 3), usage=usage, pause=round(pause, 3))


def failed(link: Link, failure: Failure, took: Spent, price: Price, purpose: Purpose = "turn") -> LinkFailed:
    """The event of one failed attempt."""
    usage = took.usage
    return LinkFailed(
        link=link.name,
        class_=failure.error_class,
        status=failure.status,
        message=failure.message if failure.known else f"unknown refusal: {failure.message}",
        retry_at=None if failure.retry_at is None else utc(failure.retry_at),
        limit=failure.limit,
        actual=failure.actual,
        seconds=took.seconds,
        pause=took.pause,
        tokens=None if usage is None else {"input": usage.input, "output": usage.output},
        cost=_cost(link, failure, usage, price),
        purpose=purpose,
    )


def unmade(link: Link, error: ContextOverflow, seconds: float) -> LinkFailed:
    """No request could be made that *link* can hold: it was not asked."""
    return LinkFailed(
        link=link.name,
        class_="overflow",
        status=None,
        message=f"not asked: {error.message}",
        limit=error.limit,
        actual=error.actual,
        seconds=round(max(0.0, seconds), 3),
        cost=0.0,
    )


def _cost(link: Link, failure: Failure, usage: Usage | None, price: Price) -> float | None:
    """Nothing where no model read anything; else by what was reported, and unknown where nothing was."""
    if usage is None and (not failure.connected or failure.error_class in NEVER_READ):
        return 0.0
    return price(link, usage)


def falls_to_paid(link: Link) -> Warned:
    """A job that went on for nothing, or at a flat rate, begins to spend."""
    cap = "the job's limit of cost" if link.max_cost is None else f"${link.max_cost:g} in this job"
    return Warned(message=f"{link.name} costs money and those before it do not: it is used up to {cap}")


def unknown(*_: object) -> None:
    """The price for a caller who knows none."""
