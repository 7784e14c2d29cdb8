"""Servers that refuse what is too long without a word (Cerebras, Mistral): whole jobs over a real socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task, twelve_notes
from agentx.testing.counting import count_prompt, normal
from agentx.testing.faults import Fault, Status, always
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night
    from tests.conftest import Home

WORDLESS = [Status(400, body=""), Status(413, body=""), Status(400, body="{}")]


def silent_above(server: FaultServer, holds: int, fault: Status) -> Callable[[int], Fault | None]:
    """Refuses every chat request of more than *holds* tokens with *fault*."""

    def schedule(_number: int) -> Fault | None:
        body = server.requests[-1].body
        return fault if count_prompt(normal(body["messages"]), body.get("tools") or []) > holds else None

    return schedule


@pytest.mark.parametrize("fault", WORDLESS, ids=str)
def test_a_lone_link_that_refuses_without_a_word_what_is_large_gets_less_and_no_note_is_lost(
    night: Night, fault: Status
) -> None:
    codes = night.notes()
    with FaultServer(NoteReader(), window=16_384) as server:
        server.schedule = silent_above(server, 5_000, fault)
        ran = night.run([server])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    failed = ran.of("link.failed", purpose="turn")
    assert failed and {event["class"] for event in failed} == {"overflow"}, ran.story
    first = ran.of("window.learned")[0]
    assert first["value"] < first["was"] == 16_384
    assert f"answered {fault.status} without a word" in first["evidence"]


def test_the_guess_is_shown_as_one_and_never_as_proven(home: Home) -> None:
    """At the command line: the job goes on, and `windows` says what is supposed, why, and for how long."""
    twelve_notes(home.workspace)
    with FaultServer(NoteReader(), window=16_384) as server:
        server.schedule = silent_above(server, 5_000, WORDLESS[0])
        home.configure(
            {
                "chains": {"night": [{"model": "box/scripted"}]},
                "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
            }
        )
        done = home.run("run", "--json", note_task())
        (row,) = home.run("windows", "--json").json["links"]
    assert done.code == 0, done.err
    assert next(event["class"] for event in done.of("link.failed")) == "overflow"
    assert (row["source"], row["confidence"]) == ("learned", "assumed")
    assert row["window"] < 16_384 and "without a word" in row["detail"]
    assert any("are a guess" in text and "tried again" in text for text in row["warnings"])


@pytest.mark.parametrize(
    ("fault", "found"), [(WORDLESS[0], "bad_request"), (WORDLESS[1], "too_many_bytes")], ids=str
)
def test_what_is_small_and_refused_without_a_word_is_no_overflow(night: Night, fault: Status, found: str) -> None:
    with FaultServer(window=131_072, schedule=always(fault)) as bad, FaultServer(NoteReader()) as good:
        ran = night.run([bad, good], "say something")
    assert [event["class"] for event in ran.of("link.failed")] == [found], ran.story
    assert (len(bad.chats), ran.of("window.learned")) == (1, [])


def test_a_link_that_refuses_without_a_word_what_it_held_before_is_left(night: Night) -> None:
    """It held 3,600 tokens and refuses 1,400 now: it is not the size, and the next link goes on."""
    codes = night.notes()

    def turns_silent(number: int) -> Fault | None:
        return WORDLESS[0] if number > 8 else None

    with FaultServer(NoteReader(), window=12_288, schedule=turns_silent) as bad, FaultServer(NoteReader()) as good:
        ran = night.run([bad, good])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    refused = [event["class"] for event in ran.of("link.failed", link="s1/scripted", purpose="turn")]
    assert refused == ["overflow", "overflow"], ran.story
