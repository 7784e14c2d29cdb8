"""A summary that forgets: what stands in the journal is with the model all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentx.testing.brain import Call, Said, asks_for_summary, text_of
from agentx.testing.counting import Json
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

TASK = "Mend the parser. Answer with FINISHED when it is done."


class Forgetful:
    """Works in steps that it counts itself, and sums them up without saying anything that is of use."""

    def __init__(self) -> None:
        self.steps: list[Call] = [
            Call("update_plan", {"items": [{"text": "write the grammar", "done": False}]}),
            Call("write_file", {"path": "src/lexer.py", "content": "tokens = 1\n"}),
            Call("shell", {"command": "echo broken rule; exit 3"}),
            *(Call("read_file", {"path": f"notes/note-{n:02}.txt"}) for n in range(1, 13)),
            Call("update_plan", {"items": [{"text": "write the grammar", "done": True}]}),
        ]
        self.shown: list[str] = []
        """What each turn after the first summary could see."""
        self.summarised = False

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            self.summarised = True
            return Said("Goal: mend the parser\nDone: some steps\nNext step: go on")
        if self.summarised:
            self.shown.append(text_of(messages))
        return Said(calls=(self.steps.pop(0),)) if self.steps else Said("FINISHED")


def test_task_plan_paths_and_errors_outlive_a_summary_that_tells_none_of_them(night: Night) -> None:
    night.notes()
    brain = Forgetful()
    with FaultServer(brain, window=8_192) as server:
        ran = night.run([server], TASK)
    assert ran.ending.name == "done", ran.story
    assert brain.shown, ran.story
    first = brain.shown[0]
    assert "Next step: go on" in first
    for fact in (TASK, "write the grammar", "src/lexer.py", "echo broken rule; exit 3", "exit code 3"):
        assert fact in first, f"{fact!r} is lost:\n{first}"
