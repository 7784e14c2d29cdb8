"""The breaker of summaries: who fails is left alone, who is well is asked, over restarts too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.faults import Fault, Status
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


def no_summaries(server: FaultServer, fault: Fault) -> FaultServer:
    """*server*, which answers turns only."""

    def schedule(_: int) -> Fault | None:
        return None if server.requests[-1].body.get("tools") else fault

    server.schedule = schedule
    return server


def test_a_model_that_gives_no_summary_is_left_alone_while_another_one_writes_them(night: Night) -> None:
    codes = night.notes(18, words=600)
    server = no_summaries(FaultServer(NoteReader(), window=8_192), Status(503))
    with server, FaultServer(NoteReader(), models=["cheap"]) as cheap:
        night.providers = {"cheap": {"card": "openai-compatible", "base_url": cheap.v1}}
        ran = night.run([server], note_task(18), compaction={"summary_model": "cheap/cheap"})
    assert all(code in ran.answer for code in codes), ran.story
    tiers = [tier for event in ran.of("compaction") for tier in event["tiers"]]
    written = [tier for tier in tiers if tier["tier"] == 3 and tier["ok"]]
    assert len(written) >= 5, ran.story
    assert len(ran.of("request", purpose="summary", link="s1/scripted")) < len(written), ran.story
    assert [event["state"] for event in ran.of("breaker")][:3] == ["closed", "closed", "open"]


def test_a_restart_does_not_close_the_breaker(night: Night) -> None:
    night.notes(18, words=900)
    with no_summaries(FaultServer(NoteReader(), window=8_192), Status(500)) as server:
        first = night.run([server], note_task(18), limits={"turns": 18})
        second = night.run([server], job=first.job, limits={"turns": 24})
    assert first.of("breaker")[-1]["state"] == "open", first.story
    assert second.of("compaction"), second.story
    assert {event["state"] for event in second.of("breaker")} <= {"open"}, "one more failure is not the first one"
    assert len(second.of("request", purpose="summary")) <= 1, second.story
