"""Images that are more than a server takes: the oldest go, the work goes on, and nothing is taken for a cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import Call, Script
from agentx.testing.faults import Fault, Status
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

PNG = b"\x89PNG\r\n\x1a\n"
TOO_LARGE = {
    "error": {"type": "request_too_large", "message": "Request exceeds the maximum allowed number of bytes."}
}


def at_most(server: FaultServer, most_bytes: int, refusal: Status) -> Callable[[int], Fault | None]:
    return lambda _: refusal if len(json.dumps(server.requests[-1].body)) > most_bytes else None


def pictures(night: Night, count: int, size: int) -> list[Call | str]:
    for n in range(count):
        (night.workspace / f"{n:02}.png").write_bytes(PNG + bytes([n]) * size)
    return [Call("read_file", {"path": f"{n:02}.png"}) for n in range(count)]


@pytest.mark.parametrize("refusal", [Status(413, body=TOO_LARGE), Status(413, body="")], ids=["words", "none"])
def test_of_more_images_than_a_server_takes_the_oldest_go(night: Night, refusal: Status) -> None:
    calls = pictures(night, 20, 30_000)
    server = FaultServer(Script([*calls, "all are seen"]), window=200_000)
    server.schedule = at_most(server, 300_000, refusal)
    with server:
        ran = night.run([server], "look at all")
    assert (ran.ending.name, ran.answer) == ("done", "all are seen"), ran.story
    assert 1 <= len(ran.of("link.failed", **{"class": "too_many_bytes"})) <= 2, ran.story
    assert len(ran.of("link.failed")) <= 2
    assert ran.of("window.learned") + ran.of("truncated") + ran.of("compaction") == [], ran.story
    last = json.dumps(server.chats[-1].body)
    assert last.count("[image left out]") >= 12
    assert last.count("data:image/png") >= 4


def test_a_single_image_that_is_too_much_becomes_a_line_of_text(night: Night) -> None:
    calls = pictures(night, 1, 90_000)
    server = FaultServer(Script([*calls, "seen"]), window=200_000)
    server.schedule = at_most(server, 60_000, Status(413, body=TOO_LARGE))
    with server:
        ran = night.run([server], "look at it")
    assert (ran.ending.name, ran.answer, len(ran.of("link.failed"))) == ("done", "seen", 1), ran.story


def test_where_text_is_too_much_images_stay_and_the_next_link_is_asked(night: Night) -> None:
    calls = pictures(night, 1, 3_000)
    (night.workspace / "AGENTS.md").write_text("Be careful with all of the files.\n" * 900)
    server, other = FaultServer(Script(calls), window=200_000), FaultServer(Script(["seen"]), window=200_000)

    def schedule(number: int) -> Fault | None:
        return Status(413, body=TOO_LARGE) if number == 2 else None

    server.schedule = schedule
    with server, other:
        ran = night.run([server, other], "look at it")
    assert (ran.ending.name, ran.answer) == ("done", "seen"), ran.story
    assert "data:image/png" in json.dumps(other.chats[0].body)
