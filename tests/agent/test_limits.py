"""Limits, the loop guard and endings: pure decisions of the loop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.agent.ending import ending_of, interrupted
from agentx.agent.guard import LoopGuard
from agentx.agent.limits import Limits, Totals, check_limits
from agentx.errors import (
    AgentxError,
    ChainExhausted,
    ContextOverflow,
    LimitReached,
    NoUsableModel,
    StopRequested,
    WindowTooSmall,
)


@pytest.mark.parametrize(
    ("limits", "used", "limit"),
    [
        (Limits(turns=3), Totals(turns=3), "turns"),
        (Limits(hours=0.5), Totals(seconds=1_800), "hours"),
        (Limits(cost=1.0), Totals(cost=1.2), "cost"),
        (Limits(tokens=100), Totals(input=60, output=40), "tokens"),
    ],
)
def test_a_used_up_limit_ends_the_job_and_is_named(limits: Limits, used: Totals, limit: str) -> None:
    with pytest.raises(LimitReached) as caught:
        check_limits(limits, used)
    assert caught.value.limit == limit
    assert f"limits.{limit}" in (caught.value.hint or "")


def test_no_limit_is_no_limit() -> None:
    check_limits(Limits(), Totals(turns=10**9, seconds=1e9, cost=1e9, input=10**12))


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (ChainExhausted("x"), "chain_exhausted", 5),
        (LimitReached("turns", "x"), "limit_reached", 6),
        (ContextOverflow("x"), "context_overflow", 7),
        (WindowTooSmall("x"), "context_overflow", 7),
        (StopRequested("x"), "stopped", 9),
        (NoUsableModel("x"), "no_usable_model", 4),
    ],
)
def test_each_error_has_its_ending_and_exit_code(error: AgentxError, name: str, code: int) -> None:
    ending = ending_of(error)
    assert (ending.name, ending.exit) == (name, code)


def test_signals_give_the_shell_s_exit_codes() -> None:
    assert [interrupted(number).exit for number in (2, 15)] == [130, 143]


def test_the_guard_tells_at_three_and_stops_at_eight() -> None:
    guard = LoopGuard()
    told: list[int] = []
    for number in range(1, 9):
        guard = guard.after("shell", {"command": "make", "timeout": 5}, "error")
        if guard.should_tell:
            told.append(number)
        assert guard.stuck == (number >= 8)
    assert told == [3, 5]


def test_the_order_of_arguments_does_not_hide_a_loop() -> None:
    guard = LoopGuard().after("shell", {"a": 1, "b": 2}, "x").after("shell", {"b": 2, "a": 1}, "x")
    assert guard.repetitions == 2


def test_the_time_that_a_command_took_does_not_hide_a_loop() -> None:
    guard = LoopGuard()
    for seconds in ("0.1", "0.2", "1.3"):
        guard = guard.after("shell", {"command": "make"}, f"[exit code 2, {seconds} s]\nno rule")
    assert guard.repetitions == 3


@pytest.mark.parametrize("length", [2, 7, 13, 30])
def test_a_round_of_many_calls_is_a_loop_too(length: int) -> None:
    guard, calls = LoopGuard(), 0
    while not guard.stuck:
        guard = guard.after("read_file", {"path": f"{calls % length}.txt"}, "the same")
        calls += 1
    assert calls <= length + 40
    assert "same result" in guard.why


def test_reading_everything_again_once_is_no_loop() -> None:
    guard = LoopGuard()
    for number in range(60):
        guard = guard.after("read_file", {"path": f"{number % 30}.txt"}, "the same")
    assert not guard.stuck


def test_polling_is_no_loop() -> None:
    guard = LoopGuard()
    for _ in range(20):
        guard = guard.after("shell_output", {"id": "b1"}, "still running")
    assert not guard.stuck


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60))
def test_a_guard_never_stops_calls_whose_results_differ(names: list[str]) -> None:
    guard = LoopGuard()
    for number, name in enumerate(names):
        guard = guard.after(name, {}, f"result {number}")
        assert not guard.stuck
