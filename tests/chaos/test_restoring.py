"""What a model was shown and no longer sees it can have again: by an id that it sees, whole, in pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, Said, asks_for_summary
from agentx.testing.counting import Json
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

GOES_ON = re.compile(r"go on with offset (\d+)\]$")
LEFT_OUT = re.compile(r"restore_tool_result.*?id [`\"](\w+)[`\"]")
KEY = re.compile(r"KEY-\d{4}")


class PageReader:
    """Prints a long file, then asks for it page by page until it has seen the key in its middle."""

    def __init__(self, first: Call) -> None:
        self.first = first
        self.pages = ""

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            return Said("Goal: find the key.")
        last = messages[-1]
        if last["role"] != "tool":
            return Said(calls=(self.first,))
        if found := GOES_ON.search(last["content"]):
            self.pages += last["content"][: last["content"].rindex("\n[characters")]
            return self.restore(messages, int(found[1]))
        if LEFT_OUT.search(last["content"]):
            return self.restore(messages, 0)
        self.pages += last["content"]
        return Said(" ".join(KEY.findall(self.pages)))

    def restore(self, messages: Sequence[Json], offset: int) -> Said:
        calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
        before = re.search(r'"id": "(\w+)"', calls[-1]["arguments"])
        named = LEFT_OUT.search(messages[-1]["content"]) if before is None else before
        assert named is not None
        return Said(calls=(Call("restore_tool_result", {"id": named[1], "offset": offset}),))


@pytest.mark.parametrize(
    ("tool", "window", "count"), [("shell", 2_304, 120), ("read_file", 8_192, 120), ("shell", 200_000, 400)]
)
def test_a_restored_text_comes_whole_in_pages_its_middle_too(
    night: Night, tool: str, window: int, count: int
) -> None:
    lines = [f"{n:05} " + "täglich αβγ {[()]}; " * min(12, window // 2_000) for n in range(count)]
    lines[count // 2] = "KEY-4711"
    (night.workspace / "long.txt").write_text("\n".join(lines))
    first: dict[str, Any] = {"path": "long.txt"} if tool == "read_file" else {"command": "cat long.txt"}
    brain = PageReader(Call(tool, first))
    with FaultServer(brain, window=window) as server:
        ran = night.run([server], "find the key")
    assert (ran.ending.name, ran.answer) == ("done", "KEY-4711"), ran.story
    ended = ran.of("tool.ended")
    assert [event["clipped"] for event in ended] == [True] + [False] * (len(ended) - 1)
    shown = re.sub(r"(?m)^\d+\t|^\[exit code 0.*\n", "", brain.pages)
    assert shown == "\n".join(lines)
