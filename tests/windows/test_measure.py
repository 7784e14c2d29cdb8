"""What to send next and what the answers prove, against servers that are a line of arithmetic."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.windows.measure import Sample, estimate_for, next_size
from agentx.windows.overflow import Overflow
from agentx.windows.planted import note_words, planted
from agentx.windows.verdict import Verdict, verdict

Manner = Literal["refuse", "refuse_silently", "cut", "halve", "newest", "middle"]


@dataclass(frozen=True)
class Server:
    """`ratio` is its tokens for one of ours, `frame` what its template adds to each prompt."""

    window: int
    manner: Manner
    ratio: float = 1.0
    frame: int = 0
    recalls: bool = True

    def answer(self, estimate: int) -> Sample:
        tokens = round(estimate * self.ratio) + self.frame
        if tokens < self.window:
            return Sample(estimate=estimate, read=tokens, first=self.recalls, last=self.recalls, granule=60)
        if self.manner.startswith("refuse"):
            limit = self.window if self.manner == "refuse" else None
            return Sample(estimate=estimate, refusal=Overflow(cause="input", limit=limit))
        read = self.window if self.manner != "halve" else self.window - (self.window - 4) // 2
        first, last = self.manner in ("newest", "middle"), self.manner != "newest"
        return Sample(
            estimate=estimate, read=read, first=first and self.recalls, last=last and self.recalls, granule=60
        )


def measured(server: Server, believed: int, budget: int = 40_000) -> tuple[Verdict, list[Sample], int]:
    """The verdict, what was sent, and the tokens that the server was really sent."""
    samples: list[Sample] = []
    sent = 0
    while (size := next_size(samples, believed, budget)) is not None:
        estimate = estimate_for(size, samples)
        samples.append(server.answer(estimate))
        sent += round(estimate * server.ratio) + server.frame
        assert len(samples) < 20
    return verdict(samples, believed), samples, sent


PARTS = {"cut": "oldest", "halve": "oldest", "newest": "newest", "middle": "middle"}


@pytest.mark.parametrize("manner", PARTS)
@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.4])
def test_what_is_lost_is_told_by_the_planted_words(manner: Manner, ratio: float) -> None:
    found, *_ = measured(Server(4_096, manner, ratio), 131_072)
    assert (found.holds, found.lost) == (4_096, PARTS[manner])
    assert found.behaviour == ("halves" if manner == "halve" else "cuts")


def test_a_model_that_recalls_nothing_proves_the_window_and_not_the_part() -> None:
    found, *_ = measured(Server(4_096, "cut", recalls=False), 32_768)
    assert (found.behaviour, found.holds, found.lost) == ("cuts", 4_096, None)


def test_missing_words_alone_are_no_verdict() -> None:
    """Small models fail to repeat what they have read: the counts say that everything was."""
    found, *_ = measured(Server(1_000_000, "cut", recalls=False), 131_072)
    assert (found.behaviour, found.holds) == ("reads", None)
    assert found.said()[0].startswith(f"it holds at least {found.at_least:,} tokens")


def test_a_refusal_without_a_number_is_narrowed_down_and_never_learned() -> None:
    found, *_ = measured(Server(5_000, "refuse_silently"), 131_072)
    assert (found.behaviour, found.holds) == ("refuses", None)
    assert found.below is not None and found.at_least < 5_000 <= found.below <= found.at_least * 1.2
    assert f"between {found.at_least:,} and {found.below:,} tokens" in found.said()[0]


def test_a_refusal_below_what_was_read_is_undecided() -> None:
    samples = [
        Sample(estimate=3_000, read=3_000),
        Sample(estimate=6_000, refusal=Overflow(cause="input", limit=2_048)),
    ]
    assert verdict(samples, 8_192).behaviour == "undecided"


def test_a_refusal_of_bytes_teaches_nothing() -> None:
    samples = [Sample(estimate=300, read=300), Sample(estimate=6_000, refusal=Overflow(cause="bytes"))]
    found = verdict(samples, 8_192)
    assert (found.behaviour, found.holds) == ("undecided", None)
    assert next_size(samples, 8_192, 40_000) is None


def test_a_reply_beyond_a_refused_window_is_a_shift() -> None:
    samples = [
        Sample(estimate=4_050, read=4_050, output=64),
        Sample(estimate=5_000, refusal=Overflow(cause="input", limit=4_096)),
    ]
    found = verdict(samples, 4_096)
    assert found.shifts and "it shifts" in found.said()[1]


def test_nothing_answered_is_undecided() -> None:
    assert verdict([], 4_096).behaviour == "undecided"


@given(
    window=st.integers(1_200, 400_000),
    manner=st.sampled_from(("refuse", "cut", "newest", "middle")),
    ratio=st.floats(0.6, 1.6),
    frame=st.integers(0, 40),
    believed=st.integers(2_048, 400_000),
    budget=st.integers(1_500, 200_000),
)
def test_no_verdict_is_ever_wrong_and_the_budget_holds(
    window: int, manner: Manner, ratio: float, frame: int, believed: int, budget: int
) -> None:
    """Whatever the server counts like, "it holds N" is N, or N and one message that was dropped."""
    found, samples, sent = measured(Server(window, manner, ratio, frame), believed, budget)
    assert samples and sent <= budget
    assert found.at_least <= window
    if found.holds is not None:
        assert window <= found.holds <= window + 60


@given(st.integers(300, 60_000), st.integers(1_500, 200_000), st.integers(0, 1 << 30))
def test_a_conversation_has_both_words_in_their_places_and_its_size(size: int, budget: int, seed: int) -> None:
    made = planted(size, note_words(budget), random.Random(seed))
    texts = [message.text for message in made.messages]
    assert made.first in texts[0] and made.last in texts[-3] and "?" in texts[-1]
    assert [message.role for message in made.messages[::2]] == ["user"] * len(texts[::2])
    assert size - 25 <= made.estimate <= size, "a budget that was shown before is kept"
    assert made.granule <= 500
