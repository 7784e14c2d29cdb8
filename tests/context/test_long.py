"""A journal of ten thousand entries costs a turn no more than a short one: work is counted, not timed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agentx.wires.messages import Usage

if TYPE_CHECKING:
    from tests.context.conftest import Bench

SUMMARY = "Goal: read on.\nDone: much.\nNext: more."
WINDOW = 8_192
LONG = "word " * 400


class Work:
    """Counts every call of a function, ours or built in, between enter and exit."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> Work:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: object, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


def turns(bench: Bench, number: int) -> int:
    """So many turns with their views and the compactions that they need; the most that a view took without one."""
    ask, most, compactions = bench.scripted(SUMMARY), 0, 0
    for turn in range(number):
        with Work() as work:
            view = bench.view(WINDOW, ask)
        before, compactions = compactions, len(bench.events("compaction"))
        most = most if compactions > before else max(most, work.calls)
        usage = Usage(input=view.estimate, output=10)
        bench.reads(f"{turn}.md", LONG, view=view, usage=usage)
    return most


def test_a_view_takes_as_much_work_at_ten_thousand_entries_as_at_a_hundred(bench: Bench) -> None:
    bench.start()
    early = turns(bench, 40)
    for number in range(5_000):
        bench.reads(f"{number}.md", LONG)
    late = turns(bench, 40)
    assert bench.context.state.seen > 10_000
    assert late < early * 1.25


def test_what_is_kept_of_compactions_does_not_grow_with_their_number(bench: Bench) -> None:
    bench.start()
    early = turns(bench, 40)
    late = turns(bench, 200)
    state = bench.context.state
    assert len(bench.events("compaction")) > 25
    assert len(state.checkpoints) <= 15
    assert len(state.samples) <= 16
    assert late < early * 1.5
    again = bench.open()
    assert bench.view(WINDOW, context=again).messages == bench.view(WINDOW).messages
    assert again.state.checkpoints == state.checkpoints
