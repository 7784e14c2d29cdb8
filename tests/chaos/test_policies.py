"""Each policy in a whole job over a real socket: it crosses its threshold, loses nothing, and ends as done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

OWN = {"mine": {"like": "keep-recent", "fraction": 0.6, "steps": ["summary"]}}
SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {
    "half-window": (12, {"policy": "half-window"}),
    "keep-recent": (24, {"policy": "keep-recent"}),
    "keep-recent, beside the work": (24, {"policy": "keep-recent", "background": True}),
    "notes": (12, {"policy": "notes"}),
    "one's own": (24, {"policy": "mine", "policies": OWN}),
}
"""How many notes, and the settings of compaction."""


def ran_with(night: Night, number: int, compaction: dict[str, Any]) -> Ran:
    """So many notes in a window of 8,192; the task is in every request to the end."""
    codes = night.notes(number)
    with FaultServer(NoteReader(), window=8_192) as server:
        ran = night.run([server], note_task(number), compaction=compaction)
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    task = str(ran.of("job.started")[0]["task"])
    turns = [json.dumps(chat.body["messages"]) for chat in server.chats if chat.body.get("tools")]
    assert all(json.dumps(task)[1:-1] in turn for turn in turns)
    return ran


@pytest.mark.parametrize("name", SETTINGS)
def test_a_job_crosses_the_threshold_of_each_policy_and_ends_as_done(night: Night, name: str) -> None:
    number, compaction = SETTINGS[name]
    ran = ran_with(night, number, compaction)
    made = ran.of("compaction")
    assert made and {event["policy"] for event in made} == {compaction["policy"]}, ran.story
    assert any(event["effective"] for event in made), ran.story
