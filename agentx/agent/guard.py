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
    """Looks at the last `memory` calls. `told` at 3 repetitions, `stuck` at 8."""

    tell_at: int = 3
    stop_at: int = 8
    memory: int = 24
    seen: tuple[str, ...] = ()

    def after(self, name: str, arguments: Mapping[str, Any], result: str) -> LoopGuard:
        """The guard that also knows this call; order of arguments does not matter."""
        if name in WAITING_TOOLS:
            return self
        sorted_text = json.dumps([name, arguments, without_times(result)], sort_keys=True, ensure_ascii=False)
        mark = hashlib.sha256(sorted_text.encode("utf-8", "replace")).hexdigest()
        return replace(self, seen=(*self.seen, mark)[-self.memory :])

    @property
    def repetitions(self) -> int:
        """How often the last call with its result stands among the remembered ones."""
        return self.seen.count(self.seen[-1]) if self.seen else 0

    @property
    def should_tell(self) -> bool:
        return self.repetitions in (self.tell_at, self.tell_at + 2)

    @property
    def stuck(self) -> bool:
        return self.repetitions >= self.stop_at
