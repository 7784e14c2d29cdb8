from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentx.testing.conversations import PERSONAL_KEY, SYSTEM_KEY, conversation27
from agentx.testing.counting import count_prompt
from agentx.testing.keeping import keep


def message(role: str, words: int) -> dict[str, Any]:
    return {"role": role, "content": "word " * words}


ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGES = st.lists(st.builds(message, ROLES, st.integers(0, 300)), min_size=1, max_size=20)


@given(MESSAGES, st.integers(100, 3_000))
def test_dropping_keeps_system_messages_and_the_last_one_in_order(
    messages: list[dict[str, Any]], window: int
) -> None:
    kept = keep(messages, [], window, "drop_oldest")
    assert kept is not None
    assert kept.tokens <= window
    must = [m for m in messages[:-1] if m["role"] == "system"] + messages[-1:]
    if count_prompt(must) <= window:
        left = list(kept.messages)
        assert [m for m in left if any(m is other for other in must)] == must
        assert kept.dropped == len(messages) - len(left)
        assert kept.tokens == count_prompt(left)


@given(MESSAGES, st.integers(100, 3_000))
def test_what_fits_is_kept_whole_by_everybody(messages: list[dict[str, Any]], window: int) -> None:
    size = count_prompt(messages)
    for overflow in ("refuse", "refuse_total", "drop_oldest", "halve", "cut"):
        kept = keep(messages, [], size + 1, overflow)
        assert kept is not None
        assert (kept.messages, kept.tokens, kept.dropped) == (tuple(messages), size, 0)


def test_a_refusing_server_keeps_nothing_even_at_exactly_the_window() -> None:
    messages = conversation27()
    assert keep(messages, [], count_prompt(messages), "refuse") is None
    assert keep(messages, [], 4_096, "refuse") is None


def test_the_oldest_go_and_with_them_the_personal_key() -> None:
    """As on a real Ollama: 1,852 tokens and 11 messages of 27 were left of 2,048."""
    kept = keep(conversation27(), [], 2_048, "drop_oldest")
    assert kept is not None
    assert len(kept.messages) == 11
    assert abs(kept.tokens - 1_852) < 50
    text = str(kept.messages)
    assert SYSTEM_KEY in text
    assert PERSONAL_KEY not in text


def test_one_long_message_is_halved() -> None:
    """Ollama keeps 4 tokens and about half of the rest: 2,050 of 4,096."""
    long = [{"role": "user", "content": "apple river stone " * 3_000}]
    for overflow in ("halve", "drop_oldest"):
        kept = keep(long, [], 4_096, overflow)
        assert kept is not None
        assert kept.tokens == 2_050
        assert count_prompt(kept.messages) == 2_050
    cut = keep(long, [], 4_096, "cut")
    assert cut is not None
    assert cut.tokens == 4_096
