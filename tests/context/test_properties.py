"""What holds for every journal: random conversations, real compactions by the real tiers, views for any budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.context.budget import budget_for
from agentx.context.measure import estimate
from agentx.context.view import View
from agentx.errors import ContextOverflow
from agentx.wires.messages import Image, Message

if TYPE_CHECKING:
    from tests.context.conftest import Bench

SUMMARY = "Goal: read all.\nDone: some notes were read.\nNext: read on."
ANSWERS = (SUMMARY, "", "blah " * 9_000, "I cannot summarise this conversation, sorry.")
WINDOWS = (2_400, 4_096, 8_192, 32_000, 200_000)
PICTURE = (Image("image/png", "AAAA"),)

STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 4), st.integers(0, 9_000), st.booleans()),
    st.tuples(st.just("half"), st.integers(1, 3), st.integers(0, 4_000), st.booleans()),
    st.tuples(st.just("says"), st.just(1), st.integers(0, 1_500), st.just(False)),
    st.tuples(st.just("view"), st.sampled_from(WINDOWS), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("other"), st.integers(0, 2), st.integers(0, 600), st.just(False)),
)
Step = tuple[str, int, int, bool]


def paired(messages: Sequence[Message]) -> bool:
    """Whether every call has its result right behind it, in order, and every result its call."""
    waiting: list[str] = []
    for message in messages:
        if waiting:
            if message.role != "tool" or message.tool_call_id != waiting.pop(0):
                return False
        elif message.role == "tool":
            return False
        waiting = waiting or [call.id for call in message.tool_calls]
    return not waiting


class Life:
    """A job that does as it is told, and what its user said in it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.said: list[str] = []
        bench.start()

    def do(self, step: Step) -> None:
        kind, number, length, flag = step
        bench = self.bench
        if kind in ("read", "half"):
            ids = bench.answers("on it" * (length % 3), *[("read_file", {"path": "p" * (length % 70)})] * number)
            for id_ in ids if kind == "read" else ids[:-1]:
                bench.result(id_, "r" * length, images=PICTURE if flag else ())
        elif kind == "says":
            self.said.append(f"Correction {len(self.said)}: {'do it so ' * (length // 9)}")
            bench.says(self.said[-1])
        elif number == 0:
            bench.plan((f"item of {length}", False), ("done", True))
        elif number == 1:
            bench.notes("remember " * (length // 9))
        else:
            bench.nudge("Go on.")

    def views(self, window: int, answer: int) -> View | None:
        """The view for *window* as it must be; None when it says that none can be made."""
        bench, budget = self.bench, budget_for(window)
        try:
            view = bench.view(budget, bench.scripted(ANSWERS[answer]), model=str(window))
        except ContextOverflow:
            return None
        assert view.measured <= budget.usable
        assert view.estimate == estimate(view.messages, bench.tools)
        assert view.messages[0] == Message(role="system", text=bench.system)
        assert paired(view.messages)
        assert not any(a.role == b.role == "user" for a, b in pairwise(view.messages))
        text = bench.text(view)
        assert bench.task in text or view.shortened
        assert view.shortened or all(said.strip() in text for said in self.said)
        return view


@given(st.lists(STEPS, max_size=40))
@settings(max_examples=40)
def test_every_view_fits_is_paired_and_has_task_corrections_and_system_prompt(
    new_bench: Callable[[], Bench], steps: list[Step]
) -> None:
    life = Life(new_bench())
    for step in steps:
        if step[0] != "view":
            life.do(step)
        elif (view := life.views(step[1], step[2])) is not None and step[3]:
            life.bench.turn(view, model=str(step[1]))
    assert life.views(4_096, 0) is not None


@given(st.lists(STEPS, max_size=30), st.sampled_from(WINDOWS))
@settings(max_examples=30)
def test_the_same_journal_and_budget_give_the_same_bytes_also_after_a_restart(
    new_bench: Callable[[], Bench], steps: list[Step], window: int
) -> None:
    life = Life(new_bench())
    for step in steps:
        if step[0] != "view":
            life.do(step)
        elif (view := life.views(step[1], step[2])) is not None:
            life.bench.turn(view, model=str(step[1]))
    bench = life.bench
    first = life.views(window, 0)
    assert first is not None
    again = bench.view(window, model=str(window))
    restarted = bench.view(window, model=str(window), context=bench.open())
    assert first.messages == again.messages == restarted.messages


@given(st.lists(STEPS, max_size=30), st.integers(2_300, 200_000), st.integers(2_300, 200_000))
@settings(max_examples=40)
def test_a_larger_budget_never_gives_a_lossier_view(
    new_bench: Callable[[], Bench], steps: list[Step], one: int, other: int
) -> None:
    life = Life(new_bench())
    for step in steps:
        if step[0] != "view":
            life.do(step)
        elif (view := life.views(step[1], step[2])) is not None and step[3]:
            life.bench.turn(view, model=str(step[1]))
    small, large = life.views(min(one, other), 0), life.views(max(one, other), 0)
    assert small is not None and large is not None
    assert large.estimate >= small.estimate
