"""The four timers of one attempt as one moving deadline."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from agentx.config.links import Link
from agentx.wires.messages import Timers

if TYPE_CHECKING:
    from agentx.config.settings import TimerSettings

BEAT_SECONDS = 1.0
FROZEN_SECONDS = 1.0
"""A beat that comes so late was not late by itself: the process stood still, and so did what it waited for."""


def general(settings: TimerSettings) -> Timers:
    """The timers that hold for every link that says nothing else."""
    return Timers(
        connect=settings.connect,
        headers=settings.headers,
        first=settings.first,
        idle=settings.idle,
        total=settings.total,
    )


def timers_for(link: Link, timers: Timers) -> Timers:
    """Those of *link*: what it says itself, else what its model needs, else *timers*."""
    slow = (each.first for each in link.provider.slow if re.search(each.match, link.model, re.IGNORECASE))
    return replace(timers, **{"first": max([timers.first, *slow]), **link.timers})


class Clock:
    """Entered around the attempt, inside the loop that runs it; raises TimeoutError there when the time is up.

    It looks at the time at each beat. After a beat that came late (a stopped process, a suspended virtual machine)
    all deadlines move by as much: what the server sent meanwhile is read first.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        headers = timers.first if timers.headers is None else min(timers.headers, timers.first)
        self._end = now + timers.total
        self._first = now + timers.first
        self._due = now + headers
        self._reason = f"no answer within {headers:g} s"
        self._limit = asyncio.timeout(None)
        self._beat: asyncio.TimerHandle | None = None
        self._next = now
        """When the next beat is."""

    async def __aenter__(self) -> Clock:
        await self._limit.__aenter__()
        self._plan()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._beat is not None:
            self._beat.cancel()
        return await self._limit.__aexit__(kind, error, trace)

    def answered(self) -> None:
        """The answer has begun; nothing is said yet."""
        self._reason = f"no content within {self.timers.first:g} s"
        self._due = self._first

    def content(self) -> None:
        """A piece of content came: the next one must come within `idle`."""
        self._reason = f"no new content for {self.timers.idle:g} s"
        self._move(self.timers.idle)

    def linger(self, seconds: float) -> None:
        """The reply is whole: wait only *seconds* more for what may follow."""
        self._move(seconds)

    def why(self) -> str:
        """Which timer ended the attempt, in words."""
        return f"not finished within {self.timers.total:g} s" if self._end <= self._due else self._reason

    def _move(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        if self._due < self._next:  # else the next beat finds it
            self._plan()

    def _plan(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        self._next = min(self._loop.time() + BEAT_SECONDS, self._due, self._end)
        self._beat = self._loop.call_at(self._next, self._look, self._next)

    def _look(self, expected: float) -> None:
        now = self._loop.time()
        if now - expected > FROZEN_SECONDS:
            self._due += now - expected
            self._first += now - expected
            self._end += now - expected
        if now >= min(self._due, self._end):
            self._limit.reschedule(now)
        else:
            self._plan()
