"""What the tests of the chain share: links, wires that say what a script tells them, a clock that sleep moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from agentx.chain.health import Health
from agentx.chain.vigil import News
from agentx.chain.walk import Chain
from agentx.config.cards import read_cards
from agentx.config.links import Link, Provider
from agentx.errors import ErrorClass, RequestFailed
from agentx.events import Event
from agentx.testing.clock import VirtualClock
from agentx.wires.messages import Message, Reply, Request, Timers, Wire

Said = RequestFailed | str
Kind = TypeVar("Kind", bound=Event)
Script = Callable[[Request], Said]


def make_link(name: str, *, key: str | None = None, self_hosted: bool = False) -> Link:
    provider = Provider(
        name=name,
        card=name,
        wire="openai",
        base_url=f"https://{name}.example/v1",
        api_key_env=key,
        self_hosted=self_hosted,
    )
    return Link(provider=provider, model="m", name=f"{name}/m")


@dataclass
class Asked:
    """One request that reached a wire, and when."""

    link: str
    time: float
    request: Request
    timers: Timers


@dataclass
class World:
    """A chain whose wires are scripts: `say` sets what a link answers, one after the other, the last for ever."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    events: list[Event] = field(default_factory=list[Event])
    asked: list[Asked] = field(default_factory=list[Asked])
    learned: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    guessed: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    logged: list[str] = field(default_factory=list[str])
    scripts: dict[str, Script] = field(default_factory=dict[str, Script])
    network: Callable[[str], bool] | None = None
    """Whether a link can be connected to, by name; None: only a request can tell."""
    knocks: list[str] = field(default_factory=list[str])
    """The links that were connected to without a request."""
    look: Callable[[], News | None] = lambda: None
    chance: float = 0.5
    in_flight: int = 0
    most_in_flight: int = 0
    health: Health = field(init=False)
    links: dict[str, Link] = field(default_factory=dict[str, Link])

    def __post_init__(self) -> None:
        self.health = Health(None, environ={}, now=self.clock.now)

    def say(self, name: str, *said: Said) -> None:
        queue = list(said)
        self.scripts[name] = lambda _: queue.pop(0) if len(queue) > 1 else queue[0]

    def decide(self, name: str, script: Script) -> None:
        self.scripts[name] = script

    def chain(
        self,
        *names: str,
        max_wait_seconds: float = 8 * 3600,
        sleep: Callable[[float], Awaitable[None]] | None = None,
        planned_wake: float | None = None,
        time_left: Callable[[], float] | None = None,
        patience_seconds: float = 30,
        timers: Timers | None = None,
    ) -> Chain:
        self.links |= {name: make_link(name) for name in names if name not in self.links}
        return Chain(
            [self.links[name] for name in names],
            wires=self.wire,
            health=self.health,
            tell=self.events.append,
            now=self.clock.now,
            sleep=sleep or self.clock.sleep,
            random=lambda: self.chance,
            look=lambda: self.look(),
            reach=self.reach,
            planned_wake=planned_wake,
            time_left=time_left,
            patience_seconds=patience_seconds,
            timers=timers,
            max_wait_seconds=max_wait_seconds,
            learn=lambda link, limit, evidence: self.learned.append((link.provider.name, limit)),
            guess=lambda link, limit, evidence: self.guessed.append((link.provider.name, limit)),
            log=self.logged.append,
        )

    async def reach(self, link: Link) -> bool | None:
        self.knocks.append(link.provider.name)
        return None if self.network is None else self.network(link.provider.name)

    def wire(self, link: Link) -> Wire:
        return ScriptedWire(self, link)

    async def prepare(self, link: Link, reason: str) -> Request:
        return Request(
            model=link.model, messages=[Message(role="user", text="hello")], estimate=100, max_tokens=1000
        )

    def hits(self, name: str) -> int:
        return sum(asked.link == name for asked in self.asked)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


class ScriptedWire:
    """Implements `Wire`; asking takes ten milliseconds."""

    def __init__(self, world: World, link: Link) -> None:
        self.world = world
        self.link = link

    async def ask(self, request: Request, timers: Timers) -> Reply:
        world, name = self.world, self.link.provider.name
        rest = world.health.resting(self.link)
        assert rest is None or rest.out, "a resting link was asked"
        world.in_flight += 1
        world.most_in_flight = max(world.most_in_flight, world.in_flight)
        world.asked.append(Asked(name, world.clock.now(), request, timers))
        world.clock.advance(0.01)
        said = world.scripts[name](request)
        world.in_flight -= 1
        if isinstance(said, RequestFailed):
            raise said
        return Reply(
            message=Message(role="assistant", text=said), finish="stop", usage=None, model="m", seconds=0.01
        )

    async def count(self, request: Request) -> int | None:
        return None


def status(code: int, body: str = "", **headers: str) -> RequestFailed:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return RequestFailed(f"answered {code}", phase="status", status=code, headers=names, body=body)


def unreachable() -> RequestFailed:
    return RequestFailed("cannot connect: connection refused", phase="connect")


def broken(error_class: ErrorClass) -> RequestFailed:
    return RequestFailed("no reply at all", phase="reply", status=200, error_class=error_class)


@dataclass(frozen=True)
class Failures:
    """How requests fail, by name."""

    status: Callable[..., RequestFailed] = status
    unreachable: Callable[[], RequestFailed] = unreachable
    broken: Callable[[ErrorClass], RequestFailed] = broken


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def new_world() -> Callable[[], World]:
    """For properties, which need a fresh one for each example."""
    return World


@pytest.fixture(scope="session")
def fail() -> Failures:
    return Failures()


@pytest.fixture(scope="session")
def link_of() -> Callable[..., Link]:
    return make_link


@pytest.fixture(scope="session")
def shipped_card(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Provider]:
    """A provider with the words that its shipped card knows."""
    cards = read_cards(tmp_path_factory.mktemp("no cards of one's own"))

    def provider(name: str) -> Provider:
        return Provider(name=name, card=name, wire=cards[name].wire, errors=cards[name].patterns())

    return provider
