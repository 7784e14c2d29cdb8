"""The breaker, as a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentx.context.breaker import INEFFECTIVE, Breaker, cause_of


def opened(cause: str = INEFFECTIVE, now: float = 0, tokens: int = 1_000) -> Breaker:
    breaker = Breaker()
    for _ in range(3):
        breaker = breaker.failed(cause, now, tokens)
    return breaker


@given(st.lists(st.booleans()))
def test_it_is_open_exactly_after_three_failures_in_a_row(outcomes: list[bool]) -> None:
    breaker, streak = Breaker(), 0
    for helped in outcomes:
        breaker = breaker.succeeded(INEFFECTIVE) if helped else breaker.failed(INEFFECTIVE, 0, 1_000)
        streak = 0 if helped else streak + 1
        assert (breaker.state(INEFFECTIVE, 0, 1_000) == "open") == (streak >= 3)


def test_it_lets_one_attempt_through_when_the_transcript_grew_by_a_quarter() -> None:
    breaker = opened()
    assert breaker.state(INEFFECTIVE, 1, 1_249) == "open"
    assert breaker.state(INEFFECTIVE, 1, 1_250) == "half_open"
    assert breaker.failed(INEFFECTIVE, 1, 1_250).state(INEFFECTIVE, 2, 1_300) == "open"


def test_it_lets_one_attempt_through_when_the_cause_cooled_down() -> None:
    breaker = opened("network")
    assert breaker.state("network", 599, 1_000) == "open"
    assert breaker.state("network", 600, 1_000) == "half_open"
    assert breaker.until("network") == 600


def test_causes_are_apart() -> None:
    breaker = opened("auth")
    assert breaker.open_cause(0, 1_000, summary=True) == "auth"
    assert breaker.open_cause(0, 1_000, summary=False) is None
    assert opened().open_cause(0, 1_000, summary=False) == INEFFECTIVE
    assert opened().open_cause(0, 1_000, summary=True) is None


def test_the_failures_of_one_tier_are_not_those_of_another() -> None:
    breaker = opened(cause_of("auth", "cheap"))
    assert breaker.open_cause(0, 1_000, summary=True) is None
    assert breaker.open_cause(0, 1_000, summary=True, tier="cheap") == "cheap: auth"
    assert opened("auth").open_cause(0, 1_000, summary=True, tier="cheap") is None
    assert breaker.failed("auth", 0, 1_000).succeeded(*breaker.summary_causes("cheap")).causes.keys() == {"auth"}


def test_a_refused_key_is_left_alone_for_longer() -> None:
    assert opened("auth").until("auth") == 1_800
    assert opened("auth").state("auth", 1_799, 1_000) == "open"
    assert opened("server").until("server") == 600


def test_it_goes_to_disk_and_back() -> None:
    breaker = opened("auth", now=5).failed(INEFFECTIVE, 6, 10)
    assert Breaker().with_json(breaker.to_json()) == breaker
