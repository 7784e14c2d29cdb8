"""A clock that only moves when somebody sleeps: a night passes in no time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class VirtualClock:
    """Give `now` (epoch seconds), `monotonic` and `sleep` to whatever takes a clock. `slept` tells every sleep."""

    start: float = 1_800_000_000.0
    elapsed: float = 0.0
    slept: list[float] = field(default_factory=list[float])

    def now(self) -> float:
        return self.start + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, seconds: float) -> None:
        """Time that passes without anybody sleeping."""
        self.elapsed += max(0.0, seconds)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
