"""Whole jobs that learn a window: downwards from refusals, upwards from what was read, nothing from the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Script
from agentx.testing.conversations import note_task
from agentx.testing.faults import FakeUsage, Status, at
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


JOINT = (
    "This model's maximum context length is 8192 tokens. However, you requested 9792 tokens "
    "(1600 in the messages, 8192 in the completion)."
)


def windows(ran: Any) -> list[tuple[int, str]]:
    return [(event["window"], event["window_source"]) for event in ran.of("link.selected")]


def test_a_prompt_that_was_read_raises_an_assumed_window_and_the_next_job_knows_it(night: Night) -> None:
    """Nobody says how much it holds, 4,096 are assumed; a text of many tokens turns out to be more than that."""
    night.notes(1, words=500)
    script = Script([Call("read_file", {"path": "notes/note-01.txt"}), "read", "known"])
    counts = at({2: FakeUsage(4_400)})
    with FaultServer(script, claims="absent", window=32_768, schedule=counts) as server:
        first = night.run([server], "read the note" + " and tell" * 200)
        second = night.run([server], "say something")
    assert first.ending.name == second.ending.name == "done", first.story
    assert windows(first)[0] == (4_096, "assumed")
    assert first.of("window.learned"), first.story
    (learned,) = first.of("window.learned")
    assert (learned["was"], learned["value"]) == (4_096, 4_400)
    assert learned["evidence"] == "a prompt of 4,400 tokens fitted"
    assert windows(second)[0] == (4_400, "learned")
    kept = json.loads(night.paths.windows.read_text())["links"]
    assert [entry["held"]["tokens"] for entry in kept.values()] == [4_400]


def test_a_count_far_above_the_request_raises_nothing(night: Night) -> None:
    with FaultServer(Script(["done"]), claims="absent", schedule=at({1: FakeUsage(900_000)})) as server:
        ran = night.run([server], "say something")
    assert ran.ending.name == "done", ran.story
    assert ran.of("window.learned") == []


@pytest.mark.parametrize(
    ("counted", "at_request", "window"),
    [(900_000, 2, 32_768), (900_000, 1, 32_768), (10**11, 3, 32_768), (9_000, 1, 8_192), (9_000, 3, 16_384)],
)
def test_a_count_that_cannot_be_true_is_not_believed_and_said_once(
    night: Night, counted: int, at_request: int, window: int
) -> None:
    """No token is shorter than a byte. It neither ends the job nor calibrates: the view stays whole."""
    codes = night.notes(6)
    wrong = {at_request: FakeUsage(counted), at_request + 1: FakeUsage(counted)}
    with FaultServer(NoteReader(), window=window, schedule=at(wrong)) as server:
        ran = night.run([server], note_task(6))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert (ran.of("compaction"), ran.of("window.learned"), ran.of("truncated")) == ([], [], []), ran.story
    (said,) = [event for event in ran.of("warning") if "prompt tokens" in event["message"]]
    assert f"s1/scripted: reported {counted:,} prompt tokens for" in said["message"]
    turns = [event["usage"] for event in ran.of("reply", purpose="turn")]
    assert None in turns and counted not in [usage["input"] for usage in turns if usage], ran.story


def test_one_wrong_count_that_could_be_true_does_not_make_the_next_one_a_truncation(night: Night) -> None:
    """The first reply says three times too much, as a provider with a long prompt of its own would; the others
    are right, and less is no cut where it is all that was sent."""
    codes = night.notes(6)
    with FaultServer(NoteReader(), window=32_768, schedule=at({1: FakeUsage(9_000)})) as server:
        ran = night.run([server], note_task(6))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert (ran.of("window.learned"), ran.of("truncated")) == ([], []), ran.story


def test_a_refusal_lowers_the_window_at_once_and_every_later_request_obeys(night: Night) -> None:
    night.notes()
    with FaultServer(NoteReader(), claims=131_072, window=4_096) as server:
        ran = night.run([server])
        again = night.run([server])
    assert ran.ending.name == again.ending.name == "done", ran.story
    refused = [number for number, seen in enumerate(server.chats) if seen.status == 400]
    assert refused and all(later.status == 200 for later in server.chats[refused[-1] + 1 :])
    assert windows(again)[0] == (4_096, "learned"), "another process need not be refused to know"


@pytest.mark.parametrize(
    "fault",
    [
        Status(429, body={"error": {"message": "You exceeded your quota of 2000 tokens per minute."}}),
        Status(413, body={"error": {"message": "Request exceeds the maximum size of 4000 bytes."}}),
        Status(400, body={"error": {"message": "max_tokens is too large: 9000. At most 1024 completion tokens."}}),
        Status(400, body={"error": {"message": JOINT, "code": "context_length_exceeded"}}),
        Status(503, body={"error": {"message": "The model is overloaded."}}),
    ],
    ids=["quota", "bytes", "output", "joint", "overloaded"],
)
def test_what_is_not_about_the_window_teaches_nothing_about_it(night: Night, fault: Status) -> None:
    night.notes(3)
    with FaultServer(NoteReader(), window=32_768, schedule=at({2: fault})) as server:
        ran = night.run([server, {"server": server, "name": "second"}], task=None)
    assert ran.of("link.failed"), ran.story
    assert ran.of("window.learned") == [], ran.story
    assert {window for window, _ in windows(ran)} == {32_768}


def test_a_server_that_loads_the_model_anew_with_another_size_is_followed(night: Night) -> None:
    """Smaller in the middle of the job, then larger again: the very next turn has the other window."""
    codes = night.notes()
    sizes = {4: 8_192, 8: 24_576}
    with FaultServer(NoteReader(), face="llamacpp", window=16_384) as server:
        reader = server.brain

        def changing(messages: Any, tools: Any) -> Any:
            server.window = sizes.get(len(server.chats), server.window)
            night.clock.skipped += 15  # what a turn takes; a server is asked every ten seconds at most
            return reader(messages, tools)

        server.brain = changing
        ran = night.run([{"server": server, "card": "llamacpp"}])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    seen = list(dict.fromkeys(windows(ran)))
    assert seen == [(16_384, "served"), (8_192, "served"), (24_576, "served")], ran.story
