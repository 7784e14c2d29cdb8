"""Who is asked, how often and when; and how it ends when nobody answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.chain.health import Health
from agentx.chain.visit import Prepare
from agentx.chain.walk import Answer, Chain
from agentx.config.links import Link
from agentx.errors import (
    ChainExhausted,
    ContextOverflow,
    ErrorClass,
    NoUsableModel,
    RequestFailed,
    StateError,
    StopRequested,
    WindowTooSmall,
)
from agentx.events import LinkFailed, LinkSwitched, Waiting
from agentx.wires.messages import Message, Reply, Request

if TYPE_CHECKING:
    from conftest import Failures, Said, World


def ask(world: World, chain: Chain) -> Answer:
    return asyncio.run(chain.ask(world.prepare))


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        (400, 1), (401, 1), (402, 1), (403, 1), (404, 1), (408, 2), (409, 2), (413, 1), (422, 1), (429, 1),
        (500, 2), (502, 2), (503, 1), (504, 2), (529, 1), (418, 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [1, 2, 3])
def test_every_status_ends_with_the_answer_of_the_next_link(
    world: World, fail: Failures, code: int, hits: int, place: int
) -> None:
    """Wherever the failing link stands; a resting one before it does not matter."""
    order = ["x", "y", "bad"][3 - place :]
    for name in order[:-1]:
        world.say(name, fail.status(429, retry_after="3600"))
    world.say("bad", fail.status(code))
    world.say("good", "hi")
    chain = world.chain(*order, "good")
    assert ask(world, chain).reply.message.text == "hi"
    assert world.hits("bad") == hits
    assert sum(world.clock.slept) <= 0.5


def test_a_busy_link_hands_over_to_the_next_at_once(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429))
    world.say("b", "hi")
    answer = ask(world, world.chain("a", "b"))
    assert (answer.link.name, world.hits("a"), world.clock.slept) == ("b/m", 1, [])
    assert [type(event) for event in world.events] == [LinkFailed, LinkSwitched]
    (switched,) = world.of(LinkSwitched)
    assert (switched.from_, switched.to, switched.reason) == ("a/m", "b/m", "a/m: rate_limit")


@pytest.mark.parametrize("error_class", ["invalid_reply", "empty_reply"])
def test_a_broken_reply_is_asked_for_once_more_and_then_elsewhere(
    world: World, fail: Failures, error_class: ErrorClass
) -> None:
    world.say("a", fail.broken(error_class))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    assert ask(world, chain).link.name == "b/m"
    assert world.hits("a") == 2
    assert chain.health.failures(chain.links[0]) == 1


def test_a_broken_reply_that_is_whole_at_the_second_asking_costs_nothing(world: World, fail: Failures) -> None:
    world.say("a", fail.broken("empty_reply"), "hi")
    chain = world.chain("a")
    assert ask(world, chain).link.name == "a/m"
    assert chain.health.failures(chain.links[0]) == 0


def test_a_stated_uselessness_of_retrying_is_believed(world: World, fail: Failures) -> None:
    world.say("a", fail.status(500, x_should_retry="false"))
    world.say("b", "hi")
    ask(world, world.chain("a", "b"))
    assert world.hits("a") == 1


def test_twenty_calls_ask_a_dead_primary_at_most_three_times(world: World, fail: Failures) -> None:
    world.say("a", fail.unreachable())
    world.say("b", "hi")
    chain = world.chain("a", "b")
    for _ in range(20):
        ask(world, chain)
    assert world.hits("a") <= 3
    assert world.hits("b") == 20


def test_a_link_that_is_always_busy_is_asked_as_often_as_its_rests_allow(world: World, fail: Failures) -> None:
    """Eight virtual hours, a call every minute: 5 s doubling to 15 min."""
    world.say("a", fail.status(429))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    for _ in range(8 * 60):
        ask(world, chain)
        world.clock.advance(60)
    times = [asked.time for asked in world.asked if asked.link == "a"]
    assert len(times) <= 8 + 8 * 4
    for number, (one, two) in enumerate(pairwise(times)):
        assert two - one >= min(900, 5 * 2**number)


def test_a_lone_link_that_is_always_busy_is_not_hammered(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="1"))
    with pytest.raises(ChainExhausted):
        ask(world, world.chain("a", max_wait_seconds=8 * 3600))
    assert world.hits("a") <= 8 + 8 * 4
    assert len(world.of(Waiting)) == world.hits("a") - 1


def test_the_primary_is_asked_again_when_its_rest_is_over(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="60"), "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    served: list[str] = []
    for _ in range(4):
        served.append(ask(world, chain).link.name)
        world.clock.advance(25)
    assert served == ["b/m", "b/m", "b/m", "a/m"]
    assert [event.reason for event in world.of(LinkSwitched)] == ["a/m: rate_limit", "its rest is over"]


def test_with_all_links_resting_the_earliest_is_waited_for(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="4"), "a")
    world.say("b", fail.status(429, retry_after="2"), "b")
    start = world.clock.now()
    assert ask(world, world.chain("a", "b")).link.name == "b/m"
    assert 2.0 <= world.clock.now() - start <= 2.4
    assert (world.hits("a"), world.hits("b"), len(world.of(Waiting))) == (1, 2, 1)


def test_while_another_job_asks_after_a_rest_the_next_link_answers(
    world: World, tmp_path: Path, fail: Failures
) -> None:
    file = tmp_path / "health.db"
    world.health = Health(file, environ={}, now=world.clock.now)
    other = Health(file, environ={}, now=world.clock.now)
    world.say("a", fail.status(429, retry_after="10"), "a is back")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    world.clock.advance(10)
    assert other.claim(chain.links[0])
    assert ask(world, chain).link.name == "b/m"
    other.release(chain.links[0])
    assert ask(world, chain).link.name == "a/m"
    other.close()
    world.health.close()


def test_a_long_wait_looks_at_the_clock_every_half_minute(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"), "a")
    ask(world, world.chain("a"))
    assert world.clock.slept[:6] == [1, 2, 4, 8, 16, 30] and max(world.clock.slept) == 30
    assert len(world.of(Waiting)) == 1


def test_a_wait_ends_early_when_another_job_finds_the_link_well(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"), "a")

    async def sleep(seconds: float) -> None:
        await world.clock.sleep(seconds)
        if len(world.clock.slept) == 3:
            world.health.succeeded(world.links["a"], world.clock.now())

    ask(world, world.chain("a", sleep=sleep))
    assert sum(world.clock.slept) < 100


def test_a_machine_that_slept_through_the_wait_goes_on_at_once(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"), "a")

    async def sleep(seconds: float) -> None:
        world.clock.slept.append(seconds)
        world.clock.advance(4000)

    ask(world, world.chain("a", sleep=sleep))
    assert world.clock.slept == [1]


def test_a_restart_wakes_at_the_time_that_was_known_before(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="3600"), "a")
    start = world.clock.now()

    async def killed(seconds: float) -> None:
        raise StopRequested("stopped")

    with pytest.raises(StopRequested):
        ask(world, world.chain("a", sleep=killed))
    world.clock.advance(1000)
    assert ask(world, world.chain("a")).link.name == "a/m"
    assert 3600 <= world.clock.now() - start <= 3660


def test_failures_that_take_long_count_against_the_time_that_may_be_lost(world: World) -> None:
    """A link that never rests as long as it takes to fail must not keep a request for ever."""

    def script(request: Request) -> Said:
        world.clock.advance(1000)
        return RequestFailed("nothing came", phase="headers", timed_out=True)

    world.decide("a", script)
    world.decide("b", script)
    with pytest.raises(ChainExhausted):
        ask(world, world.chain("a", "b", max_wait_seconds=3600))
    assert len(world.asked) <= 5


def test_a_wait_that_is_too_long_ends_with_one_line_for_each_link(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="7200"))
    world.say("b", fail.status(402, "no credits"))
    with pytest.raises(ChainExhausted) as caught:
        ask(world, world.chain("a", "b", max_wait_seconds=600))
    assert caught.value.tried == ("a/m: rate_limit: answered 429", "b/m: quota: no credits")
    assert caught.value.hint
    assert world.clock.slept == []


def test_where_nothing_may_be_waited_every_link_is_still_asked(world: World, fail: Failures) -> None:
    world.say("a", fail.status(500))
    world.say("b", fail.status(429))
    world.say("c", "hi")
    assert ask(world, world.chain("a", "b", "c", max_wait_seconds=0)).link.name == "c/m"


def test_being_offline_is_waited_out_and_charged_to_nobody(world: World, fail: Failures) -> None:
    """Ninety seconds without network in the middle of a job."""
    world.say("a", "hi")
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    back = world.clock.now() + 90
    for name in "ab":
        world.decide(name, lambda _: "back" if world.clock.now() >= back else fail.unreachable())
    assert ask(world, chain).link.name == "a/m"
    assert world.clock.now() - back <= 66
    assert [chain.health.failures(link) for link in chain.links] == [0, 0]
    assert all("offline" in event.reason for event in world.of(Waiting))


def test_offline_is_seen_while_another_link_rests_on_a_limit(world: World, fail: Failures) -> None:
    """Of the links that could be asked none was reached: B is not charged, and asked a minute later at most."""
    world.say("a", fail.status(429, retry_after="20000"))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    ask(world, chain)
    back = world.clock.now() + 2000
    world.decide("b", lambda _: "back" if world.clock.now() >= back else fail.unreachable())
    assert ask(world, chain).link.name == "b/m"
    assert world.clock.now() - back <= 66
    assert (world.hits("a"), chain.health.failures(chain.links[1])) == (1, 0)
    rest = chain.health.resting(chain.links[0])
    assert rest is not None
    assert rest.error_class == "rate_limit"


def test_offline_is_seen_after_a_limit_that_was_hit_by_the_same_request(world: World, fail: Failures) -> None:
    world.say("a", "hi", fail.status(429, retry_after="20000"))
    chain = world.chain("a", "b")
    ask(world, chain)
    back = world.clock.now() + 2000
    world.decide("b", lambda _: "back" if world.clock.now() >= back else fail.unreachable())
    assert ask(world, chain).link.name == "b/m"
    assert world.clock.now() - back <= 66


def test_a_limit_that_ends_while_offline_is_not_missed(world: World, fail: Failures) -> None:
    world.say("a", "hi", fail.status(429, retry_after="100"), "back")
    world.say("b", fail.unreachable())
    chain = world.chain("a", "b")
    ask(world, chain)
    start = world.clock.now()
    assert ask(world, chain).link.name == "a/m"
    assert 100 <= world.clock.now() - start <= 112


def test_a_limit_from_before_is_waited_for_though_nothing_else_answers(world: World, fail: Failures) -> None:
    """A local server that is not running says nothing about the provider that rests."""
    world.say("a", "hi")
    world.say("b", fail.unreachable())
    chain = world.chain("a", "b")
    world.health.rest(world.links["a"], world.clock.now() + 600, "rate_limit", "slow down")
    assert ask(world, chain).link.name == "a/m"


def test_being_offline_leaves_what_was_known_before(world: World, fail: Failures) -> None:
    chain = world.chain("a")
    link = chain.links[0]
    world.say("a", "hi")
    ask(world, chain)
    for _ in range(3):
        world.clock.advance(world.health.rest(link, None, "server", "down").until - world.clock.now())
    failures: list[int] = []

    def script(request: Request) -> Said:
        failures.append(world.health.failures(link))
        return "hi" if len(failures) == 4 else fail.unreachable()

    world.decide("a", script)
    ask(world, chain)
    assert failures == [3, 3, 3, 3]


def test_a_server_that_is_not_there_is_not_asked_twice_while_another_is_ready(
    world: World, fail: Failures
) -> None:
    world.say("a", fail.unreachable())
    world.say("b", "hi")
    assert ask(world, world.chain("a", "b")).link.name == "b/m"
    assert (world.hits("a"), world.clock.slept) == (1, [])


def test_a_server_that_is_not_there_is_asked_twice_where_it_is_the_only_one(world: World, fail: Failures) -> None:
    world.say("a", fail.unreachable(), "hi")
    assert ask(world, world.chain("a")).link.name == "a/m"
    assert sum(world.clock.slept) <= 0.5


def test_a_chain_that_never_reached_anybody_says_so_soon(world: World, fail: Failures) -> None:
    world.say("a", fail.unreachable())
    start = world.clock.now()
    with pytest.raises(NoUsableModel, match="nothing answers: a/m: network: cannot connect") as caught:
        ask(world, world.chain("a"))
    assert world.clock.now() - start <= 35
    assert caught.value.hint


def test_without_any_key_there_is_no_usable_model(world: World) -> None:
    missing = RequestFailed("no key", phase="connect", error_class="auth", hint="export A_KEY=...")
    world.say("a", missing)
    world.say("b", missing)
    with pytest.raises(NoUsableModel) as caught:
        ask(world, world.chain("a", "b"))
    assert caught.value.hint == "export A_KEY=..."


def test_a_refused_key_and_an_unknown_model_are_not_waited_for(world: World, fail: Failures) -> None:
    world.say("a", fail.status(401))
    world.say("b", fail.status(404))
    with pytest.raises(NoUsableModel):
        ask(world, world.chain("a", "b"))
    assert world.clock.slept == []


def test_a_link_that_is_out_is_not_asked_again_in_the_same_process(world: World, fail: Failures) -> None:
    world.say("a", fail.status(404))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    for _ in range(3):
        ask(world, chain)
        world.clock.advance(60)
    assert world.hits("a") == 1


def test_before_giving_up_a_link_that_an_earlier_process_put_out_is_asked_once(
    world: World, fail: Failures
) -> None:
    """The user has pulled the model in the meantime."""
    world.say("a", fail.status(404), "hi")
    with pytest.raises(NoUsableModel):
        ask(world, world.chain("a"))
    world.clock.advance(5)
    assert ask(world, world.chain("a")).link.name == "a/m"


@pytest.mark.parametrize("code", [400, 422, 418])
def test_what_two_links_refuse_is_not_sent_to_a_third(world: World, fail: Failures, code: int) -> None:
    for name in "abc":
        world.say(name, fail.status(code, '{"error": {"message": "no such field"}}'))
    with pytest.raises(ChainExhausted, match="the request itself is refused: a/m: bad_request: no such field"):
        ask(world, world.chain("a", "b", "c"))
    assert [world.hits(name) for name in "abc"] == [1, 1, 0]
    assert [event.message for event in world.of(LinkFailed)] == ["unknown refusal: no such field"] * 2


def test_a_refusal_that_is_not_known_is_logged_as_such(world: World, fail: Failures) -> None:
    """One other link is asked, then the chain stops with what was said."""
    for name in ("a", "b", "c"):
        world.say(name, fail.status(418, '{"error": {"message": "short and stout"}}'))
    with pytest.raises(ChainExhausted, match="short and stout"):
        asyncio.run(world.chain("a", "b", "c").ask(world.prepare))
    assert [(event.link, event.message) for event in world.of(LinkFailed)] == [
        ("a/m", "unknown refusal: short and stout"),
        ("b/m", "unknown refusal: short and stout"),
    ]
    assert world.hits("c") == 0


def test_what_two_models_lack_a_third_may_have(world: World, fail: Failures) -> None:
    """A 404 says what a model cannot do, not that the request is wrong."""
    for name in "ab":
        world.say(name, fail.status(404, '{"error": {"message": "No endpoints found that support image input"}}'))
    world.say("c", "hi")
    assert ask(world, world.chain("a", "b", "c")).link.name == "c/m"


def test_a_call_that_two_models_wrote_wrongly_is_written_by_a_third(world: World, fail: Failures) -> None:
    for name in "ab":
        world.say(name, fail.status(400, '{"error": {"message": "no", "code": "tool_use_failed"}}'))
    world.say("c", "hi")
    assert ask(world, world.chain("a", "b", "c")).link.name == "c/m"
    assert (world.hits("a"), world.hits("b")) == (2, 2)


@pytest.mark.parametrize("code", [413, 422])
def test_a_link_that_finds_every_request_too_large_is_not_sent_each_one(
    world: World, fail: Failures, code: int
) -> None:
    world.say("a", fail.status(code))
    world.say("b", "ok")
    chain = world.chain("a", "b")
    for _ in range(20):
        asyncio.run(chain.ask(world.prepare))
    assert world.hits("a") <= 2


def test_a_link_that_alone_refuses_a_request_rests(world: World, fail: Failures) -> None:
    """Else every turn of the job would pay for the same refusal."""
    world.say("a", fail.status(400))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    for _ in range(5):
        ask(world, chain)
    assert world.hits("a") == 1


def test_a_link_whose_window_cannot_hold_it_is_skipped_without_a_request(world: World) -> None:
    world.say("b", "hi")

    async def prepare(link: Link, reason: str) -> Request:
        if link.name == "a/m":
            raise WindowTooSmall("too small")
        return await world.prepare(link, reason)

    chain = world.chain("a", "b")
    for _ in range(3):
        assert asyncio.run(chain.ask(prepare)).link.name == "b/m"
    assert world.hits("a") == 0
    assert len(world.of(LinkSwitched)) == 1


def test_when_no_link_can_hold_it_the_overflow_says_so_for_each(world: World) -> None:
    async def prepare(link: Link, reason: str) -> Request:
        raise ContextOverflow(f"{link.model} is too small", hint="set `window:`")

    with pytest.raises(ContextOverflow, match=r"a/m: overflow: m is too small; b/m: overflow") as caught:
        asyncio.run(world.chain("a", "b").ask(prepare))
    assert caught.value.hint == "set `window:`"


def shrinking(sizes: list[int]) -> Prepare:
    async def prepare(link: Link, reason: str) -> Request:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        return Request(model="m", messages=[Message(role="user", text="x")], estimate=size, max_tokens=100)

    return prepare


OVERFLOW = '{"error":{"code":400,"type":"exceed_context_size_error","message":"request (5454 tokens) exceeds the \
available context size (4096 tokens), try increasing it","n_prompt_tokens":5454,"n_ctx":4096}}'


def test_an_overflow_is_learned_from_and_the_same_link_gets_a_smaller_request(
    world: World, fail: Failures
) -> None:
    world.say("a", fail.status(400, OVERFLOW), "hi")
    answer = asyncio.run(world.chain("a", "b").ask(shrinking([5000, 2000])))
    assert (answer.link.name, answer.request.estimate, world.learned) == ("a/m", 2000, [("a", 4096)])
    (failed,) = world.of(LinkFailed)
    assert (failed.class_, failed.limit, failed.actual) == ("overflow", 4096, 5454)
    assert world.clock.slept == [0.0]


def test_an_overflow_that_no_smaller_request_answers_goes_to_the_next_link(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, OVERFLOW))
    world.say("b", "hi")
    answer = asyncio.run(world.chain("a", "b").ask(shrinking([5000])))
    assert (answer.link.name, world.hits("a")) == ("b/m", 1)
    assert world.learned == [("a", 4096), ("a", 3750), ("a", 3750)]


def test_an_overflow_is_rebuilt_at_most_three_times(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}'))
    with pytest.raises(ContextOverflow):
        asyncio.run(world.chain("a").ask(shrinking([900, 800, 700, 600, 500, 400])))
    assert world.hits("a") == 4
    assert world.learned[:2] == [("a", 675), ("a", 600)]


def test_a_truncated_reply_is_asked_for_again_smaller(world: World) -> None:
    """Whoever found the truncation out has learned the window; the chain only asks for the new request."""
    world.say("a", "hi")
    checked: list[int] = []

    async def check(link: Link, request: Request, reply: Reply) -> None:
        checked.append(request.estimate)
        if request.estimate > 4096:
            raise RequestFailed("cut", phase="reply", status=200, error_class="truncated")

    answer = asyncio.run(world.chain("a").ask(shrinking([6000, 2000]), check=check))
    assert (checked, answer.request.estimate, world.learned) == ([6000, 2000], 2000, [])


def test_a_truncation_that_stays_ends_as_context_overflow_with_its_hint(world: World) -> None:
    world.say("a", "hi")

    async def check(link: Link, request: Request, reply: Reply) -> None:
        raise RequestFailed("cut", phase="reply", error_class="truncated", hint="set `num_ctx`")

    with pytest.raises(ContextOverflow) as caught:
        asyncio.run(world.chain("a").ask(shrinking([6000]), check=check))
    assert caught.value.hint == "set `num_ctx`"


def test_an_output_budget_that_is_too_large_is_lowered_at_the_same_link(world: World, fail: Failures) -> None:
    text = (
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 1024 \
tokens and your request has 500 input tokens (1000 > 1024 - 500)."
    )
    world.say("a", fail.status(400, f'{{"error": {{"message": "{text}"}}}}'), "hi")
    answer = ask(world, world.chain("a"))
    assert (answer.request.max_tokens, world.hits("a")) == (508, 2)


def test_an_output_budget_that_was_too_large_teaches_no_window_and_the_next_request_obeys(world: World) -> None:
    """Prompt and output together are refused: the output alone gives way, now and before it is refused again."""

    def script(request: Request) -> Said:
        prompt, asked = request.estimate * 2, request.max_tokens or 0
        if prompt + asked <= 4096:
            return "hi"
        words = (
            f"This model's maximum context length is 4096 tokens. However, you requested {prompt + asked} tokens "
            f"({prompt} in the messages, {asked} in the completion)."
        )
        return RequestFailed("no", phase="status", status=400, body=json.dumps({"error": {"message": words}}))

    world.decide("a", script)
    chain = world.chain("a")
    asked = [asyncio.run(chain.ask(budgeted(size))).request.max_tokens for size in (1000, 1200, 1400)]
    assert (asked, world.hits("a"), world.learned, world.guessed) == ([2080, 1560, 1140], 4, [], [])


def test_a_prompt_that_leaves_no_room_for_any_reply_is_what_is_too_long(world: World, fail: Failures) -> None:
    words = (
        "This model's maximum context length is 4096 tokens. However, you requested 12238 tokens (4046 in the "
        "messages, 8192 in the completion)."
    )
    world.say("a", fail.status(400, json.dumps({"error": {"message": words}})), "hi")
    asyncio.run(world.chain("a").ask(shrinking([4000, 2000])))
    assert world.learned == [("a", 4096)]


def budgeted(size: int) -> Prepare:
    async def prepare(link: Link, reason: str) -> Request:
        return Request(model="m", messages=[Message(role="user", text="x")], estimate=size, max_tokens=8192)

    return prepare


def test_an_output_cap_without_numbers_is_found_by_halving(world: World, fail: Failures) -> None:
    def script(request: Request) -> Said:
        if request.max_tokens is not None and request.max_tokens <= 300:
            return "hi"
        return fail.status(400, '{"error": {"message": "max_tokens is too large"}}')

    world.decide("a", script)
    assert ask(world, world.chain("a")).request.max_tokens == 250


def test_a_lone_link_that_only_gives_empty_replies_is_given_up(world: World, fail: Failures) -> None:
    world.say("a", fail.broken("empty_reply"))
    with pytest.raises(ChainExhausted):
        ask(world, world.chain("a"))
    assert world.hits("a") == 6


def test_a_stop_during_a_wait_passes_through(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429))

    async def sleep(seconds: float) -> None:
        raise StopRequested("stopped")

    with pytest.raises(StopRequested):
        ask(world, world.chain("a", sleep=sleep))


def test_a_cancelled_request_is_cancelled(world: World) -> None:
    def script(request: Request) -> Said:
        raise asyncio.CancelledError

    world.decide("a", script)
    with pytest.raises(asyncio.CancelledError):
        ask(world, world.chain("a"))
    assert world.events == []


def test_a_wire_that_breaks_is_a_broken_reply_of_its_link_and_the_chain_goes_on(world: World) -> None:
    """Whatever a server says that nobody thought of, the night is not over while another link is well."""

    def script(request: Request) -> Said:
        raise KeyError("choices")

    world.decide("a", script)
    world.say("b", "hi")
    assert ask(world, world.chain("a", "b")).link.name == "b/m"
    assert world.hits("a") == 2
    failed = world.of(LinkFailed)[0]
    assert (failed.class_, failed.message) == ("invalid_reply", "what came could not be read: KeyError: 'choices'")
    assert "Traceback" in world.logged[0]


def test_a_check_that_breaks_counts_like_a_wire_that_breaks(world: World) -> None:
    world.say("a", "hi")
    world.say("b", "hi")

    async def check(link: Link, request: Request, reply: Reply) -> None:
        if link.name == "a/m":
            raise ZeroDivisionError("no tokens")

    assert asyncio.run(world.chain("a", "b").ask(world.prepare, check=check)).link.name == "b/m"
    assert "ZeroDivisionError" in world.logged[0]


@pytest.mark.parametrize(
    "error", [StateError("the disk is full"), ContextOverflow("too long"), StopRequested("stopped")], ids=repr
)
def test_what_ends_a_job_is_no_broken_reply(world: World, error: Exception) -> None:
    world.say("a", "hi")
    world.say("b", "hi")

    async def check(link: Link, request: Request, reply: Reply) -> None:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(world.chain("a", "b").ask(world.prepare, check=check))
    assert world.logged == []


def test_a_fault_in_preparing_a_request_is_not_blamed_on_a_link(world: World) -> None:
    async def prepare(link: Link, reason: str) -> Request:
        raise KeyError("view")

    with pytest.raises(KeyError):
        asyncio.run(world.chain("a", "b").ask(prepare))


def test_a_failing_summary_inside_prepare_counts_as_a_failure_of_that_link(world: World, fail: Failures) -> None:
    world.say("b", "hi")

    async def prepare(link: Link, reason: str) -> Request:
        if link.name == "a/m":
            raise fail.status(429)
        return await world.prepare(link, reason)

    assert asyncio.run(world.chain("a", "b").ask(prepare)).link.name == "b/m"


def test_an_empty_chain_is_no_usable_model(world: World) -> None:
    with pytest.raises(NoUsableModel):
        world.chain()


def test_the_likely_link_is_the_first_that_does_not_rest(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, retry_after="100"))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    assert chain.likely().name == "a/m"
    ask(world, chain)
    assert chain.likely().name == "b/m"


def test_waiting_names_the_time_and_the_reason(world: World, fail: Failures) -> None:
    world.say("a", fail.status(429, '{"error": {"message": "slow, please"}}', retry_after="10"), "hi")
    ask(world, world.chain("a"))
    (waiting,) = world.of(Waiting)
    assert waiting == Waiting(
        until="2027-01-15T08:00:10.510Z", reason="every link rests; a/m is back first (rate_limit: slow, please)"
    )


@settings(deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["ok", "429", "500", "402", "refused", "empty", "overflow", "400", "401", "timeout"]),
            min_size=1,
            max_size=6,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_happens_one_request_is_in_flight_and_no_resting_link_is_asked(
    new_world: Callable[[], World], fail: Failures, scripts: list[list[str]]
) -> None:
    """And it ends, with an answer or with one of three errors. (The scripted wire refuses to be asked at rest.)"""
    world = new_world()
    said: dict[str, Said] = {
        "ok": "hi",
        "refused": fail.unreachable(),
        "empty": fail.broken("empty_reply"),
        "overflow": fail.status(400, OVERFLOW),
        "timeout": RequestFailed("nothing came", phase="headers", timed_out=True),
    }
    for name, script in zip("abcd", scripts, strict=False):
        world.say(name, *(said.get(word) or fail.status(int(word)) for word in script))
    chain = world.chain(*"abcd"[: len(scripts)], max_wait_seconds=3600)
    for _ in range(3):
        try:
            ask(world, chain)
        except (ChainExhausted, ContextOverflow, NoUsableModel):
            continue
    assert world.most_in_flight == 1


def sized(sizes: list[int], threshold: int | None) -> Prepare:
    """Requests of these sizes, the last for ever, by a caller who keeps them below *threshold*."""

    async def prepare(link: Link, reason: str) -> Request:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        hello = [Message(role="user", text="x")]
        return Request(model="m", messages=hello, estimate=size, max_tokens=100, threshold=threshold)

    return prepare


@pytest.mark.parametrize("body", ["", "{}", "null", "400 status code (no body)"])
def test_a_refusal_without_a_word_of_a_large_request_is_a_guessed_overflow(
    world: World, fail: Failures, body: str
) -> None:
    world.say("a", fail.status(400, body), "hi")
    answer = asyncio.run(world.chain("a").ask(sized([5000, 2000], 8000)))
    assert (answer.request.estimate, world.learned, world.guessed) == (2000, [], [("a", 3750)])
    assert [failed.class_ for failed in world.of(LinkFailed)] == ["overflow"]


@pytest.mark.parametrize("threshold", [10_000, None])
def test_a_refusal_without_a_word_of_a_small_request_is_none(
    world: World, fail: Failures, threshold: int | None
) -> None:
    world.say("a", fail.status(400))
    world.say("b", "hi")
    assert asyncio.run(world.chain("a", "b").ask(sized([5000], threshold))).link.name == "b/m"
    assert [failed.class_ for failed in world.of(LinkFailed)] == ["bad_request"]
    assert (world.hits("a"), world.learned, world.guessed) == (1, [], [])


def test_after_two_smaller_requests_a_refusal_without_a_word_is_what_its_status_says(
    world: World, fail: Failures
) -> None:
    world.say("a", fail.status(413))
    world.say("b", "hi")
    asyncio.run(world.chain("a", "b").ask(sized([5000, 2000, 900, 400], 8000)))
    assert [failed.class_ for failed in world.of(LinkFailed)] == ["overflow", "overflow", "too_many_bytes"]
    assert (world.hits("a"), world.guessed) == (3, [("a", 3750), ("a", 1500)])
