"""Links that share a key or an address share what is wrong with it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentx.chain.health import Health
from agentx.config.links import Link
from agentx.errors import RequestFailed

if TYPE_CHECKING:
    from tests.chain.conftest import Failures, World

REFUSED_KEY = '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
NO_MONEY = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'


@pytest.fixture
def family(world: World, link_of: Callable[..., Link]) -> World:
    """`a` and `a2` are two models of one provider with one key; `b` is another provider."""
    world.health = Health(None, environ={"KEY": "one", "B": "two"}, now=world.clock.now)
    first = link_of("a", key="KEY")
    second = replace(first, provider=replace(first.provider, name="a2"), model="m2", name="a/m2")
    world.links |= {"a": first, "a2": second, "b": link_of("b", key="B")}
    world.say("a2", "from the sibling")
    world.say("b", "from the other")
    return world


@pytest.mark.parametrize(
    ("code", "body", "served"),
    [
        (401, REFUSED_KEY, "b/m"),
        (401, "", "b/m"),
        (429, NO_MONEY, "b/m"),
        (402, "", "b/m"),
        (403, "", "a/m2"),
        (404, "", "a/m2"),
        (429, "", "a/m2"),
        (503, "", "a/m2"),
        (500, "", "a/m2"),
    ],
)
def test_what_is_wrong_with_the_key_is_not_asked_again_with_another_model(
    family: World, fail: Failures, code: int, body: str, served: str
) -> None:
    family.say("a", fail.status(code, body))
    chain = family.chain("a", "a2", "b")
    for _ in range(2):
        assert asyncio.run(chain.ask(family.prepare)).link.name == served
    assert family.hits("a2") == (2 if served == "a/m2" else 0)


def test_an_address_that_refuses_is_not_asked_for_another_model(family: World, fail: Failures) -> None:
    family.say("a", fail.unreachable())
    answer = asyncio.run(family.chain("a", "a2", "b").ask(family.prepare))
    assert (answer.link.name, family.hits("a"), family.hits("a2")) == ("b/m", 1, 0)


def test_a_lone_address_that_comes_back_at_once_gets_its_quick_retry(family: World, fail: Failures) -> None:
    family.say("a", fail.unreachable(), "back")
    answer = asyncio.run(family.chain("a", "a2").ask(family.prepare))
    assert (answer.link.name, family.hits("a"), family.hits("a2")) == ("a/m", 2, 0)


def test_being_offline_is_charged_to_no_sibling(family: World, fail: Failures) -> None:
    back = family.clock.now() + 12

    def offline(name: str) -> Callable[[object], RequestFailed | str]:
        return lambda _: fail.unreachable() if family.clock.now() < back else name

    for name in ("a", "a2", "b"):
        family.decide(name, offline(name))
    answer = asyncio.run(family.chain("a", "a2", "b").ask(family.prepare))
    assert (answer.link.name, family.clock.now() - back < 60) == ("a/m", True)
    assert [family.health.failures(family.links[name]) for name in ("a", "a2", "b")] == [0, 0, 0]
