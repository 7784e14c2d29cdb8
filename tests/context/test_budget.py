"""Budgets: DESIGN.md section 4, and the three bugs of the field that all ended at 16K (seeds.md section 1)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentx.context.budget import budget_for, output_budget, reserve, threshold
from agentx.errors import WindowTooSmall

TABLE = [
    (4_096, None, 2_048),
    (8_192, None, 4_096),
    (32_000, None, 16_000),
    (128_000, None, 64_000),
    (200_000, None, 100_000),
    (272_000, 256_000, 128_000),
    (400_000, None, 128_000),
    (1_000_000, 500_000, 128_000),
    (2_000_000, None, 128_000),
    (3_000, None, 2_000),
]

windows = st.integers(2_256, 10_000_000)
outputs = st.none() | st.integers(1, 2_000_000)


def old_threshold(window: int, max_tokens: int | None = None) -> int:
    """The formula of the field before it was mended: half of the window, or what a bare subtraction leaves."""
    return min(window // 2, window - (max_tokens or 8_192))


@pytest.mark.parametrize(("window", "max_tokens", "expected"), TABLE)
def test_the_threshold_is_that_of_the_table(window: int, max_tokens: int | None, expected: int) -> None:
    assert threshold(window, max_tokens) == expected


def test_a_generous_output_budget_does_not_eat_the_input() -> None:
    assert old_threshold(272_000, 256_000) == 16_000
    assert threshold(272_000, 256_000) == 128_000


def test_an_output_budget_against_the_capped_window_is_never_negative() -> None:
    assert old_threshold(256_000, 500_000) < 0
    assert threshold(1_000_000, 500_000) == 128_000


def test_a_default_reserve_is_capped_for_small_windows() -> None:
    assert old_threshold(8_192) == 0
    assert threshold(8_192) == 4_096


def test_a_fallback_is_sized_by_its_own_window_and_no_other() -> None:
    """Borrowing a static 32K gave `min(16K, 32K - 8K)` for every model."""
    borrowed = old_threshold(32_000)
    assert borrowed == 16_000
    assert [budget_for(window).threshold for window in (32_000, 131_072, 200_000)] == [16_000, 65_536, 100_000]


def test_the_floor_takes_from_the_reserve_and_not_the_other_way_round() -> None:
    assert (threshold(3_000), reserve(3_000)) == (2_000, 1_000)


@pytest.mark.parametrize("window", [0, 256, 2_000, 2_255])
def test_a_window_that_cannot_hold_the_floor_and_a_reply_is_refused(window: int) -> None:
    with pytest.raises(WindowTooSmall):
        budget_for(window)


@given(windows, outputs)
@example(2_256, None)
@example(10_000_000, 2_000_000)
def test_no_budget_starves_another(window: int, max_tokens: int | None) -> None:
    budget = budget_for(window, max_tokens)
    assert budget.threshold >= 2_000
    assert 1 <= budget.reserve <= window // 2
    assert budget.threshold + budget.reserve <= window
    assert budget.threshold <= budget.usable


@given(windows, st.integers(0, 10_000_000), outputs, st.none() | st.integers(1, 400_000))
def test_what_is_sent_never_asks_for_less_than_one_token_nor_more_than_the_cap(
    window: int, measured: int, asked: int | None, cap: int | None
) -> None:
    sent = output_budget(window, measured, asked=asked, cap=cap)
    assert sent >= 1
    assert sent == 1 or measured + sent <= window
    assert cap is None or sent <= cap
