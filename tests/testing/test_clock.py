from __future__ import annotations

import asyncio

from agentx.testing.clock import VirtualClock


def test_a_night_passes_in_no_time() -> None:
    clock = VirtualClock(start=100.0)
    asyncio.run(clock.sleep(7_200))
    clock.advance(0.5)
    assert (clock.now(), clock.monotonic(), clock.slept) == (7_300.5, 7_200.5, [7_200])
