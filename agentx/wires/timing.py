"""The four timers of one attempt as one moving deadline."""

from __future__ import annotations

import asyncio

from agentx.wires.messages import Timers


class Clock:
    """Made when the attempt begins, inside the loop that runs it; `limit` is entered around the attempt."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self._time = asyncio.get_running_loop().time
        now = self._time()
        self._end = now + timers.total
        self._reason = f"no content within {timers.first:g} s"
        self.limit = asyncio.timeout_at(min(self._end, now + timers.first))

    def content(self) -> None:
        """A piece of content came: the next one must come within `idle`."""
        self._reason = f"no new content for {self.timers.idle:g} s"
        self._move(self.timers.idle)

    def linger(self, seconds: float) -> None:
        """The reply is whole: wait only *seconds* more for what may follow."""
        self._move(seconds)

    def why(self) -> str:
        """Which timer ended the attempt, in words."""
        when = self.limit.when()
        if when is not None and when >= self._end:
            return f"not finished within {self.timers.total:g} s"
        return self._reason

    def _move(self, seconds: float) -> None:
        if not self.limit.expired():
            self.limit.reschedule(min(self._end, self._time() + seconds))
