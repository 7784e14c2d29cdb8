"""Summaries that are none: nothing is lost by them, the next tier runs, and nobody asks for them for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, asks_for_summary, text_of
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json
from agentx.testing.faults import CutStream, Fault, Hang, NullContent, Status, always, rate_limited
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

BAD: dict[str, Said] = {
    "empty": Said(""),
    "cut": Said("Goal: " + "words " * 3_000),
    "longer": Said("longer " * 560),
    "an error": Said("The model is overloaded, please try again later."),
    "a call": Said(calls=(Call("read_file", {"path": "x"}),)),
    "only thoughts": Said("<think>What happened was"),
}
FAULTS: dict[str, Fault] = {
    "500": Status(500),
    "401": Status(401),
    "429": rate_limited(60),
    "hang": Hang(),
    "413": Status(413),
    "null": NullContent(),
    "cut stream": CutStream(1),
}


class NoteKeeper:
    """Reads the notes as NoteReader does, and writes down each code that it sees with `update_notes`."""

    def __init__(self, summary: Said | None = None) -> None:
        self.reader = NoteReader()
        self.summary = summary
        self.summaries = 0

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            self.summaries += 1
            return self.summary or self.reader(messages, tools)
        known = sorted(set(re.findall(r"N\d\d-[A-Z]{2}\d{4}", text_of(messages))))
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        written = [c for c in calls if c["function"]["name"] == "update_notes"]
        kept = json.loads(written[-1]["function"]["arguments"])["content"] if written else ""
        last = messages[-1]
        if last["role"] == "tool" and any(code in last["content"] and code not in kept for code in known):
            return Said(calls=(Call("update_notes", {"content": " ".join(known)}),))
        return self.reader(messages, tools)


@pytest.mark.parametrize("kind", BAD)
def test_a_summary_that_is_none_is_refused_and_the_job_goes_on(night: Night, kind: str) -> None:
    codes = night.notes()
    brain = NoteKeeper(BAD[kind])
    with FaultServer(brain, window=8_192) as server:
        ran = night.run([server])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    tiers = [tier for event in ran.of("compaction") for tier in event["tiers"]]
    assert tiers
    assert not any(tier["ok"] for tier in tiers if tier["tier"] == 0), ran.story
    assert brain.summaries <= 4


@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_summary_request_never_fails_the_job(night: Night, name: str) -> None:
    codes = night.notes()
    night.patience = 3 if name == "hang" else night.patience
    server = FaultServer(NoteKeeper(), window=8_192)

    def only_summaries(_: int) -> Fault | None:
        return None if server.requests[-1].body.get("tools") else FAULTS[name]

    server.schedule = only_summaries
    with server:
        ran = night.run([server])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert len(ran.of("request", purpose="summary")) <= 4, ran.story
    purposes = {event["purpose"] for event in ran.of("link.failed")}
    assert "summary" in purposes
    assert "turn" not in purposes


def test_the_breaker_opens_and_arms_itself_again(night: Night) -> None:
    """Three failures stop the asking; later one attempt may run, and a good summary ends the matter. The first one
    is two requests: it might have been a blip."""
    codes = night.notes(30)
    server = FaultServer(NoteKeeper(), window=8_192)
    bad: list[int] = []

    def schedule(number: int) -> Fault | None:
        if server.requests[-1].body.get("tools") or len(bad) >= 4:
            return None
        bad.append(number)
        return Status(500)

    server.schedule = schedule
    with server:
        ran = night.run([server], note_task(30))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    states = [event["state"] for event in ran.of("breaker", cause="server")]
    assert states[:3] == ["closed", "closed", "open"]
    assert states[-1] == "closed", ran.story
    assert any(tier["tier"] == 0 and tier["ok"] for event in ran.of("compaction") for tier in event["tiers"])


@pytest.mark.parametrize("mode", ["drop_oldest", "halve", "cut"])
def test_a_summary_made_from_a_truncated_request_is_not_believed(night: Night, mode: Any) -> None:
    """The server is loaded anew with less between a turn and the summary: it reads only a part of the request."""
    codes = night.notes()
    brain = NoteKeeper()
    server = FaultServer(brain, window=8_192, claims=8_192, overflow=mode)

    def schedule(_: int) -> Fault | None:
        tools = server.requests[-1].body.get("tools")
        server.window = 8_192 if tools else 2_304
        return None

    server.schedule = schedule
    with server:
        ran = night.run([server])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("truncated"), ran.story
    assert ran.of("window.learned")[0]["value"] == 2_304, ran.story


def test_a_cheap_model_that_fails_rests_and_the_next_job_does_not_ask_it(night: Night) -> None:
    codes = night.notes(30)
    with (
        FaultServer(NoteKeeper(BAD["empty"]), window=8_192) as server,
        FaultServer(models=["cheap"], schedule=always(Status(401))) as cheap,
    ):
        night.providers = {"cheap": {"card": "openai-compatible", "base_url": cheap.v1}}
        jobs = [night.run([server], note_task(30), compaction={"summary_model": "cheap/cheap"}) for _ in range(2)]
        asked = len(cheap.chats)
    failed = [[event["class"] for event in ran.of("link.failed", link="cheap/cheap")] for ran in jobs]
    assert (asked, failed) == (1, [["auth"], []])
    for ran in jobs:
        assert ran.ending.name == "done", ran.story
        assert [code for code in codes if code not in ran.answer] == [], ran.story
    whys = [str(tier["why"]) for e in jobs[1].of("compaction") for tier in e["tiers"] if tier["tier"] == 3]
    assert any("out: auth" in why for why in whys), whys
