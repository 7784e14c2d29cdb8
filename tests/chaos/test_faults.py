"""Every fault there is, in whole jobs: the chain goes on, nothing half is kept, nothing runs twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.faults import (
    Close,
    CutReply,
    CutStream,
    EmptyChoices,
    EmptyStream,
    ErrorIn200,
    ErrorInStream,
    FakeUsage,
    Fault,
    Garbage200,
    HalfToolCall,
    Hang,
    Html200,
    KeepaliveForever,
    NoFinish,
    NullContent,
    ReasoningOnly,
    Schedule,
    Slow,
    Stall,
    Status,
    after,
    first,
    rate_limited,
)
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

STATUSES = (400, 401, 402, 403, 404, 408, 409, 410, 413, 422, 425, 429, 498, 500, 502, 503, 504, 524, 529)
FAULTS: dict[str, Fault] = {
    **{str(status): Status(status) for status in STATUSES},
    "429 with a time": rate_limited(3600),
    "500 page": Status(500, {"content-type": "text/html"}, "<html><title>500</title></html>"),
    "hang": Hang(),
    "close": Close(),
    "html": Html200(),
    "garbage": Garbage200(),
    "error in 200": ErrorIn200(),
    "empty stream": EmptyStream(),
    "empty choices": EmptyChoices(),
    "null content": NullContent(),
    "reasoning only": ReasoningOnly(),
    "half a call": HalfToolCall(),
    "cut reply": CutReply(5),
    "slow": Slow(2),
    "cut stream": CutStream(1),
    "no finish": NoFinish(),
    "keepalive": KeepaliveForever(1),
    "keepalive, empty pieces": KeepaliveForever(1, kind="empty"),
    "stall": Stall(1),
    "error in stream": ErrorInStream(1),
}


def test_all_kinds_of_faults_are_here() -> None:
    known = set(Fault.__args__)
    assert known - {type(fault) for fault in FAULTS.values()} == {FakeUsage}


def assert_whole(ran: Ran, codes: tuple[str, ...]) -> None:
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    started = [event["id"] for event in ran.of("tool.started")]
    assert len(started) == len(set(started)) == len(ran.of("tool.ended"))


@pytest.mark.parametrize("good", [0, 3])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_for_ever_hands_over_to_the_healthy_link(night: Night, name: str, good: int) -> None:
    codes = night.notes(5, words=60)
    with (
        FaultServer(NoteReader(), schedule=after(good, FAULTS[name])) as bad,
        FaultServer(NoteReader(), window=32_000) as calm,
    ):
        ran = night.run([bad, calm], TASK)
    print(
        name,
        good,
        len(bad.chats),
        round(ran.seconds, 2),
        round(ran.waited, 1),
        [(e["class"], e["retry_at"]) for e in ran.of("link.failed")],
    )
    assert_whole(ran, codes)


TASK = "Read notes/note-01.txt to notes/note-05.txt one after the other. One code is planted in each of them. Answer with every code, in the order of the notes."


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("name", FAULTS)
def test_lone(night: Night, name: str, count: int) -> None:
    codes = night.notes(5, words=60)
    with FaultServer(NoteReader(), schedule=first(count, FAULTS[name])) as bad:
        ran = night.run([bad], TASK)
    print(
        name,
        count,
        len(bad.chats),
        round(ran.seconds, 2),
        round(ran.waited, 1),
        ran.ending.name,
        ran.ending.message[:150],
        [(e["class"], e["retry_at"]) for e in ran.of("link.failed")],
    )
