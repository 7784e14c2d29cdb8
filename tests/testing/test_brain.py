"""The scripted models know what they are sent, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import Call, KeyKeeper, NoteReader, Said, Script, ScriptOver
from agentx.testing.conversations import (
    PERSONAL_KEY,
    SYSTEM_KEY,
    conversation27,
    missing,
    note_task,
    twelve_notes,
)

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


def called(call: Call, result: str, number: int) -> list[dict[str, Any]]:
    """A call and its result as messages."""
    made = {"id": f"c{number}", "function": {"name": call.name, "arguments": call.text}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "content": result, "tool_call_id": f"c{number}"},
    ]


def read(folder: Path, call: Call) -> str:
    assert isinstance(call.arguments, dict)
    lines = (folder / call.arguments["path"]).read_text().splitlines()
    start = call.arguments.get("offset", 1) - 1
    return "\n".join(lines[start : start + call.arguments.get("limit", 2_000)])


def test_a_note_reader_reads_every_note_once_and_answers(tmp_path: Path) -> None:
    codes = twelve_notes(tmp_path)
    messages: list[dict[str, Any]] = [{"role": "user", "content": note_task()}]
    for number in range(1, 13):
        (call,) = NoteReader()(messages, TOOLS).calls
        assert call == Call("read_file", {"path": f"notes/note-{number:02}.txt"})
        messages += called(call, read(tmp_path, call), number)
    answer = NoteReader()(messages, TOOLS).text
    assert answer is not None
    assert missing(codes, answer) == []
    assert missing(codes, answer.replace(codes[4], "")) == [codes[4]]


def test_a_note_reader_reads_again_what_it_cannot_see_any_more(tmp_path: Path) -> None:
    twelve_notes(tmp_path)
    messages: list[dict[str, Any]] = [{"role": "user", "content": note_task()}]
    for number in range(1, 4):
        (call,) = NoteReader()(messages, TOOLS).calls
        messages += called(call, read(tmp_path, call), number)
    forgotten = [messages[0], *messages[3:]]
    assert NoteReader()(forgotten, TOOLS).calls == (Call("read_file", {"path": "notes/note-01.txt"}),)


def test_a_note_reader_without_its_task_does_nothing(tmp_path: Path) -> None:
    twelve_notes(tmp_path)
    call = Call("read_file", {"path": "notes/note-01.txt"})
    said = NoteReader()(called(call, read(tmp_path, call), 1), TOOLS)
    assert said == Said("I do not know what to do. What is the task?")


def test_a_note_reader_reads_a_clipped_note_page_by_page(tmp_path: Path) -> None:
    codes = twelve_notes(tmp_path)
    messages: list[dict[str, Any]] = [{"role": "user", "content": note_task()}]
    (call,) = NoteReader()(messages, TOOLS).calls
    messages += called(call, read(tmp_path, call)[:100] + "\n[... clipped ...]", 1)
    for number in range(2, 6):
        (call,) = NoteReader()(messages, TOOLS).calls
        assert isinstance(call.arguments, dict)
        if call.arguments["path"] != "notes/note-01.txt":
            break
        messages += called(call, read(tmp_path, call), number)
    assert codes[0] in str(messages)


def test_a_summary_holds_what_can_be_seen_and_is_enough_to_go_on(tmp_path: Path) -> None:
    codes = twelve_notes(tmp_path)
    seen = f"task: {note_task()}\n{codes[0]} and {codes[1]}"
    ask = [{"role": "user", "content": f"Summarise this conversation:\n{seen}"}]
    summary = NoteReader()(ask, []).text or ""
    assert codes[0] in summary
    assert codes[1] in summary
    assert codes[2] not in summary
    after = NoteReader()([{"role": "user", "content": summary}], TOOLS)
    assert after.calls == (Call("read_file", {"path": "notes/note-03.txt"}),)


def test_a_key_keeper_invents_what_it_cannot_see() -> None:
    messages = conversation27()
    knows = KeyKeeper()(messages, []).text or ""
    forgot = KeyKeeper()([messages[0], *messages[9:]], []).text or ""
    assert SYSTEM_KEY in knows
    assert PERSONAL_KEY in knows
    assert SYSTEM_KEY in forgot
    assert KeyKeeper.INVENTED in forgot
    assert KeyKeeper()(messages[:5], []) == Said("Understood.")


def test_a_key_keepers_summary_keeps_the_keys() -> None:
    text = "\n".join(message["content"] for message in conversation27()[:-1])
    summary = KeyKeeper()([{"role": "user", "content": f"Write a summary of this:\n{text}"}], []).text or ""
    answer = KeyKeeper()([{"role": "user", "content": summary}, conversation27()[-1]], []).text or ""
    assert SYSTEM_KEY in answer
    assert PERSONAL_KEY in answer


def test_a_script_says_its_replies_and_then_stops() -> None:
    script = Script(["one", Call("f"), Said("three")])
    asked = [{"role": "user", "content": "x"}]
    assert [script(asked, []) for _ in range(3)] == [Said("one"), Said(calls=(Call("f"),)), Said("three")]
    assert script.seen == [tuple(asked)] * 3
    with pytest.raises(ScriptOver, match="over after 3"):
        script(asked, [])


def test_notes_are_the_same_every_time(tmp_path: Path) -> None:
    assert twelve_notes(tmp_path / "a") == twelve_notes(tmp_path / "b")
    text = (tmp_path / "a" / "notes" / "note-05.txt").read_text()
    assert text == (tmp_path / "b" / "notes" / "note-05.txt").read_text()
    assert 240 <= len(text.split()) <= 260
