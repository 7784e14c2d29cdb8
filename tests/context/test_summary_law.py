"""However many summaries were made of summaries, the newest one keeps to its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from agentx.context.checkpoint import Checkpoint
from agentx.context.measure import text_tokens
from tests.context.conftest import reply_of

if TYPE_CHECKING:
    from agentx.wires.messages import Message, Reply
    from tests.context.conftest import Bench


class Hoarder:
    """A model that keeps all that it is given, says more each time, and writes as much as it may."""

    def __init__(self) -> None:
        self.written = 0

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        self.written += 1
        kept = "\n".join(
            f"- generation {self.written}, fact {n}: the key is K{n:05}" for n in range(max_tokens // 10)
        )
        return reply_of(f"Goal: read all\nDone:\n{kept}"[: max_tokens * 4 - 100])


@pytest.mark.parametrize("window", [8_192, 400_000])
def test_fifty_summaries_in_a_row_keep_within_the_law(bench: Bench, window: int) -> None:
    bench.start()
    hoarder, law = Hoarder(), min(window // 20, 10_000)
    generations: list[int] = []
    result = "x" * (window // 4 * 3)
    while len(generations) < 50:
        bench.reads(f"{hoarder.written}.md", result[:250_000])
        view = bench.view(window, hoarder)
        bench.turn(view)
        if view.generation not in (*generations, 0):
            generations.append(view.generation)
    for entry in bench.journal.read(types=("compaction",)):
        payload = entry.payload or {}
        if "checkpoint" in payload:
            assert text_tokens(Checkpoint.from_json(payload["checkpoint"]).summary) <= law
    assert hoarder.written >= 40
