"""The loop guard, as a value: a model that repeats the same call with the same result is told, then stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

WAITING_TOOLS = frozenset({"shell_output"})
"""Polling is not looping."""


DURATION = re.compile(r"\b\d+(\.\d+)? ?m?s\b")


def without_times(text: str) -> str:
    """*text* without durations: the same command hardly ever takes the same time twice."""
    return DURATION.sub("", text)


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """Looks at the last calls: one that repeats, and a longer round in which nothing new comes.

    A call is told of at 3 repetitions among the last `near` calls and is `stuck` at 8. A round of any length is
    told of after 20 calls in a row that were all made before with the same result, and is `stuck` after 40.

    A compaction takes results out of the model's view: to ask for them again is no loop (`compacted`). Only a job
    in which nothing new comes from one compaction to the next, four times in a row, is one.
    """

    tell_at: int = 3
    stop_at: int = 8
    near: int = 24
    tell_stale_at: int = 20
    stop_stale_at: int = 40
    stop_idle_at: int = 4
    memory: int = 400
    seen: tuple[str, ...] = ()
    stale: int = 0
    """How many calls in a row brought nothing new."""
    known: frozenset[str] = frozenset()
    """What was seen before the last compaction."""
    idle: int = 0
    """How many compactions in a row nothing new came before."""

    def after(self, name: str, arguments: Mapping[str, Any], result: str) -> LoopGuard:
        """The guard that also knows this call; order of arguments does not matter."""
        if name in WAITING_TOOLS:
            return self
        sorted_text = json.dumps([name, arguments, without_times(result)], sort_keys=True, ensure_ascii=False)
        mark = hashlib.sha256(sorted_text.encode("utf-8", "replace")).hexdigest()
        stale = self.stale + 1 if mark in self.seen else 0
        return replace(self, seen=(*self.seen, mark)[-self.memory :], stale=stale)

    def compacted(self) -> LoopGuard:
        """The guard of a view that does not show what was seen before."""
        seen = frozenset(self.seen)
        idle = self.idle + 1 if seen and seen <= self.known else 0
        return replace(self, seen=(), stale=0, known=self.known | seen, idle=idle)

    @property
    def repetitions(self) -> int:
        """How often the last call with its result stands among the near ones."""
        return self.seen[-self.near :].count(self.seen[-1]) if self.seen else 0

    @property
    def should_tell(self) -> bool:
        told_before = self.stale in (self.tell_stale_at, self.tell_stale_at + 10)
        return told_before or self.repetitions in (self.tell_at, self.tell_at + 2)

    @property
    def stuck(self) -> bool:
        return (
            self.repetitions >= self.stop_at or self.stale >= self.stop_stale_at or self.idle >= self.stop_idle_at
        )

    @property
    def why(self) -> str:
        """What is wrong when it is `stuck`, without the name of the last call."""
        if self.idle >= self.stop_idle_at:
            return f"brought nothing new through {self.idle} compactions: all calls were made before"
        if self.repetitions >= self.stop_at:
            return f"gave the same result {self.repetitions} times"
        return f"ended a round of {self.stale} calls that were all made before, with the same results"
