"""How many tokens something holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.context.measure import (
    Calibration,
    Sample,
    estimate,
    fitting,
    message_tokens,
    text_tokens,
    tools_tokens,
    water_level,
)
from agentx.wires.messages import Image, Message, Tool, ToolCall


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("a" * 400, 100), ("é" * 100, 50), ("日本語" * 100, 360), ("🙂" * 100, 150)],
)
def test_each_script_has_its_own_price(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_arguments_schemas_images_and_messages_count() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall("c1", "read", '{"path": "' + "a" * 390 + '"}'),))
    assert message_tokens(call) > 100
    picture = Message(role="user", images=(Image("image/png", "A" * 4_000_000),))
    assert message_tokens(picture) == 1_204
    tools = [Tool(f"tool_{n}", "does this and that", {"type": "object", "x": "y" * 3_000}) for n in range(40)]
    assert tools_tokens(tools) > 30_000
    assert estimate([call, picture], tools) == message_tokens(call) + 1_204 + tools_tokens(tools)


@given(st.text(), st.integers(0, 100))
def test_what_fits_does_fit(text: str, tokens: int) -> None:
    assert text_tokens(text[: fitting(text, tokens)]) <= tokens


def test_before_any_report_decisions_take_a_quarter_more() -> None:
    assert Calibration().factor == 1.25
    assert Calibration().after(900, 1_000).factor == 0.9


def test_calibration_moves_slowly_and_stays_within_bounds() -> None:
    known = Calibration().after(2_600, 1_000)
    assert known.ratio == 2.6
    assert known.after(1_600, 1_000).ratio == pytest.approx(2.3)  # pyright: ignore[reportUnknownMemberType]  pytest
    assert Calibration().after(1_000_000, 1_000).ratio == 4.0
    assert Calibration().after(1, 1_000).ratio == 0.5
    assert Calibration().after(0, 1_000) == Calibration().after(500, 20) == Calibration()


def test_the_providers_count_wins_and_only_what_came_since_is_estimated() -> None:
    sample = Sample(generation=0, last=5, reply=6, estimate=9_000, fixed=500, input=7_000, output=300)
    assert sample.now(fixed=500, since=0, factor=0.8) == 7_300
    assert sample.now(fixed=600, since=1_000, factor=0.8) == 8_180


@given(st.lists(st.integers(0, 5_000), max_size=30), st.integers(0, 20_000))
def test_a_water_level_fits_the_budget_and_wastes_none_of_it(sizes: list[int], budget: int) -> None:
    cap = water_level(sizes, budget)
    assert sum(min(size, cap) for size in sizes) <= max(budget, 0)
    if sum(sizes) <= budget:
        assert all(size <= cap for size in sizes)
