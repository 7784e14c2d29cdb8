"""Every fault there is, in whole jobs: the chain goes on, nothing half is kept, nothing runs twice."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.faults import (
    Blanks,
    Close,
    CutReply,
    CutStream,
    Drip,
    EmptyChoices,
    EmptyStream,
    ErrorIn200,
    ErrorInStream,
    FakeUsage,
    Fault,
    Garbage200,
    HalfToolCall,
    Hang,
    HeadersThenHang,
    Html200,
    KeepaliveForever,
    NoDone,
    NoFinish,
    NullContent,
    ReasoningOnly,
    Reset,
    RetryOn,
    ShortBody,
    Slow,
    Stall,
    Status,
    after,
    always,
    at,
    rate_limited,
)
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

STATUSES = (400, 401, 402, 404, 408, 413, 429, 500, 503)
"""One of each kind; the table of statuses has its own tests."""
FAULTS: dict[str, Fault] = {
    **{str(status): Status(status) for status in STATUSES},
    "429 with a time": rate_limited(3600),
    "429 with a date": RetryOn(3600),
    "500 page": Status(500, {"content-type": "text/html"}, "<html><title>500</title></html>"),
    "hang": Hang(),
    "headers, then nothing": HeadersThenHang(),
    "close": Close(),
    "reset": Reset(),
    "short body": ShortBody(),
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
    "no `[DONE]`": NoDone(),
    "keepalive": KeepaliveForever(1),
    "keepalive, empty pieces": KeepaliveForever(1, kind="empty"),
    "blanks": Blanks(1),
    "drip": Drip(),
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


TASK = note_task(5)
ENDLESS = (Hang, HeadersThenHang, KeepaliveForever, Blanks, Drip, Stall)
HAMMERED = 4
"""More requests than this to a link that fails for ever, with a healthy one beside it, is hammering."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_for_ever_hands_over_to_the_healthy_link(night: Night, name: str) -> None:
    good = 2
    codes = night.notes(5, words=60)
    if isinstance(FAULTS[name], ENDLESS):
        night.patience = 2
    with (
        FaultServer(NoteReader(), schedule=after(good, FAULTS[name])) as bad,
        FaultServer(NoteReader(), window=32_000) as calm,
    ):
        ran = night.run([bad, calm], TASK)
    assert_whole(ran, codes)
    if name not in ("slow", "no `[DONE]`", "cut reply"):  # these answer, the last is asked to go on
        assert len(bad.chats) - good <= HAMMERED, ran.story


ONE_OF_EACH = ("400", "401", "429", "reset", "short body", "half a call", "cut reply", "cut stream", "blanks")


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("place", [2, 3])
def test_it_does_so_also_when_the_failing_link_stands_second_or_third(night: Night, name: str, place: int) -> None:
    """Before it are links that are out of reach for the whole night."""
    good = 2
    codes = night.notes(5, words=60)
    if isinstance(FAULTS[name], ENDLESS):
        night.patience = 2
    with ExitStack() as stack:
        busy = always(rate_limited(100_000))
        before = [stack.enter_context(FaultServer(NoteReader(), schedule=busy)) for _ in range(place - 1)]
        bad = stack.enter_context(FaultServer(NoteReader(), schedule=after(good, FAULTS[name])))
        calm = stack.enter_context(FaultServer(NoteReader(), window=32_000))
        ran = night.run([*before, bad, calm], TASK)
    assert_whole(ran, codes)
    assert [len(server.chats) for server in before] == [1] * (place - 1), ran.story
    if name != "cut reply":  # which is asked to go on
        assert good < len(bad.chats) <= good + HAMMERED, ran.story


TRANSIENT = (
    "408",
    "429",
    "500",
    "503",
    "close",
    "html",
    "null content",
    "half a call",
    "cut stream",
)


@pytest.mark.parametrize("name", TRANSIENT)
def test_a_lone_link_is_waited_for_until_it_is_well(night: Night, name: str) -> None:
    codes = night.notes(5, words=60)
    with FaultServer(NoteReader(), schedule=at({3: FAULTS[name], 4: FAULTS[name]})) as lone:
        ran = night.run([lone], TASK)
    assert_whole(ran, codes)
