"""When to come back: every form of it, whole chains at rest, and a clock that nobody has to sit through."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader, Said, Script
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json
from agentx.testing.faults import Close, Status, at, first
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


def error(message: str = "Rate limit reached", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "requests", "code": "rate_limit_exceeded", **more}}


def in_90_s() -> float:
    return time.time() + 90


FORMS: dict[str, tuple[Mapping[str, str], Mapping[str, Any] | str]] = {
    "seconds": ({"retry-after": "90"}, error()),
    "fraction": ({"retry-after": "90.5"}, error()),
    "milliseconds": ({"retry-after-ms": "90000"}, error()),
    "milliseconds win": ({"retry-after-ms": "90000", "retry-after": "3000"}, error()),
    "azure": ({"x-ms-retry-after-ms": "90000"}, error()),
    "go duration": ({"x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-requests": "0"}, error()),
    "sentence": ({}, error("Rate limit reached. Please try again in 1m30s.")),
    "sentence in ms": ({}, error("Rate limit reached. Please try again in 90000ms.")),
    "retry info": ({}, {"error": {"code": 429, "details": [{"retryDelay": "90s"}]}}),
    "field": ({}, error(retry_after=90)),
    "plain text": ({}, "too many requests, wait 90 seconds"),
    "zero is none": ({"retry-after": "0"}, error("Please try again in 90 seconds")),
    "nonsense is none": ({"retry-after": "soon"}, error("Please try again in 90 seconds")),
    "negative is none": ({"retry-after": "-5"}, error("Please try again in 90 seconds")),
}
MOMENTS: Mapping[str, Callable[[float], tuple[dict[str, str], dict[str, Any]]]] = {
    "http date": lambda at: (
        {"retry-after": format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)},
        error(),
    ),
    "epoch": lambda at: ({"x-ratelimit-reset": str(int(at))}, error()),
    "epoch in ms": lambda at: ({"x-ratelimit-reset": str(int(at * 1000))}, error()),
    "iso": lambda at: (
        {"anthropic-ratelimit-requests-reset": datetime.fromtimestamp(at, UTC).isoformat()},
        error(),
    ),
    "resets_at": lambda at: ({}, error(resets_at=int(at))),
}


@pytest.mark.parametrize("form", [*FORMS, *MOMENTS])
def test_a_lone_link_is_asked_again_when_it_said(night: Night, form: str) -> None:
    headers, body = FORMS[form] if form in FORMS else MOMENTS[form](in_90_s())
    with FaultServer(Script(["done"]), schedule=first(1, Status(429, headers, body))) as server:
        ran = night.run([server], "go")
    assert (ran.ending.name, len(server.chats)) == ("done", 2), ran.story
    assert 86 <= ran.waited <= 101, ran.story  # 90 s, at most a tenth later
    assert ran.of("link.failed")[0]["class"] == "rate_limit"
    assert ran.of("waiting")


def test_when_all_rest_the_first_that_is_back_serves(night: Night) -> None:
    """Three links refuse with different times: nobody is asked early, and the soonest answers."""

    def busy(seconds: int) -> FaultServer:
        return FaultServer(Script(["done"] * 9), schedule=first(1, Status(429, {"retry-after": str(seconds)})))

    with busy(4_000) as one, busy(700) as two, busy(2_000) as three:
        ran = night.run([one, two, three], "go")
    assert [len(server.chats) for server in (one, two, three)] == [1, 2, 1], ran.story
    assert (ran.ending.name, ran.of("reply")[0]["link"]) == ("done", "s2/scripted")
    assert 700 <= ran.waited <= 740
    assert ran.seconds < 10


def test_a_wait_is_as_long_as_the_job_may_last(night: Night) -> None:
    """A limit that resets in seven hours is waited for by a job that has eight."""
    with FaultServer(Script(["done"]), schedule=first(1, Status(429, {"retry-after": "25200"}))) as server:
        ran = night.run([server], "go", limits={"hours": 8})
    assert (ran.ending.name, len(server.chats)) == ("done", 2), ran.story
    assert 25_200 <= ran.waited <= 25_230


def test_without_a_limit_of_hours_a_wait_may_take_a_week(night: Night) -> None:
    with FaultServer(Script(["done"]), schedule=first(1, Status(429, {"retry-after": "604800"}))) as server:
        ran = night.run([server], "go", limits={"hours": None})
    assert (ran.ending.name, len(server.chats)) == ("done", 2), ran.story


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"max_wait": 1}, "60 minutes may be waited"), ({"on_exhausted": "fail"}, "nothing may be waited")],
    ids=str,
)
def test_who_does_not_want_to_wait_says_so(night: Night, settings: Any, said: str) -> None:
    with FaultServer(Script(["done"]), schedule=first(1, Status(429, {"retry-after": "7200"}))) as server:
        ran = night.run([server], "go", **settings)
    assert (ran.ending.name, ran.waited, len(server.chats)) == ("chain_exhausted", 0, 1), ran.story
    assert said in ran.ending.message


def test_a_link_that_comes_back_is_preferred_again(night: Night) -> None:
    night.notes(words=60)
    reader = NoteReader()

    def slow_reader(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        night.clock.skipped += 10  # a turn takes ten seconds
        return reader(messages, tools)

    schedule = first(1, Status(429, {"retry-after": "30"}))
    with FaultServer(slow_reader, schedule=schedule) as one, FaultServer(slow_reader) as two:
        ran = night.run([one, two])
    served = [event["link"] for event in ran.of("reply")]
    assert served[:3] == ["s2/scripted"] * 3, ran.story
    assert set(served[4:]) == {"s1/scripted"}, ran.story


def test_when_all_connections_break_for_a_while_the_job_goes_on_after(night: Night) -> None:
    codes = night.notes(5, words=60)
    gone = at({n: Close() for n in range(3, 7)})
    with FaultServer(NoteReader(), schedule=gone) as one, FaultServer(NoteReader(), schedule=gone) as two:
        ran = night.run([one, two], note_task(5))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert len(one.chats) + len(two.chats) <= 6 + 8
