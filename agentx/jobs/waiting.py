"""How long a job waits for links: until a known time, until it is stopped, or until its hours are over."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from agentx.agent.limits import Limits, Totals, check_limits
from agentx.chain.walk import MAX_WAIT_SECONDS
from agentx.config.load import Config
from agentx.errors import StopRequested
from agentx.events import Waiting
from agentx.jobs.meter import SEEN, Meter, totals
from agentx.journal import Journal

NAP_SECONDS = 0.5
SEEN_SECONDS = 2.0
"""How often a process that waits says that it is alive: a wait that is killed counts up to there."""


def longest_wait(config: Config) -> float:
    """Seconds that one request may wait for links. Without a setting the job's own limits end a wait."""
    settings = config.settings
    if settings.on_exhausted == "fail":
        return 0.0
    return MAX_WAIT_SECONDS if settings.max_wait is None else min(settings.max_wait * 3600, MAX_WAIT_SECONDS)


def planned_wake(journal: Journal) -> float | None:
    """When the run before meant to wake, where it ended in the middle of a wait."""
    last = journal.last("waiting", "request", "reply", "link.failed", "woken")
    return (
        datetime.fromisoformat(last.event.until).timestamp() if last and isinstance(last.event, Waiting) else None
    )


def time_left(limits: Limits, meter: Meter) -> Callable[[], float]:
    """The seconds until the job's hours are over. Raises LimitReached when they are."""
    only_hours = Limits(hours=limits.hours)

    def left() -> float:
        if limits.hours is None:
            return math.inf
        used = meter.read(time.time())
        check_limits(only_hours, used)
        return limits.hours * 3600 - used.seconds

    return left


def watchful_sleep(
    journal: Journal, limits: Limits, nap: Callable[[float], Awaitable[None]]
) -> Callable[[float], Awaitable[None]]:
    """A sleep of many *nap*s that ends early: with StopRequested when somebody asks for it, with LimitReached when
    the hours are over."""

    def used() -> Totals:
        return totals(journal, time.time())

    async def sleep(seconds: float) -> None:
        left, unseen = seconds, 0.0
        allowed = math.inf if limits.hours is None else limits.hours * 3600 - used().seconds
        while left > 0:
            await nap(min(left, NAP_SECONDS))
            left -= NAP_SECONDS
            allowed -= NAP_SECONDS
            unseen += NAP_SECONDS
            if unseen >= SEEN_SECONDS:
                journal.set_meta(SEEN, str(time.time()))
                unseen = 0.0
            for letter in journal.letters("stop"):
                journal.take(letter)
                raise StopRequested("stopped on request while waiting; nothing is lost")
            if allowed <= 0:
                check_limits(limits, used())

    return sleep
