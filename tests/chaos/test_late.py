"""A server that is slow to say what it holds: the job does not wait, and obeys as soon as it has said it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.faults import Slow, after
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


@pytest.mark.parametrize("hosted", [False, True])
def test_a_window_that_is_told_late_counts_from_the_next_turn_on(night: Night, hosted: bool) -> None:
    """Each question takes three seconds, a start waits two; the replies together take longer than an answer."""
    codes = night.notes(4)
    slow = after(1, Slow(2))
    with FaultServer(NoteReader(), window=24_576, list_fault=Slow(3), schedule=slow) as server:
        ran = night.run([{"server": server, "provider": {"self_hosted": not hosted}}], note_task(4))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    seen = [(event["window"], event["threshold"]) for event in ran.of("link.selected")]
    assert len(seen) == 2 and seen[0][0] != 24_576, ran.story
    assert seen[1] == (24_576, 12_288)
    before = ran.events.index(ran.of("link.selected")[1])
    assert [event["type"] for event in ran.events[before:]].count("request") >= 1, ran.story
