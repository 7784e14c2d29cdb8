"""A reply cut at its length limit is nobody's failure: more room, then less to write, then another link."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agentx.chain.classify import Failure
from agentx.chain.visit import Prepare, Shorter
from agentx.config.links import Link
from agentx.errors import ChainExhausted
from agentx.events import LinkFailed
from agentx.wires.messages import Message, Request

if TYPE_CHECKING:
    from tests.chain.conftest import Failures, World


def asked_for(world: World, name: str) -> list[int | None]:
    return [asked.request.max_tokens for asked in world.asked if asked.link == name]


def telling(world: World, most: int | None) -> tuple[list[str], Prepare, Shorter]:
    """What the model was told, a `prepare` that shows it to the model, and what tells it."""
    told: list[str] = []

    async def prepare(link: Link, reason: str) -> Request:
        said = [Message(role="user", text=text) for text in ("write", *told)]
        return Request(model=link.model, messages=said, estimate=100, max_tokens=1000, most_tokens=most)

    def shorter(link: Link, failure: Failure) -> None:
        told.append(f"less, {link.name}")

    return told, prepare, shorter


def test_a_cut_reply_gets_more_room_at_the_same_link(world: World, fail: Failures) -> None:
    _, prepare, shorter = telling(world, 3000)
    world.say("a", fail.broken("cut"), "hi")
    answer = asyncio.run(world.chain("a", "b").ask(prepare, shorter=shorter))
    assert (answer.link.name, asked_for(world, "a")) == ("a/m", [1000, 3000])
    assert (world.health.last(world.links["a"]), sum(world.clock.slept)) == (None, 0)


def test_where_there_is_no_more_room_the_model_is_told_to_write_less(world: World, fail: Failures) -> None:
    told, prepare, shorter = telling(world, 2000)
    world.say("a", fail.broken("cut"), fail.broken("cut"), fail.broken("cut"), "hi")
    answer = asyncio.run(world.chain("a", "b").ask(prepare, shorter=shorter))
    assert (answer.link.name, asked_for(world, "a")) == ("a/m", [1000, 2000, 1000, 1000])
    assert told == ["less, a/m"] * 2
    assert len(answer.request.messages) == 3
    assert world.health.last(world.links["a"]) is None


def test_a_model_that_goes_on_too_long_hands_over_and_nobody_rests(world: World, fail: Failures) -> None:
    told, prepare, shorter = telling(world, None)
    world.say("a", fail.broken("cut"))
    world.say("b", fail.broken("cut"))
    world.say("c", "hi")
    answer = asyncio.run(world.chain("a", "b", "c").ask(prepare, shorter=shorter))
    assert (answer.link.name, world.hits("a"), world.hits("b"), len(told)) == ("c/m", 4, 1, 3)
    assert [world.health.last(link) for link in world.links.values()] == [None] * 3
    assert {event.class_ for event in world.of(LinkFailed)} == {"cut"}


def test_without_anybody_to_tell_it_the_next_link_is_asked(world: World, fail: Failures) -> None:
    world.say("a", fail.broken("cut"))
    world.say("b", "hi")
    answer = asyncio.run(world.chain("a", "b").ask(world.prepare))
    assert (answer.link.name, world.hits("a")) == ("b/m", 1)


def test_a_lone_link_is_asked_once_more_where_nobody_can_tell_it(world: World, fail: Failures) -> None:
    world.say("a", fail.broken("cut"), "hi")
    answer = asyncio.run(world.chain("a").ask(world.prepare))
    assert (answer.link.name, world.hits("a"), sum(world.clock.slept)) == ("a/m", 2, 0)


def test_when_every_reply_is_cut_the_end_says_so(world: World, fail: Failures) -> None:
    _, prepare, shorter = telling(world, None)
    world.say("a", fail.broken("cut"))
    with pytest.raises(ChainExhausted, match="every reply was cut before it was whole: a/m: cut: "):
        asyncio.run(world.chain("a").ask(prepare, shorter=shorter))
    assert sum(world.clock.slept) == 0
