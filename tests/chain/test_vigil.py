"""How a chain waits: until when, what wakes it, and what it does while the network is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentx.chain.pause import wake
from agentx.chain.vigil import News
from agentx.chain.walk import Answer, Chain
from agentx.errors import ChainExhausted, LimitReached, NoUsableModel, RequestFailed, StopRequested
from agentx.events import LinkFailed, Waiting, Woken
from agentx.wires.messages import Request, Timers

if TYPE_CHECKING:
    from conftest import Failures, Said, World


def ask(world: World, chain: Chain) -> Answer:
    return asyncio.run(chain.ask(world.prepare))


# Until when -------------------------------------------------------------------------------------------------


def test_who_is_killed_in_the_wait_wakes_at_the_very_time_that_was_told(world: World, fail: Failures) -> None:
    """The little that many jobs wake apart is decided once."""
    world.say("a", fail.status(429, retry_after="3600"), "a")
    world.chance = 0.9

    async def killed(seconds: float) -> None:
        raise StopRequested("killed")

    with pytest.raises(StopRequested):
        ask(world, world.chain("a", sleep=killed))
    (told,) = world.of(Waiting)
    world.clock.advance(1_000)
    world.chance = 0.1
    planned = world.clock.start + 3_600.01 + 27
    ask(world, world.chain("a", planned_wake=planned))
    assert [event.until for event in world.of(Waiting)] == [told.until] * 2
    assert world.clock.now() == pytest.approx(planned + 0.01, abs=0.002)


@pytest.mark.parametrize(("planned", "kept"), [(99.0, False), (100.0, True), (130.0, True), (131.0, False)])
def test_only_what_was_planned_for_the_same_end_is_kept(planned: float, kept: bool) -> None:
    assert wake(100.0, 0.0, 0.5, planned) == (planned if kept else 105.0)


def test_the_little_after_a_rest_is_not_cut_short_by_a_look(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="600"), "a")
    world.chance = 1.0
    start = world.clock.now()
    ask(world, world.chain("a"))
    assert world.clock.now() - start == pytest.approx(630, abs=0.1)
    assert world.of(Woken) == []


# What wakes it ----------------------------------------------------------------------------------------------


def test_a_change_that_brings_a_link_ends_the_wait_and_is_told(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"))
    world.say("b", "hi")
    world.chain("b")
    news = [None, News("agentx.yaml was changed", [world.links["b"]]), None]
    world.look = lambda: news.pop(0)
    assert ask(world, world.chain("a")).link.name == "b/m"
    assert [event.reason for event in world.of(Woken)] == ["agentx.yaml was changed"]
    assert world.clock.slept == [1, 2]


def test_a_change_that_brings_nothing_leaves_the_wait_as_it_was(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="600"), "a")
    chain = world.chain("a")
    news = [News("agentx.yaml was changed", chain.links)] + [None] * 30
    world.look = lambda: news.pop(0)
    ask(world, chain)
    one, two = world.of(Waiting)
    assert (one.until, world.of(Woken)) == (two.until, [])


def test_a_change_lets_a_link_that_is_out_be_asked_once_more(world: World, fail: Failures) -> None:
    """Its key may be the right one now."""
    world.say("a", fail.status(429, retry_after="3600"))
    world.say("b", fail.status(401), "hi")
    chain = world.chain("a", "b")
    news = [News("agentx.yaml was changed", chain.links)] + [None] * 30
    world.look = lambda: news.pop(0)
    assert ask(world, chain).link.name == "b/m"


def test_a_link_that_another_job_found_well_is_named(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"), "a")

    async def sleep(seconds: float) -> None:
        await world.clock.sleep(seconds)
        world.health.forget(world.links["a"])

    ask(world, world.chain("a", sleep=sleep))
    assert [event.reason for event in world.of(Woken)] == ["a/m does not rest any more"]
    assert world.clock.slept == [1]


# The network ------------------------------------------------------------------------------------------------


def test_while_the_network_is_gone_no_request_is_sent(world: World, fail: Failures) -> None:
    """Ten minutes: connections are tried every 5 s at first and every minute at last, and nobody is charged."""
    world.say("a", "hi")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    start, before, back = world.clock.now(), len(world.asked), world.clock.now() + 600
    for name in "ab":
        world.decide(name, lambda _: "back" if world.clock.now() >= back else fail.unreachable())
    world.network = lambda name: world.clock.now() >= back
    assert ask(world, chain).link.name == "a/m"
    after = [asked.time for asked in world.asked[before:]]
    assert [asked for asked in after if start + 1 < asked < back] == [], "after the first walk"
    assert (len(after), len(world.knocks)) == (4, 2 * 13)
    assert world.clock.now() - back <= 61
    assert [chain.health.failures(link) for link in chain.links] == [0, 0]
    assert [event.reason for event in world.of(Woken)] == ["a/m can be connected to"]


def test_nobody_is_charged_while_the_network_is_gone_either(world: World, fail: Failures) -> None:
    """Who is killed then leaves nothing behind for other jobs."""
    world.say("a", "hi", fail.unreachable())
    chain = world.chain("a")
    ask(world, chain)
    world.health.rest(chain.links[0], world.clock.now() - 1, "server", "an old failure")
    known = world.health.last(chain.links[0])

    def network(name: str) -> bool:
        assert world.health.last(chain.links[0]) == known
        raise StopRequested("killed")

    world.network = network
    with pytest.raises(StopRequested):
        ask(world, chain)


def test_one_link_that_can_be_connected_to_is_enough(world: World, fail: Failures) -> None:
    world.say("a", "hi", fail.unreachable())
    world.say("b", fail.unreachable(), fail.unreachable(), "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    world.network = lambda name: name == "b"
    assert ask(world, chain).link.name == "b/m"
    assert [event.reason for event in world.of(Woken)] == ["b/m can be connected to"]


@pytest.mark.parametrize("patience", [30, 8 * 3600])
def test_a_chain_that_never_answered_waits_as_long_as_it_was_told(
    world: World, fail: Failures, patience: float
) -> None:
    world.say("a", fail.unreachable(), fail.unreachable(), "hi")
    start = world.clock.now()
    world.network = lambda name: world.clock.now() - start > 5_000
    chain = world.chain("a", patience_seconds=patience)
    if patience > 30:
        assert ask(world, chain).link.name == "a/m"
    else:
        with pytest.raises(NoUsableModel, match="nothing answers"):
            ask(world, chain)
        assert world.clock.now() - start < 30


# One budget -------------------------------------------------------------------------------------------------


def test_no_attempt_takes_longer_than_the_job_has_left(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429))
    world.say("b", "hi")
    end = world.clock.now() + 50
    ask(world, world.chain("a", "b", time_left=lambda: end - world.clock.now()))
    assert [round(asked.timers.total) for asked in world.asked] == [50, 50]
    assert world.asked[1].timers == replace(Timers(), total=world.asked[1].timers.total)


def test_a_link_that_failed_this_request_gets_what_is_left_of_the_wait(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="900"), "hi")
    ask(world, world.chain("a", max_wait_seconds=1_000))
    first, second = (asked.timers.total for asked in world.asked)
    assert (first, 0 < second <= 100) == (3_600, True)


def test_a_link_that_has_not_failed_may_think_as_long_as_ever(world: World, fail: Failures) -> None:
    """Who may not wait has not said that a healthy link must hurry."""
    world.say("a", fail.status(429))
    world.say("b", "hi")
    ask(world, world.chain("a", "b", max_wait_seconds=0))
    assert [asked.timers.total for asked in world.asked] == [3_600, 3_600]


def test_when_the_time_is_over_the_link_is_not_to_blame(world: World) -> None:
    end = world.clock.now() + 50

    def time_left() -> float:
        if world.clock.now() >= end:
            raise LimitReached("hours", "limit of hours")
        return end - world.clock.now()

    def slow(request: Request) -> Said:
        world.clock.advance(50)
        return RequestFailed("not finished within 50 s", phase="stream", timed_out=True)

    world.decide("a", slow)
    world.say("b", "hi")
    chain = world.chain("a", "b", time_left=time_left)
    with pytest.raises(LimitReached):
        ask(world, chain)
    assert (world.of(LinkFailed), chain.health.failures(chain.links[0]), world.hits("b")) == ([], 0, 0)


def test_a_request_in_trouble_ends_when_its_wait_is_used_up(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="400"))
    with pytest.raises(ChainExhausted):
        ask(world, world.chain("a", max_wait_seconds=1_000))
    assert world.hits("a") == 3
