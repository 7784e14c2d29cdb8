"""Silent truncation, with the numbers that real servers gave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.context.tokenizer import count_tokens
from agentx.context.truncation import (
    KEPT_WHEN_HALVED,
    SMALLEST_STEP,
    Earlier,
    dropped,
    in_doubt,
    learned_window,
    padding,
    probed_window,
    suspicion,
    verdict,
)

NOTE, ANSWER = 447, 8
CONVERSATION = [24, *[NOTE, ANSWER] * 12, 30]
"""The sizes of the 27 messages without the system prompt, about 5,454 tokens with it."""


@pytest.mark.parametrize(
    ("reported", "counted", "cut"),
    [
        (1_852, 5_454, True),
        (4_089, 5_454, True),
        (5_454, 5_454, False),
        (5_290, 5_454, False),  # 97 %
        (5_618, 5_454, False),  # 103 %
    ],
)
def test_the_measured_conversations_are_told_apart_on_their_first_request(
    reported: int, counted: int, cut: bool
) -> None:
    why = suspicion(reported, 6_175)
    assert (why is not None and verdict(why, reported=reported, estimate=6_175, counted=counted)) == cut


@pytest.mark.parametrize("ratio", [0.88, 0.93, 1.0, 1.48])
def test_the_plain_ratio_of_an_untruncated_request_is_not_suspicious(ratio: float) -> None:
    assert suspicion(int(6_175 * ratio), 6_175) is None


@pytest.mark.parametrize("growth", [-36, 16, 14, 21])
def test_a_count_that_stands_still_is_a_verdict_by_itself(growth: int) -> None:
    why = suspicion(3_725 + growth, 6_204, Earlier(3_725, 5_600))
    assert why == "growth"
    assert verdict(why, reported=3_725 + growth, estimate=6_204, counted=None)


def test_a_count_that_grows_with_the_conversation_is_not() -> None:
    assert suspicion(4_385, 6_204, Earlier(3_725, 5_600)) is None


def test_growth_that_is_too_small_to_tell_says_nothing() -> None:
    assert suspicion(3_725, 5_790, Earlier(3_725, 5_600)) is None
    assert suspicion(3_725, 5_650, Earlier(3_725, 5_600), noticed=50) == "growth"


def test_the_first_truncated_turn_of_a_grown_conversation_is_told_by_a_counter() -> None:
    """1,000 tokens came and 289 of them were read: more than a tenth, and still too little."""
    assert suspicion(4_089, 4_800, Earlier(3_800, 3_800)) == "slow_growth"
    assert verdict("slow_growth", reported=289, estimate=1_000, counted=930)
    assert not verdict("slow_growth", reported=289, estimate=1_000, counted=300)  # a thousand blanks
    assert not verdict("slow_growth", reported=289, estimate=1_000, counted=None)


@pytest.mark.parametrize(("reported", "why"), [(4_096, "size"), (2_050, "size"), (3_000, None)])
def test_exactly_a_window_or_half_of_one_is_suspicious(reported: int, why: str | None) -> None:
    assert suspicion(reported, 4_200, Earlier(reported - 50, 4_150)) == why


def test_without_any_counter_only_the_certain_is_certain() -> None:
    """63 tokens reported for 3,975 to 17,701 estimated."""
    assert verdict("ratio", reported=63, estimate=3_975, counted=None)
    assert verdict("ratio", reported=4_096, estimate=6_175, counted=None)
    assert not verdict("ratio", reported=4_089, estimate=6_175, counted=None)


def test_what_the_server_says_of_itself_is_believed() -> None:
    assert suspicion(5_454, 5_454, said=True) == "said"


@pytest.mark.parametrize(
    ("reported", "believed", "sizes", "window"),
    [
        (1_852, 131_072, CONVERSATION, 2_256),  # really 2,048; with less than 2,256 nothing can be done
        (4_089, 131_072, CONVERSATION, 4_096),
        (2_050, 131_072, [6_000], 4_096),  # one long message, halved
        (2_050, 131_072, CONVERSATION, 4_096),
        (4_096, 131_072, [9_000], 4_096),
        (1_990, 131_072, CONVERSATION, 2_304),  # a window of 2,304 that whole messages were dropped for
        (4_089, 4_096, CONVERSATION, 4_089),  # nothing usual is left below what was believed
        (5_000, 131_072, [200, 100], 5_120),
        (9_000, 131_072, [100, 50], 9_000),
    ],
)
def test_the_learned_window_explains_what_was_seen(
    reported: int, believed: int, sizes: list[int], window: int
) -> None:
    assert learned_window(reported, believed, sizes) == window


@given(st.integers(1, 300_000), st.integers(2, 300_000), st.lists(st.integers(1, 9_000), max_size=40))
def test_learning_only_ever_lowers(reported: int, believed: int, sizes: list[int]) -> None:
    assert 1 <= learned_window(reported, believed, sizes) < believed


def test_system_prompt_and_tools_are_no_messages_that_were_dropped() -> None:
    """A small task was dropped first, then the long result behind it: 900 of the 3,958 tokens are fixed."""
    assert learned_window(3_958, 131_072, [70, 20, 300, *[20, 300] * 9], fixed=900) == 4_096


def test_the_dropped_message_is_the_one_at_the_place_where_the_server_stopped() -> None:
    assert dropped(1_852, CONVERSATION) == NOTE
    assert dropped(100, [5_000, 60, 30]) == 5_000
    assert dropped(100, []) == 0


def test_a_real_tokenizer_counts_offline_and_is_not_fooled_by_blanks() -> None:
    assert count_tokens("hello world") == 2
    blanks = count_tokens(" " * 8_000)
    assert blanks is not None
    assert blanks < 400
    assert count_tokens("日本 <|endoftext|>") is not None


def test_without_its_vocabulary_there_is_no_count(tmp_path: object) -> None:
    from pathlib import Path

    assert count_tokens("hello", folder=Path(str(tmp_path)), seconds=20) is None


def test_a_count_that_falls_while_the_conversation_grows_is_a_verdict_however_little_it_grew() -> None:
    assert suspicion(1_812, 2_092, Earlier(2_180, 1_926)) == "growth"
    assert suspicion(2_170, 2_092, Earlier(2_180, 1_926)) is None


@pytest.mark.parametrize(
    ("reported", "expected", "grown", "final", "beyond"),
    [
        (2_298, 2_371, 203, False, 2_371),  # the task alone was dropped: 73 tokens of 203 that came
        (1_812, 2_346, None, False, 2_346),
        (2_298, 2_303, 200, False, None),  # no message is so short
        (2_310, 2_900, None, False, 2_900),  # far less than was expected
        (2_850, 2_900, 1_000, False, None),  # an estimate may be so wrong
        (2_850, 2_900, 1_000, True, 2_900),  # but it is the last chance
        (4_096, 4_150, 4_000, False, 4_150),
        (4_985, 5_057, 355, False, 5_057),  # a window that nobody would guess
        (900, 990, 100, True, None),  # no window is so small
    ],
)
def test_where_something_small_may_be_missing_a_longer_request_must_tell(
    reported: int, expected: int, grown: int | None, final: bool, beyond: int | None
) -> None:
    assert in_doubt(reported, expected, grown=grown, final=final) == beyond


@given(st.integers(2_600, 200_000), st.integers(0, 300), st.sampled_from(["cut", "drop", "halve"]), st.booleans())
def test_a_probe_shows_the_window_and_never_less_than_was_read(
    window: int, free: int, manner: str, whole: bool
) -> None:
    read, more = window - free, 400 + window // 4
    if whole:
        assert probed_window(read, more, read + more) is None
        return
    probe = {"cut": window, "drop": window - free % 40, "halve": window - (window - 4) // 2}[manner]
    found = probed_window(read, more, probe)
    assert found is not None
    assert read <= found <= window + SMALLEST_STEP
    assert found >= window - max(free, 2 * KEPT_WHEN_HALVED)


def test_a_large_message_that_a_probe_pushed_out_is_not_a_halved_window() -> None:
    assert probed_window(9_990, 2_500, 9_700) == 9_990
    assert probed_window(2_200, 800, 1_154) == 2_304
    assert probed_window(3_800, 900, 3_650, message=400) == 4_096
    assert probed_window(1_902, 700, 1_282) == 2_436  # no window is too small to work with where half explains it


@given(st.integers(400, 50_000))
def test_the_padding_of_a_probe_has_its_size_and_keeps_the_roles_in_turn(tokens: int) -> None:
    messages = padding(tokens)
    assert [message.role for message in messages] == ["assistant", "user"] * (len(messages) // 2)
    assert 0.9 * tokens <= sum(1 + message.text.count(" ") + 4 for message in messages) <= tokens


def test_half_of_an_unusual_window_is_not_taken_for_a_window_that_is_too_small_to_work_with() -> None:
    assert learned_window(1_154, 131_072, [60, 900]) == 2_304
