"""Every rule of the strict servers: a good body has no complaint, and one that breaks the rule has that one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agentx.testing.strict import Strict, complaints, refusal

Json = dict[str, Any]
CALL: Json = {"id": "abcdefgh1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
CHAT: Json = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "abcdefgh1", "content": "r"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    ],
}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def thinking(text: str) -> Json:
    body = copy.deepcopy(CHAT)
    body["messages"][2]["reasoning_content"] = text
    return body


NATIVE: Json = {
    "messages": [
        {"role": "user", "content": "u", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]},
        {"role": "tool", "content": "r", "tool_name": "read"},
    ]
}
CLAUDE: Json = {
    "max_tokens": 9,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "SIG"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"},
                {"type": "text", "text": "and?"},
            ],
        },
    ],
    "tools": [{"name": "read", "input_schema": {"type": "object", "$schema": "x"}}],
}
GOOGLE: Json = {
    "contents": [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "SIG"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]},
    ],
    "tools": [
        {
            "function_declarations": [
                {"name": "read", "parameters": {"type": "object", "properties": {"const": {}}}}
            ]
        }
    ],
}
GOOD: dict[Strict, Json] = {
    "openai": CHAT,
    "mistral": CHAT,
    "deepseek": thinking(" "),
    "moonshot": thinking(" "),
    "text_only": CHAT,
    "ollama": NATIVE,
    "anthropic": CLAUDE,
    "gemini": GOOGLE,
}


@pytest.mark.parametrize("strict", GOOD)
def test_a_good_body_is_taken(strict: Strict) -> None:
    assert complaints(strict, GOOD[strict], issued=["SIG"]) == []


def put(*path: Any, value: Any) -> Callable[[Json], None]:
    def spoil(body: Json) -> None:
        place: Any = body
        for step in path[:-1]:
            place = place[step]
        if isinstance(place, list) and path[-1] == "end":
            place.append(value)  # pyright: ignore[reportUnknownMemberType]  any JSON
        else:
            place[path[-1]] = value

    return spoil


def all_of(*spoilers: Callable[[Json], None]) -> Callable[[Json], None]:
    def spoil(body: Json) -> None:
        for one in spoilers:
            one(body)

    return spoil


SCHEMA = ("tools", 0, "function", "parameters", "properties")
DECLARED = ("tools", 0, "function_declarations", 0, "parameters")
ORPHAN = put("messages", 3, "tool_call_id", value="ABCDEFGH1")
USER = put("messages", "end", value={"role": "user", "content": "u"})
BLANK_ASSISTANT = put("messages", "end", value={"role": "assistant", "content": ""})
OPEN_CALL = put("messages", 3, value={"role": "user", "content": "u"})
TWICE = put("messages", 2, "tool_calls", "end", value=CALL)
PICTURE = put("messages", 1, "content", value=[IMAGE])
LATE_SYSTEM = put("messages", "end", value={"role": "system", "content": "s"})
MARK: Json = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}


def wrong_way_round(body: Json) -> None:
    body["messages"][2]["content"].reverse()


USE: Json = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}


@pytest.mark.parametrize(
    ("strict", "spoil", "says"),
    [
        ("openai", put("messages", 2, "tool_calls", 0, "id", value="x" * 66), "string too long"),
        ("openai", ORPHAN, "must be a response to a preceeding message"),
        ("openai", OPEN_CALL, "did not have response messages: abcdefgh1"),
        (
            "openai",
            put("messages", 3, value={"role": "user", "content": "u"}),
            "must be followed by tool messages",
        ),
        ("openai", TWICE, "Duplicate value"),
        ("openai", put("messages", 2, "reasoning_content", value="hm"), "messages[2].reasoning_content"),
        ("openai", put("messages", 1, "cache_control", value={}), "messages[1].cache_control"),
        ("openai", put("messages", 3, "content", value=[IMAGE]), "Image URLs are only allowed"),
        ("openai", put("messages", 1, "content", value=None), "got null"),
        ("openai", put(*SCHEMA, "list", value={"type": "array"}), "array schema missing items"),
        ("openai", all_of(put("model", value="o3"), put("max_tokens", value=9)), "Use 'max_completion_tokens'"),
        ("openai", all_of(put("model", value="gpt-5"), put("temperature", value=0.5)), "'temperature' does not"),
        (
            "openai",
            all_of(put("model", value="o3"), put("parallel_tool_calls", value=True)),
            "parallel_tool_calls",
        ),
        ("mistral", put("messages", 3, "tool_call_id", value="call_1"), "Tool call id was call_1"),
        ("mistral", USER, "Unexpected role 'user' after role 'tool'"),
        ("mistral", LATE_SYSTEM, "Unexpected role 'system' after role 'tool'"),
        ("mistral", BLANK_ASSISTANT, "either content or tool_calls"),
        (
            "mistral",
            put("messages", "end", value={"role": "assistant", "content": "a"}),
            "Expected last role User",
        ),
        ("mistral", put("messages", 2, "reasoning_content", value="hm"), "Extra inputs are not permitted"),
        ("mistral", put("stream_options", value={}), "body.stream_options"),
        ("mistral", TWICE, "Duplicate value"),
        ("deepseek", put("messages", 2, "reasoning_content", value=None), "must be passed back"),
        ("moonshot", put("messages", 2, "reasoning_content", value=""), "missing in assistant tool call message"),
        ("moonshot", BLANK_ASSISTANT, "must not be empty"),
        ("text_only", PICTURE, "image input is not supported"),
        ("text_only", put("messages", 1, "content", value=[{"type": "text", "text": "t"}]), "must be a string"),
        ("text_only", LATE_SYSTEM, "System message must be at the beginning"),
        ("text_only", all_of(USER, USER), "Conversation roles must alternate"),
        ("text_only", put(*SCHEMA, "p", value={"type": "string", "pattern": "[a-z]"}), "Pattern must start with"),
        ("ollama", put("messages", 0, "content", value=[]), "cannot unmarshal array"),
        ("ollama", put("messages", 1, "tool_calls", 0, "function", "arguments", value="{}"), "cannot unmarshal"),
        ("ollama", put("messages", 0, "images", value=["data:image/png;base64,aGk="]), "illegal base64"),
        ("ollama", put("messages", 2, "tool_name", value=""), "must name its tool"),
        ("anthropic", put("max_tokens", value=None), "max_tokens: Field required"),
        ("anthropic", put("messages", 0, "role", value="assistant"), "first message must use"),
        ("anthropic", put("messages", 0, "content", value=[MARK] * 4), "Found 5"),
        ("anthropic", put("messages", 0, "role", value="system"), "Input should be 'user' or 'assistant'"),
        ("anthropic", put("messages", 0, "reasoning_content", value="hm"), "Extra inputs are not permitted"),
        ("anthropic", put("messages", 0, "content", value=[]), "must have non-empty content"),
        ("anthropic", put("messages", 2, "content", 0, "tool_use_id", value="other"), "unexpected `tool_use_id`"),
        ("anthropic", put("messages", 2, "content", value="u"), "without `tool_result` blocks immediately after"),
        ("anthropic", put("messages", "end", value={"role": "assistant", "content": [USE]}), "must be unique"),
        ("anthropic", put("messages", "end", value={"role": "assistant", "content": [USE]}), "immediately after"),
        ("anthropic", put("messages", 2, "content", 0, value={"type": "text", "text": ""}), "must be non-empty"),
        ("anthropic", put("messages", 0, "content", value=" \n"), "non-whitespace"),
        ("anthropic", put("messages", 1, "content", 1, "id", value="functions.read:0"), "should match pattern"),
        (
            "anthropic",
            put("messages", 1, "content", 0, value={"type": "thinking", "thinking": "hm"}),
            "Field required",
        ),
        ("anthropic", put("messages", 1, "content", 0, "signature", value="OTHER"), "Invalid `signature`"),
        (
            "anthropic",
            put("messages", 1, "content", 0, value={"type": "redacted_thinking", "data": "OTHER"}),
            "Invalid `data`",
        ),
        (
            "anthropic",
            put("messages", "end", value={"role": "assistant", "content": "so "}),
            "cannot end with trailing whitespace",
        ),
        (
            "anthropic",
            wrong_way_round,
            "must come before all other content",
        ),
        ("anthropic", put("tools", 0, "input_schema", value={}), "Input should be 'object'"),
        ("gemini", put("contents", value=[]), "contents is not specified"),
        ("gemini", put("contents", 0, "role", value="assistant"), "valid role"),
        ("gemini", put("contents", 0, "parts", value=[]), "must not be empty"),
        ("gemini", put("contents", 2, "parts", value=[{"text": "t"}]), "number of function response parts"),
        ("gemini", put("contents", 0, "role", value="model"), "comes immediately after a user turn"),
        ("gemini", put("contents", 1, "parts", 0, "thoughtSignature", value=""), "missing a thought_signature"),
        ("gemini", put("contents", 1, "parts", 0, "thoughtSignature", value="OTHER"), "signature is not valid"),
        ("gemini", put(*DECLARED, "$schema", value="x"), 'Unknown name "$schema"'),
        ("gemini", put(*DECLARED, "additionalProperties", value=False), 'Unknown name "additionalProperties"'),
        ("gemini", put(*DECLARED, "properties", "a", value={"const": "b"}), 'Unknown name "const"'),
        (
            "gemini",
            put(*DECLARED, "properties", "a", value={"type": "array"}),
            ".properties.a.items: missing field",
        ),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused(strict: Strict, spoil: Callable[[Json], None], says: str) -> None:
    body = copy.deepcopy(GOOD[strict])
    spoil(body)
    found = complaints(strict, body, issued=["SIG"])
    assert any(says in complaint for complaint in found), found
    assert refusal(strict, found[0]).status == 400
