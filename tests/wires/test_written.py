"""A tool call written as text is a call only when nothing else can be meant."""

from __future__ import annotations

import pytest

from agentx.wires.written import Thought, WrittenCall, without_thought, written_call

OFFERED = ("read_file", "shell")
CALL = WrittenCall("read_file", '{"path": "a"}')
BARE = '{"name": "read_file", "arguments": {"path": "a"}}'


@pytest.mark.parametrize(
    "text",
    [
        BARE,
        f"\n {BARE} \n",
        f"```json\n{BARE}\n```",
        f"```\n{BARE}\n```\n",
        f"<tool_call>\n{BARE}\n</tool_call>",
        f"<tool_call>{BARE}",
        '{\n  "name": "read_file",\n  "arguments": {\n    "path": "a"\n  }\n}',
        '{"name": "read_file", "parameters": {"path": "a"}}',
        '{"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}',
    ],
)
def test_one_object_with_an_offered_name_is_a_call(text: str) -> None:
    assert written_call(text, OFFERED) == CALL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "read_file",
        f"I would call {BARE}",
        f"{BARE}\n{BARE}",
        f"{BARE}.json\n```json\n{BARE}\n```",
        f"```json\n{BARE}\n```\n```json\n{BARE}\n```",
        '{"name": "delete_all", "arguments": {}}',
        '{"name": "read_file", "arguments": {"path": "a"}, "why": "because"}',
        '{"name": "read_file"}',
        '{"name": "read_file", "arguments": ["a"]}',
        '{"name": "read_file", "arguments": "a"}',
        '{"name": "read_file", "arguments": {"path": "a"',
        '["read_file"]',
        '{"name": ["read_file"], "arguments": {}}',
    ],
)
def test_anything_else_is_text(text: str) -> None:
    assert written_call(text, OFFERED) is None


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("hello", Thought("", "hello")),
        ("<think>hm</think>\n\nhello", Thought("hm", "hello")),
        ("\n<think>\nhm\n</think>hello", Thought("hm", "hello")),
        ("<think>hm", Thought("hm", "")),
        ("so it is\n</think>\n\nhello", Thought("so it is", "hello")),
        ("the tag `</think>` ends it", Thought("", "the tag `</think>` ends it")),
        ("say <think> first", Thought("", "say <think> first")),
    ],
)
def test_a_leading_thought_is_taken_out(text: str, thought: Thought) -> None:
    assert without_thought(text) == thought
