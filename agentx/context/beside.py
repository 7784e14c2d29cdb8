"""A summary that is prepared beside the work, so that a compaction need not wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass

from agentx.context.checkpoint import Checkpoint
from agentx.context.tiers.work import Prepared, Step


@dataclass(slots=True)
class Beside:
    """At most one summary in the making. For one view none is made twice, but one that failed may be."""

    made_for: int | None = None
    """The generation of the view that it goes on from."""
    _base: Checkpoint | None = None
    _task: asyncio.Task[Step] | None = None

    def start(self, generation: int, base: Checkpoint, step: Awaitable[Step]) -> None:
        """Prepare a summary that goes on from *base*, the checkpoint of that *generation*."""
        self.drop()
        self.made_for, self._base = generation, base
        self._task = asyncio.ensure_future(step)

    async def prepared(self, seconds: float) -> Prepared | None:
        """What was prepared, waited for at most so many seconds; None when nothing is there by then."""
        if self._task is None or self._base is None:
            return None
        await asyncio.wait({self._task}, timeout=seconds)
        if not self._task.done() or self._task.cancelled() or self._task.exception() is not None:
            return None
        step = self.failure() or self._task.result()
        return Prepared(since=self._base.upto, before=self._base.summary, step=step)

    def failure(self) -> Step | None:
        """What came of an attempt that ended without a summary: told once, and then another may be made."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        step = task.result()
        if step.draft is not None:
            return None
        self.drop()
        self.made_for = None
        return step

    def drop(self) -> None:
        """Forget it, and end it if it is still being made."""
        if self._task is not None:
            self._task.cancel()
        self._task = None

    async def close(self) -> None:
        task = self._task
        self.drop()
        if task is not None:
            with suppress(asyncio.CancelledError, Exception):  # nobody needs it any more, however it ended
                await task
