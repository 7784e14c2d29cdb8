"""When a view is checked: after results, before each request, after a switch, a learned window and a resume."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.faults import Status, after
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran


def kinds(ran: Ran) -> list[str]:
    """What happened, in order: requests of turns, compactions, results, and what changes a budget."""
    wanted = ("request", "compaction", "tool.ended", "link.selected", "window.learned", "job.resumed")
    return [
        event["type"] for event in ran.events if event["type"] in wanted and event.get("purpose", "turn") == "turn"
    ]


def sent(server: FaultServer, *, status: int = 200) -> list[Sequence[Mapping[str, Any]]]:
    """The messages of each chat with tools that was answered with *status*."""
    return [seen.body["messages"] for seen in server.chats if seen.status == status and seen.body.get("tools")]


def test_inside_a_long_turn_results_are_followed_by_a_check_before_the_next_request(night: Night) -> None:
    """The user speaks once; all compactions stand between a result and the request that would carry it."""
    codes = night.notes(14, words=400)
    with FaultServer(NoteReader(), window=8_192) as server:
        ran = night.run([server], note_task(14))
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    order = kinds(ran)
    places = [place for place, kind in enumerate(order) if kind == "compaction"]
    assert places
    assert {(order[place - 1], order[place + 1]) for place in places} == {("tool.ended", "request")}
    assert max(seen.prompt_tokens or 0 for seen in server.chats) <= 8_192 - 2_048
    assert ran.of("link.failed") == []


def test_after_a_switch_the_first_request_to_a_smaller_window_fits_it(night: Night) -> None:
    night.notes(12, words=400)
    gone = after(9, Status(503, {"retry-after": "90000"}))
    with FaultServer(NoteReader(), window=200_000, schedule=gone) as large, FaultServer(NoteReader()) as small:
        small.window = 4_096
        ran = night.run([large, small])
    assert ran.ending.name == "done", ran.story
    assert all(seen.status == 200 for seen in small.chats), ran.story
    order = kinds(ran)
    switched = len(order) - order[::-1].index("link.selected")
    assert order[switched : switched + 2] == ["compaction", "request"]


def test_after_a_learned_window_the_same_link_gets_a_smaller_view(night: Night) -> None:
    """What was refused is never sent again at its size, and the words of the refusal reach no model."""
    codes = night.notes()
    with FaultServer(NoteReader(), claims=131_072, window=4_096) as server:
        ran = night.run([server, {"server": server, "name": "second"}])
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("link.switched") == []
    refused = [number for number, seen in enumerate(server.chats) if seen.status == 400]
    assert refused
    for number in refused:
        tried, again = (len(json.dumps(server.chats[n].body["messages"])) for n in (number, number + 1))
        assert again < tried
    order = kinds(ran)
    assert order[order.index("window.learned") + 1 :][:3] == ["link.selected", "compaction", "request"]
    said = json.dumps([seen.body for seen in server.chats])
    assert "maximum context length" not in said and "context_length_exceeded" not in said


def test_a_fixed_output_budget_gives_way_where_prompt_and_reply_share_a_window(night: Night) -> None:
    codes = night.notes()
    with FaultServer(NoteReader(), claims=131_072, window=8_192, overflow="refuse_total") as server:
        ran = night.run([{"server": server, "max_tokens": 6_000}])
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    sizes = [(seen.prompt_tokens or 0) + seen.body["max_tokens"] for seen in server.chats if seen.status == 200]
    assert max(sizes) <= 8_192
    assert len([seen for seen in server.chats if seen.status == 400]) <= 2


def test_after_a_resume_with_another_window_the_first_request_fits_it(night: Night) -> None:
    night.notes(12, words=400)
    with FaultServer(NoteReader(), window=200_000) as server:
        first = night.run([server], limits={"turns": 9})
        before = len(server.chats)
        again = night.run([{"server": server, "window": 4_096}], job=first.job)
    assert first.ending.name == "limit_reached"
    assert again.ending.name == "done", again.story
    assert [kind for kind in kinds(again) if kind != "job.resumed"][:3] == [
        "link.selected",
        "compaction",
        "request",
    ]
    assert max(seen.prompt_tokens or 0 for seen in server.chats[before:] if seen.body.get("tools")) <= 4_096


@pytest.mark.parametrize("card", ["openai-compatible", "llamacpp"])
def test_a_short_task_pays_nothing(night: Night, card: str) -> None:
    """No summary, no probe, no count: one request a turn, each beginning with the very words of the one before."""
    night.notes(3, words=120)
    face: Any = "openai" if card == "openai-compatible" else card
    with FaultServer(NoteReader(), face=face, window=32_768) as server:
        ran = night.run([{"server": server, "card": card}], note_task(3))
    assert ran.ending.name == "done", ran.story
    assert (len(ran.of("request")), len(server.chats)) == (4, 4), ran.story
    assert (ran.of("compaction"), ran.of("truncated"), ran.of("breaker")) == ([], [], [])
    assert not [seen for seen in server.requests if "token" in seen.path], "a counter was asked"
    bodies = sent(server)
    for before, now in pairwise(bodies):
        assert now[: len(before)] == before
