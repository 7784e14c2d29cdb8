"""Every named fault over a real socket, with the bad link standing first, second and third, on OpenAI's protocol,
on Ollama's own and through litellm: the good link answers, and the bad one is asked as often as the table says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import httpx
import pytest

from agentx.chain import Chain, Health, Link, Message, Provider, Reply, Request, Timers, Tool, Wire, link_at
from agentx.chain.decide import QUICK_PAUSE, QUICK_SPREAD
from agentx.events import Event, LinkFailed
from agentx.testing import FaultServer, VirtualClock, always
from agentx.testing.faces import Face
from agentx.testing.faults import Refused, TlsCut, Unresolvable, rate_limited
from agentx.testing.named import NAMED, failing
from agentx.wires.make import wire_for

PLACES: list[tuple[Face, int]] = [(route, place) for route in ("openai", "ollama") for place in (1, 2, 3)]
LONG = Timers(connect=20, first=30, idle=30, total=60)
SHORT = Timers(connect=20, first=1, idle=1, total=60)
"""For the bad link of a row that never ends by itself."""

ONCE = 1
"""Handed over at once: nothing of a repeat would help."""
REPEATED = 2
"""One quick repeat of what may have been a blip, or one more try for a broken reply."""

HITS = {
    **{f"status-{status}": ONCE for status in (400, 401, 402, 403, 404, 413, 422, 429, 503, 529)},
    **{f"status-{status}": REPEATED for status in (408, 409, 500, 502, 504)},
    **{f"quota-{status}": ONCE for status in (429, 400, 403, 404)},
    "no-retry": ONCE,
    **{f"retry-after-{form}": ONCE for form in ("0", "3", "130", "3600", "date", "ms")},
    **dict.fromkeys(("refused", "unresolvable", "tls-cut"), ONCE),  # nobody is there, and another link is ready
    **dict.fromkeys(("close", "reset", "short-body", "html-200", "garbage-200"), REPEATED),
    **dict.fromkeys(("error-200", "overloaded-event"), ONCE),  # what they say is: overloaded
    **dict.fromkeys(("empty-choices", "null-content", "reasoning-only", "half-tool-call"), REPEATED),
    **dict.fromkeys(("cut-stream", "error-event", "no-finish", "empty-stream"), REPEATED),
    **{name: ONCE for name, named in NAMED.items() if named.endless},  # it had its time
}


@dataclass(frozen=True)
class Row:
    """What became of one request. `asked`: how often the chain asked the bad link, `seen`: what its server saw of
    that (None where nobody listens); `hurried`: it never slept longer than the half second of a quick repeat."""

    served: str
    text: str
    asked: int
    seen: int | None
    others: tuple[int, ...]
    hurried: bool = True


@dataclass(frozen=True)
class Http:
    """One event loop and one client for all rows: making them costs more than a row."""

    runner: asyncio.Runner
    client: httpx.AsyncClient


@pytest.fixture(scope="module")
def http() -> Generator[Http]:
    with asyncio.Runner() as runner:
        made = httpx.AsyncClient(trust_env=False)
        yield Http(runner, made)
        runner.run(made.aclose())


class Hasty:
    """The wire of a link that has its own timers."""

    def __init__(self, wire: Wire, timers: Timers) -> None:
        self.wire = wire
        self.timers = timers

    async def ask(self, request: Request, timers: Timers) -> Reply:
        return await self.wire.ask(request, self.timers)

    async def count(self, request: Request) -> int | None:
        return await self.wire.count(request)


async def prepare(link: Link, reason: str) -> Request:
    tool = Tool("look", "looks", {"type": "object", "properties": {}})
    hello = Message(role="user", text="hello")
    return Request(model=link.model, messages=[hello], tools=[tool], max_tokens=50, estimate=50)


def link_to(server: FaultServer, name: str) -> Link:
    """The link to *server*, over the protocol of its face."""
    if server.face == "openai":
        return link_at(server.v1, "scripted", name=name)
    provider = Provider(name=name, card="ollama", wire="ollama", base_url=server.url)
    return Link(provider=provider, model="scripted", name=name)


def through_litellm(link: Link) -> Link:
    return replace(
        link, provider=replace(link.provider, wire="litellm", litellm_prefix="openai", api_key_env="KEY")
    )


async def ask(
    http: httpx.AsyncClient, name: str, face: Face, place: int, *, calls: int = 1, litellm: bool = False
) -> Row:
    """The chain with the fault *name* at *place*: busy links before it, a good one behind. Time stands still."""
    named, events, slept = NAMED[name], list[Event](), list[float]()
    now = VirtualClock(start=time.time()).now
    with ExitStack() as stack:
        busy = always(rate_limited(60))
        servers = [stack.enter_context(FaultServer(face=face, schedule=busy)) for _ in range(place - 1)]
        bad = stack.enter_context(failing(named.fault, face=face))
        good = stack.enter_context(FaultServer(face=face))
        links = [link_to(server, f"busy-{n}") for n, server in enumerate(servers)]
        bad_link = link_to(bad, "bad")
        links += [through_litellm(bad_link) if litellm else bad_link, link_to(good, "good")]

        def wire(link: Link) -> Wire:
            made = wire_for(link, http, {"KEY": "k"})
            return Hasty(made, SHORT) if link.name == "bad" and named.endless else made

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        chain = Chain(links, wires=wire, timers=LONG, tell=events.append, now=now, sleep=sleep)
        answer = [await chain.ask(prepare) for _ in range(calls)][-1]
        seen = bad.connections if isinstance(named.fault, TlsCut) else len(bad.chats)
        return Row(
            served=answer.link.name,
            text=answer.reply.message.text,
            asked=sum(isinstance(event, LinkFailed) and event.link == "bad" for event in events),
            seen=None if isinstance(named.fault, Refused | Unresolvable) else seen,
            others=tuple(len(server.chats) for server in (*servers, good)),
            hurried=sum(slept) <= QUICK_PAUSE + QUICK_SPREAD,
        )


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if not named.harmless])
def test_the_good_link_answers_and_the_bad_one_is_not_asked_too_often(http: Http, name: str) -> None:
    async def everywhere() -> list[Row]:
        return await asyncio.gather(*(ask(http.client, name, face, place) for face, place in PLACES))

    hits = HITS[name]
    seen = None if isinstance(NAMED[name].fault, Refused | Unresolvable) else hits
    rows = http.runner.run(everywhere())
    assert rows == [Row("good", "Hello.", hits, seen, others=(1,) * place) for _, place in PLACES]


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if not named.harmless])
def test_the_same_holds_through_litellm(http: Http, name: str) -> None:
    """Which has retries, error classes and an idea of a finished stream of its own."""
    hits = HITS[name]
    seen = None if isinstance(NAMED[name].fault, Refused | Unresolvable) else hits
    row = http.runner.run(ask(http.client, name, "openai", 1, litellm=True))
    assert row == Row("good", "Hello.", hits, seen, others=(1,))


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.harmless])
def test_what_is_right_in_an_odd_way_is_taken(http: Http, name: str) -> None:
    row = http.runner.run(ask(http.client, name, "openai", 1))
    assert row == Row("bad", "Hello" if name == "cut-reply" else "Hello.", asked=0, seen=1, others=(0,))


@pytest.mark.parametrize(
    "name",
    ["status-429", "status-500", "status-401", "quota-429", "refused", "close", "html-200", "cut-stream", "hang"],
)
def test_in_twenty_calls_a_dead_link_is_asked_as_often_as_in_one(http: Http, name: str) -> None:
    async def everywhere() -> list[Row]:
        return await asyncio.gather(*(ask(http.client, name, face, place, calls=20) for face, place in PLACES))

    hits, seen = HITS[name], None if name == "refused" else HITS[name]
    rows = http.runner.run(everywhere())
    assert rows == [Row("good", "Hello.", hits, seen, others=(*(1,) * (place - 1), 20)) for _, place in PLACES]


RESTS = {
    "status-429": 5,  # nobody says how long: doubled with each failure
    "retry-after-0": 5,  # no information
    "retry-after-3": 3,
    "retry-after-130": 130,
    "retry-after-3600": 3600,
    "retry-after-date": 130,
    "retry-after-ms": 1.5,
    "quota-429": 3600,
    "quota-400": 3600,
    "quota-403": 3600,
    "quota-404": 3600,
    "status-402": 3600,
}


@pytest.mark.parametrize("name", RESTS)
def test_the_bad_link_rests_as_long_as_it_was_said(http: Http, name: str) -> None:
    """And is not asked meanwhile: the second request goes straight to the good link."""
    clock = VirtualClock(start=time.time())
    health = Health(None, environ={}, now=clock.now)

    async def twice(link: Link, good: Link) -> list[str]:
        def wire(link: Link) -> Wire:
            return wire_for(link, http.client, {})

        chain = Chain([link, good], wires=wire, timers=LONG, health=health, now=clock.now, sleep=clock.sleep)
        return [(await chain.ask(prepare)).link.name for _ in range(2)]

    with failing(NAMED[name].fault) as bad, FaultServer() as good:
        link = link_to(bad, "bad")
        served = http.runner.run(twice(link, link_to(good, "good")))
        assert (served, len(bad.chats), len(good.chats)) == (["good", "good"], 1, 2)
    rest = health.resting(link)
    assert rest is not None
    spread = 61 if name == "retry-after-date" else 0.01  # the server's own clock went on meanwhile
    assert rest.until - clock.now() == pytest.approx(RESTS[name], abs=spread)
