"""The fixed conversation of 27 messages on servers that keep 4,096 tokens, say otherwise, and cut in silence."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from agentx.events import JobStarted, Replied, UserMessage
from agentx.jobs.store import Job, Order, Store
from agentx.testing.brain import KeyKeeper
from agentx.testing.conversations import PERSONAL_KEY, SYSTEM_KEY, conversation27, sentences
from agentx.testing.server import FaultServer
from agentx.wires.messages import Message

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

WINDOW = 4_096
SYSTEM, *SPOKEN = [str(message["content"]) for message in conversation27()]
TASK, QUESTION = SPOKEN[0], SPOKEN[-1]
NOTES = SPOKEN[1:-1:2]

SERVERS: list[tuple[Any, str, Any, Any]] = [
    # face, card, what it does with too much, what it claims
    ("openai", "openai-compatible", "drop_oldest", "absent"),
    ("openai", "openai-compatible", "drop_oldest", 131_072),
    ("ollama", "ollama", "drop_oldest", 131_072),
    ("ollama", "openai-compatible", "drop_oldest", 131_072),
    ("ollama", "ollama", "halve", 131_072),
    ("ollama", "openai-compatible", "halve", 131_072),
    ("openai", "openai-compatible", "cut", 131_072),
]


def server_of(face: Any, overflow: Any, claims: Any) -> FaultServer:
    return FaultServer(
        KeyKeeper(), face=face, overflow=overflow, claims=claims, window=WINDOW, honours_num_ctx=False, loaded=True
    )


def told_before(night: Night) -> Job:
    """A job in which all but the question was said on another server, so that the next request has all of it."""
    job = Store(night.paths.jobs).create(Order(task=TASK, workspace=str(night.workspace)))
    journal = job.journal()
    started = JobStarted(task=TASK, chain=["s1/scripted"], workspace=str(night.workspace), limits={}, version="0")
    journal.append(started, {"message": Message(role="user", text=TASK).to_json()})
    for note in NOTES:
        journal.append(UserMessage(text=note), {"message": Message(role="user", text=note).to_json()})
        reply = Replied(link="s1/scripted", model="scripted", finish="stop", usage=None, seconds=0.1)
        journal.append(reply, {"message": Message(role="assistant", text="Understood.").to_json()})
    journal.close()
    return job


def check(ran: Ran, claims: Any) -> None:
    """Both keys, from a request that was not cut; where the server lied, the cut was noticed and taught it."""
    assert ran.ending.name == "done", ran.story
    assert SYSTEM_KEY in ran.answer and PERSONAL_KEY in ran.answer, ran.story
    events = [event for event in ran.events if event["type"] == "reply" and event["purpose"] == "turn"]
    assert events[-1]["usage"]["input"] <= WINDOW
    if claims != "absent":
        assert ran.of("truncated"), ran.story
        assert 0.85 * WINDOW <= ran.of("window.learned")[-1]["value"] <= 1.05 * WINDOW, ran.story


@pytest.mark.parametrize(("face", "card", "overflow", "claims"), SERVERS)
def test_sent_as_a_first_request_it_is_found_cut_and_the_answer_has_both_keys(
    night: Night, face: Any, card: str, overflow: Any, claims: Any
) -> None:
    (night.workspace / "AGENTS.md").write_text(SYSTEM)
    with server_of(face, overflow, claims) as server:
        ran = night.run([{"server": server, "card": card}], job=told_before(night), said=QUESTION)
    check(ran, claims)


@pytest.mark.parametrize("overflow", ["drop_oldest", "cut"])
def test_with_a_long_system_prompt_too(night: Night, overflow: Any) -> None:
    (night.workspace / "AGENTS.md").write_text(f"{SYSTEM}\n{sentences(random.Random(3), 5_000)}")
    with server_of("ollama", overflow, 131_072) as server:
        ran = night.run([{"server": server, "card": "ollama"}], job=told_before(night), said=QUESTION)
    check(ran, 131_072)


@pytest.mark.parametrize(("face", "card", "overflow", "claims"), [SERVERS[1], SERVERS[2], SERVERS[5]])
def test_grown_turn_by_turn_the_cut_is_found_when_it_begins(
    night: Night, face: Any, card: str, overflow: Any, claims: Any
) -> None:
    (night.workspace / "AGENTS.md").write_text(SYSTEM)
    with server_of(face, overflow, claims) as server:
        link = {"server": server, "card": card}
        runs = [night.run([link], TASK)]
        for said in [*NOTES, QUESTION]:
            runs.append(night.run([link], job=runs[0].job, said=said))
    assert {ran.ending.name for ran in runs} == {"done"}
    assert SYSTEM_KEY in runs[-1].answer and PERSONAL_KEY in runs[-1].answer, runs[-1].story
    learned = [event["value"] for ran in runs for event in ran.of("window.learned")]
    assert learned and 0.85 * WINDOW <= learned[-1] <= 1.05 * WINDOW, learned
    assert [ran.of("truncated") for ran in runs if ran.of("truncated")], "nobody noticed"
