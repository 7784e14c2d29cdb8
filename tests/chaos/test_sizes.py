"""Numbers that would starve another: huge tasks, results, instructions and budgets, in all sizes of windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, Script, asks_for_summary, text_of
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json
from agentx.testing.faults import Status, always
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

INSTRUCTIONS = {
    "ascii": "Always be careful with files.\n" * 4_000,
    "cjk": "请小心处理文件。\n" * 12_000,
    "dense": "x9$#@!{}[]()<>=+-*/%^&|~`;:?,.\n" * 4_000,
}


@pytest.mark.parametrize("window", [2_304, 4_096])
@pytest.mark.parametrize("kind", INSTRUCTIONS)
def test_agents_md_of_100_kb_leaves_room_for_the_work(night: Night, kind: str, window: int) -> None:
    (night.workspace / "AGENTS.md").write_text(INSTRUCTIONS[kind])
    codes = night.notes(4, words=60)
    with FaultServer(NoteReader(), window=window) as server:
        ran = night.run([server], note_task(4))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert "AGENTS.md goes on" in server.chats[0].body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("window", "max_tokens"),
    [(2_304, 2_304), (4_096, 4_096), (4_096, 100_000), (8_192, 8_191), (1_000_000, 500_000)],
)
@pytest.mark.parametrize("card", ["openai-compatible", "vllm"])
def test_a_greedy_output_budget_never_takes_the_room_of_the_prompt(
    night: Night, card: str, window: int, max_tokens: int
) -> None:
    codes = night.notes(4, words=60)
    face: Any = "vllm" if card == "vllm" else "openai"
    with FaultServer(NoteReader(), face=face, window=window, overflow="refuse_total") as server:
        ran = night.run([{"server": server, "card": card, "max_tokens": max_tokens}], note_task(4))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert len(ran.of("link.failed")) <= 1, ran.story  # the first request is only an estimate
    (selected,) = ran.of("link.selected")
    assert (selected["window"], selected["threshold"]) == (window, max(2_000, min(window, 256_000) // 2))


@pytest.mark.parametrize("mode", ["refuse", "drop_oldest"])
def test_results_larger_than_the_window_never_end_the_job(night: Night, mode: Any) -> None:
    (night.workspace / "big.txt").write_text("\n".join(f"line {n} of it, {n * n}" for n in range(40_000)))
    (night.workspace / "one.txt").write_text("x" * 500_000)
    (night.workspace / "cjk.txt").write_text("文件内容很长" * 9_000)
    many = tuple(Call("shell", {"command": f"head -c 20000 big.txt; echo {n}"}) for n in range(6))
    calls: list[Said | Call | str] = [
        Call("read_file", {"path": "big.txt"}),
        Call("read_file", {"path": "one.txt"}),
        Call("shell", {"command": "cat cjk.txt"}),
        Said(calls=many),
        Call("write_file", {"path": "o.txt", "content": "y " * 3_000}),
        *["all is read"] * 9,
    ]
    script = Script(calls)

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if not tools or "Answer with one word." in messages[-1]["content"]:
            return Said("Goal: read all.") if asks_for_summary(messages, tools) else Said("yes")
        return script(messages, tools)

    claims: Any = "true" if mode == "refuse" else 131_072
    with FaultServer(brain, window=4_096, overflow=mode, claims=claims) as server:
        ran = night.run([server], "read all")
    assert ran.ending.name == "done", ran.story
    assert max(seen.prompt_tokens or 0 for seen in server.chats) <= 4_096


def test_a_task_larger_than_the_window_is_shown_in_part_and_that_is_said(night: Night) -> None:
    task = "Begin with this. " + "alpha beta gamma delta " * 8_000 + " The end: say hello."
    script = Script(["hello"] * 3)
    with FaultServer(script, face="llamacpp", window=4_096) as server:
        ran = night.run([{"server": server, "card": "llamacpp"}], task)
    assert (ran.ending.name, len(server.chats)) == ("done", 1), ran.story
    (warning,) = [event for event in ran.of("warning") if "does not fit" in event["message"]]
    assert warning["hint"] == "`llama-server -m MODEL.gguf -c 32768 --parallel 1`"
    seen = text_of(script.seen[0])
    assert "Begin with this." in seen
    assert "The end: say hello." in seen
    assert "restore_tool_result" in seen


@pytest.mark.parametrize(
    ("face", "hint"), [("llamacpp", "-c 32768"), ("lmstudio", "lms load"), ("vllm", "--max-model-len")]
)
def test_what_no_window_can_hold_ends_at_once_and_says_how_to_set_it(night: Night, face: Any, hint: str) -> None:
    with FaultServer(NoteReader(), face=face, window=2_048, loaded=True) as server:
        ran = night.run([{"server": server, "card": face}])
    assert (ran.ending.name, ran.ending.exit, server.chats) == ("context_overflow", 7, [])
    assert hint in (ran.ending.hint or ""), ran.ending.hint


def test_a_server_that_finds_everything_too_large_is_not_asked_for_ever(night: Night) -> None:
    words = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens."
    refusal = Status(400, body={"error": {"message": words, "code": "context_length_exceeded"}})
    with FaultServer(NoteReader(), face="llamacpp", window=4_096, schedule=always(refusal)) as server:
        ran = night.run([{"server": server, "card": "llamacpp"}])
    assert (ran.ending.name, ran.ending.exit) == ("context_overflow", 7)
    assert "-c 32768" in (ran.ending.hint or "")
    assert len(server.chats) <= 4


def test_many_corrections_all_reach_the_model(night: Night) -> None:
    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            return Said("Goal: keep the rules.")
        return Said(" ".join(sorted(set(re.findall(r"R\d\dR", text_of(messages))))))

    with FaultServer(brain, window=4_096) as server:
        ran = night.run([server], "Keep to the rules.")
        for n in range(12):
            ran = night.run([server], job=ran.job, said=f"Rule R{n:02}R holds from now on. " + "It does. " * 20)
    assert ran.answer.split() == [f"R{n:02}R" for n in range(12)], ran.story
