"""Back to the preferred link: when, how it is tried, and not at each turn."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentx.chain.returns import HOLD_SECONDS, Flap
from agentx.chain.walk import Answer, Chain
from agentx.config.links import Link
from agentx.events import LinkFailed, LinkSwitched
from agentx.wires.messages import Request

if TYPE_CHECKING:
    from conftest import Failures, Said, World


def ask(world: World, chain: Chain, tokens: int = 100) -> Answer:
    async def prepare(link: Link, reason: str) -> Request:
        return replace(await world.prepare(link, reason), estimate=tokens)

    return asyncio.run(chain.ask(prepare))


def purposes(world: World, name: str) -> list[str]:
    return [asked.request.purpose for asked in world.asked if asked.link == name]


def test_a_large_turn_is_not_sent_to_a_link_whose_rest_is_over_before_something_small_was_answered(
    world: World, fail: Failures
) -> None:
    world.say("a", fail.status(429, retry_after="60"), "ready", "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    assert ask(world, chain, 20_000).link.name == "b/m"
    world.clock.advance(61)
    assert ask(world, chain, 20_000).reply.message.text == "a is back"
    assert purposes(world, "a") == ["turn", "probe", "turn"]
    probe = world.asked[2].request
    assert (probe.estimate < 50, probe.max_tokens, world.asked[2].timers.total) == (True, 16, 10)
    assert [event.reason for event in world.of(LinkSwitched)] == ["a/m: rate_limit", "its rest is over"]


def test_a_probe_that_fails_doubles_the_rest_and_the_turn_stays_where_it_is(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    rests: list[float] = []
    for _ in range(6):
        assert ask(world, chain, 20_000).link.name == "b/m"
        rest = world.health.resting(chain.links[0])
        assert rest is not None
        rests.append(round(rest.until - rest.since))
        world.clock.advance(rests[-1] + 1)
    assert rests == [5, 10, 20, 40, 80, 160]
    assert purposes(world, "a") == ["turn"] + ["probe"] * 5
    assert len(world.of(LinkFailed)) == 6
    assert [event.to for event in world.of(LinkSwitched)] == ["b/m"]


def test_a_small_turn_is_its_own_probe(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429), "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    world.clock.advance(6)
    assert ask(world, chain).link.name == "a/m"
    assert purposes(world, "a") == ["turn", "turn"]


def test_a_link_that_was_silent_is_asked_something_small_first(world: World, fail: Failures) -> None:
    """Whoever hangs again costs seconds, not the whole time that a turn may take to begin."""
    world.say("a", fail.broken("timeout"), fail.broken("timeout"), "ready", "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    answered: list[str] = []
    for _ in range(3):
        answered.append(ask(world, chain).link.name)
        world.clock.advance(3600)
    assert answered == ["b/m", "b/m", "a/m"]
    assert purposes(world, "a") == ["turn", "probe", "probe", "turn"]
    assert [asked.timers.total for asked in world.asked if asked.request.purpose == "probe"] == [10, 10]


def test_ones_own_server_is_asked_for_the_turn(world: World, fail: Failures) -> None:
    """A probe would push the conversation out of its memory, and costs nothing to save."""
    provider = replace(world.chain("a").links[0].provider, self_hosted=True)
    world.links["a"] = replace(world.links["a"], provider=provider)
    world.say("a", fail.status(429), "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain, 20_000)
    world.clock.advance(6)
    assert ask(world, chain, 20_000).link.name == "a/m"
    assert purposes(world, "a") == ["turn", "turn"]


def test_where_nobody_else_could_answer_there_is_no_probe(world: World, fail: Failures) -> None:
    world.say("a", "hi", fail.status(429), "a is back")
    chain = world.chain("a")
    ask(world, chain, 20_000)
    assert ask(world, chain, 20_000).reply.message.text == "a is back"
    assert purposes(world, "a") == ["turn"] * 3


@pytest.mark.parametrize("said", ["", "400", "empty"])
def test_a_probe_that_is_answered_at_all_is_enough(world: World, fail: Failures, said: str) -> None:
    """A refusal of so small an output or an answer without a word comes from a server that works."""
    answers: dict[str, Said] = {"": "x", "400": fail.status(400, "min 20"), "empty": fail.broken("empty_reply")}
    world.say("a", fail.status(429), answers[said], "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain, 20_000)
    world.clock.advance(6)
    assert ask(world, chain, 20_000).reply.message.text == "a is back"


@pytest.mark.parametrize("seconds", [6, 20, 60])
@pytest.mark.parametrize("tokens", [100, 20_000])
@pytest.mark.parametrize("place", [1, 2])
def test_a_link_that_comes_and_goes_is_not_returned_to_at_each_turn(
    world: World, fail: Failures, seconds: float, tokens: int, place: int
) -> None:
    """Sixty turns with a preferred link that answers every second request."""
    hits: list[int] = []

    def flapping(request: Request) -> Said:
        hits.append(1)
        return "hi" if len(hits) % 2 else fail.status(429)

    world.decide("flaps", flapping)
    world.say("gone", fail.status(402))
    world.say("b", "hi")
    chain = world.chain(*["gone", "flaps"][2 - place :], "b")
    for _ in range(60):
        ask(world, chain, tokens)
        world.clock.advance(seconds)
    assert 1 <= len(world.of(LinkSwitched)) - (place - 1) <= 6


def test_a_link_that_came_back_and_lasts_is_preferred_as_before(world: World, fail: Failures) -> None:
    script: list[Said] = [fail.status(429), *["hi"] * 12, fail.status(429), "hi"]
    world.say("a", *script)
    world.say("b", "hi")
    chain = world.chain("a", "b")
    served: list[str] = []
    for _ in range(15):
        served.append(ask(world, chain).link.name)
        world.clock.advance(6)
    assert served == ["b/m", *["a/m"] * 12, "b/m", "a/m"]


def test_a_link_that_is_held_off_is_asked_when_nobody_else_is_left(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429), "hi", fail.status(429), "hi again")
    world.say("b", "hi", "hi", fail.status(402))
    chain = world.chain("a", "b")
    served: list[str] = []
    for _ in range(4):
        served.append(ask(world, chain).link.name)
        world.clock.advance(6)
    assert served == ["b/m", "a/m", "b/m", "a/m"]


def test_the_time_that_a_link_is_held_off_doubles_and_ends() -> None:
    flap, now = Flap(), 1_000.0
    for level in range(1, 5):
        flap = replace(replace(flap, served=0).failed(now), turns_left=0)
        end = now + HOLD_SECONDS * 2.0 ** (level - 1)
        assert (flap.held(end - 1), flap.held(end)) == (True, False)
    assert replace(flap, turns_left=60).held(now + 7_199)
    assert not replace(flap, turns_left=60).held(now + 7_200)
    assert not flap.held(now - 1), "a clock that was set back"
