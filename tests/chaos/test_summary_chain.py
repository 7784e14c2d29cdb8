"""Summaries go through the chain: asked again after a blip, of another link when one is down, of whoever knows."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentx.chain.health import Health
from agentx.chain.library import link_at, open_wires
from agentx.chain.single import Alone
from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.faults import Fault, Hang, Status, always, at, rate_limited
from agentx.testing.server import FaultServer
from agentx.wires.messages import Message, Request, Timers

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


def summaries_fail(server: FaultServer, fault: Callable[[int], Fault | None]) -> None:
    """*fault* is given the number of each summary request, from 1; turns go well."""
    asked: list[int] = []

    def schedule(_: int) -> Fault | None:
        if server.requests[-1].body.get("tools"):
            return None
        asked.append(1)
        return fault(len(asked))

    server.schedule = schedule


def summaries(server: FaultServer) -> int:
    """How many summaries *server* was asked for."""
    return sum(1 for seen in server.chats if not seen.body.get("tools"))


def written(ran: Any, tier: int = 0) -> list[tuple[bool, str | None]]:
    return [
        (told["ok"], told.get("by")) for e in ran.of("compaction") for told in e["tiers"] if told["tier"] == tier
    ]


def test_a_blip_costs_no_summary(night: Night) -> None:
    codes = night.notes()
    with FaultServer(NoteReader(), window=8_192) as server:
        summaries_fail(server, lambda number: Status(500) if number == 1 else None)
        ran = night.run([server])
    assert all(code in ran.answer for code in codes), ran.story
    assert written(ran)[0] == (True, "s1/scripted"), ran.story
    assert len(ran.of("link.failed", purpose="summary")) == 1
    assert ran.of("breaker") == []


def test_another_link_writes_the_summary_when_the_first_is_down_for_it(night: Night) -> None:
    codes = night.notes()
    with FaultServer(NoteReader(), window=8_192) as first, FaultServer(NoteReader(), window=32_768) as second:
        summaries_fail(first, lambda _: Status(503))
        ran = night.run([first, second])
    assert all(code in ran.answer for code in codes), ran.story
    assert set(written(ran)) == {(True, "s2/scripted")}, ran.story
    assert ran.of("link.switched") == [], "the turns stay where they were"
    assert summaries(second) == len(second.chats)


def test_a_link_that_rests_is_asked_for_no_summary(night: Night) -> None:
    """The large one has a quota: the small one takes over, and writes its summaries itself."""
    codes = night.notes()
    large = FaultServer(NoteReader(), window=32_768, schedule=lambda n: rate_limited(7_200) if n > 9 else None)
    with large, FaultServer(NoteReader(), window=8_192) as small:
        ran = night.run([large, small])
    assert all(code in ran.answer for code in codes), ran.story
    assert set(written(ran)) == {(True, "s2/scripted")}, ran.story
    assert summaries(large) == 0


def test_a_job_that_returns_to_a_smaller_model_has_its_summary_from_the_larger_one(night: Night) -> None:
    """The large one stood in for the small one and knows the whole conversation, too long for that one."""
    codes = night.notes(20)
    small = FaultServer(NoteReader(), window=8_192, schedule=at({1: rate_limited(100)}))
    large = FaultServer(NoteReader(), window=65_536)

    def time_passes(number: int) -> Fault | None:
        if number == 12:
            night.clock.skipped += 120
        return None

    large.schedule = time_passes
    with small, large:
        ran = night.run([small, large], note_task(20))
    assert all(code in ran.answer for code in codes), ran.story
    assert [event["to"] for event in ran.of("link.switched")] == ["s2/scripted", "s1/scripted"], ran.story
    assert written(ran)[0] == (True, "s2/scripted"), ran.story
    assert summaries(large) == 1
    at_once = next(seen for seen in large.chats if not seen.body.get("tools"))
    assert all(code in str(at_once.body) for code in codes[:7]), "it was given the whole conversation"


def test_the_cheap_model_is_asked_again_after_a_blip(night: Night) -> None:
    codes = night.notes()
    with (
        FaultServer(NoteReader(), window=8_192) as server,
        FaultServer(NoteReader(), models=["cheap"], schedule=lambda n: Status(500) if n == 1 else None) as cheap,
    ):
        summaries_fail(server, always(Status(503)))
        night.providers = {"cheap": {"card": "openai-compatible", "base_url": cheap.v1}}
        ran = night.run([server], compaction={"summary_model": "cheap/cheap"})
    assert all(code in ran.answer for code in codes), ran.story
    assert written(ran, tier=3)[0][0], ran.story
    assert len(ran.of("link.failed", link="cheap/cheap")) == 1


def test_what_is_given_up_from_outside_stands_in_the_ledger() -> None:
    """A summary has a deadline of its own: what it cuts was asked, took its time, and is told."""
    failed: list[tuple[str, float]] = []

    async def asked(base_url: str) -> None:
        async with open_wires({}) as wires:
            alone = Alone(
                health=Health(None, environ=os.environ),
                wires=wires,
                now=time.time,
                sleep=asyncio.sleep,
                random=lambda: 0.0,
                failed=lambda link, failure, took: failed.append((failure.error_class, took.seconds)),
            )
            request = Request(model="scripted", messages=[Message(role="user", text="summarise")], max_tokens=9)
            async with asyncio.timeout(0.3):
                await alone.ask(link_at(base_url, "scripted"), request, Timers())

    with FaultServer(schedule=always(Hang())) as server:
        try:
            asyncio.run(asked(server.v1))
        except TimeoutError:
            failed.append(("raised", 1.0))
    assert [name for name, _ in failed] == ["timeout", "raised"]
    assert failed[0][1] >= 0.2
