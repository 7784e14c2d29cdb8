"""Each policy in a whole job over a real socket: it crosses its threshold, loses nothing, and ends as done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

OWN = {"policies": {"mine": {"like": "keep-recent", "fraction": 0.6, "steps": ["markers", "summary"]}}}
SETTINGS: dict[str, dict[str, Any]] = {
    "half-window": {},
    "three-steps": {},
    "keep-recent": {},
    "keep-recent, beside the work": {"policy": "keep-recent", "background": True},
    "notes": {},
    "mine": OWN,
}


def ran_with(night: Night, compaction: dict[str, Any]) -> Ran:
    """Twelve notes in a window of 8,192; the task is in every request to the end."""
    codes = night.notes()
    with FaultServer(NoteReader(), window=8_192) as server:
        ran = night.run([server], compaction=compaction)
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    task = str(ran.of("job.started")[0]["task"])
    turns = [json.dumps(chat.body["messages"]) for chat in server.chats if chat.body.get("tools")]
    assert all(json.dumps(task)[1:-1] in turn for turn in turns)
    return ran


@pytest.mark.parametrize("name", SETTINGS)
def test_a_job_crosses_the_threshold_of_each_policy_and_ends_as_done(night: Night, name: str) -> None:
    ran = ran_with(night, {"policy": name} | SETTINGS[name])
    made = ran.of("compaction")
    assert made and all(event["policy"] == SETTINGS[name].get("policy", name) for event in made), ran.story
    assert any(event["effective"] for event in made), ran.story
