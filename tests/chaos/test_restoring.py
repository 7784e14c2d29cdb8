"""What a model was shown and no longer sees it can have again: by an id that it sees, whole, in pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, Said, asks_for_summary, text_of
from agentx.testing.counting import Json
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

GOES_ON = re.compile(r"go on with offset (\d+)\]$")
LEFT_OUT = re.compile(r"restore_tool_result.*?id [`\"](\w+)[`\"]")
CODE = re.compile(r"\bN\d\d-[A-Z]{2}\d{4}\b")
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


class Archivist:
    """Reads every note once, and never again; its summaries say nothing. Asked for the codes, it has each result
    that it does not see brought back, by the id that it finds."""

    def __init__(self, count: int) -> None:
        self.names = [f"notes/note-{n:02}.txt" for n in range(1, count + 1)]
        self.read: list[str] = []
        self.codes: set[str] = set()
        self.listed = False

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            return Said("Goal: read all notes.")
        if self.read and len(self.read) < len(self.names) and messages[-1]["role"] == "user":
            return Said("This is a probe of the window, no turn.")
        if len(self.read) < len(self.names):
            self.read.append(self.names[len(self.read)])
            return Said(calls=(Call("read_file", {"path": self.read[-1]}),))
        text = text_of(messages)
        if "Which codes?" not in text:
            return Said("All notes are read.")
        self.codes |= set(CODE.findall(text))
        for number, name in enumerate(self.names, 1):
            if not any(code.startswith(f"N{number:02}") for code in self.codes):
                found = re.search(rf"- (r\d+): read_file `{name}`", text)
                self.listed = self.listed or found is None
                return Said(calls=(Call("restore_tool_result", {"id": found[1] if found else "list"}),))
        return Said(" ".join(sorted(self.codes)))


@pytest.mark.parametrize(("window", "words", "listed"), [(8_192, 240, True), (32_768, 1_500, False)])
def test_what_was_summarised_away_is_named_and_comes_back_after_a_restart(
    night: Night, window: int, words: int, listed: bool
) -> None:
    codes = night.notes(12, words=words)
    brain = Archivist(12)
    with FaultServer(brain, window=window) as server:
        ran = night.run([server], "read the notes")
        assert ran.of("compaction"), ran.story
        for file in (night.workspace / "notes").iterdir():
            file.unlink()
        ran = night.run([server], job=ran.job, said="Which codes?")
    assert (ran.ending.name, ran.answer) == ("done", " ".join(codes)), ran.story
    assert brain.listed is listed
    assert all(event["ok"] for event in ran.of("tool.ended")), ran.story
