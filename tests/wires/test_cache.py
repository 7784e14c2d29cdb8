"""What Claude is told to cache, as it reaches a real socket: the beginning stays the same, the end is marked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, cast

import pytest

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.wires.families import cache_style
from agentx.wires.litellm import LiteLLMWire, completion
from agentx.wires.make import client
from agentx.wires.messages import Message, Request, Timers, Tool, ToolCall
from agentx.wires.openai import OpenAIWire

OBJECT: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = (Tool("list_files", "Lists files.", OBJECT), Tool("read_file", "Reads a file.", OBJECT))
MARK = {"type": "ephemeral"}


def turns(count: int) -> list[Message]:
    """A conversation before its next reply, after *count* turns of two calls each."""
    messages = [Message(role="system", text="be brief"), Message(role="user", text="look around")]
    for turn in range(count):
        calls = tuple(ToolCall(f"c{turn}_{n}", "read_file", f'{{"path": "{n}"}}') for n in (1, 2))
        messages.append(Message(role="assistant", text="so", tool_calls=calls))
        messages += [Message(role="tool", text=f"{turn}", tool_call_id=call.id) for call in calls]
    return messages


def provider(url: str, card: str, **more: Any) -> Provider:
    settings: dict[str, Any] = {"name": card, "card": card, "wire": "litellm", "base_url": url, "api_key_env": "K"}
    return Provider(**settings | more)


REFUSAL = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    REFUSAL
)


def bodies(serve: Any, link: Callable[[str], Provider], model: str, histories: list[list[Message]]) -> list[Any]:
    """What a server is sent when each of *histories* is asked; it refuses them all."""

    async def run() -> list[Any]:
        async with serve(REFUSED, REFUSAL) as (url, seen), client() as http:
            made = link(url)
            wire = (
                OpenAIWire(made, http, lambda: "k")
                if made.wire == "openai"
                else LiteLLMWire(made, http, lambda: "k")
            )
            for history in histories:
                with suppress(RequestFailed):
                    await wire.ask(Request(model=model, messages=history, tools=TOOLS, max_tokens=9), Timers())
            return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in seen]

    return asyncio.run(run())


def without_marks(value: Any) -> Any:
    text = json.dumps(value)
    return json.loads(text, object_hook=lambda found: {k: v for k, v in found.items() if k != "cache_control"})


def places(value: Any, path: str = "") -> list[str]:
    """Where markers stand."""
    if isinstance(value, list):
        value = dict(enumerate(cast("list[Any]", value)))
    if not isinstance(value, dict):
        return []
    items = cast("dict[Any, Any]", value)
    inside = [places(inner, f"{path}/{key}") for key, inner in items.items()]
    return [*([path] if items.get("cache_control") == MARK else []), *chain.from_iterable(inside)]


def test_anthropic_is_told_to_cache_and_the_prefix_stays(serve: Any) -> None:
    asked = [turns(count) for count in (0, 1, 2, 3)]
    sent = bodies(serve, lambda url: provider(url, "anthropic", litellm_prefix="anthropic"), "claude-x", asked)
    assert len(sent) == 4
    assert sorted(places(sent[0])) == ["/messages/0/content/0", "/system/0", "/tools/1"]
    assert sorted(places(sent[1])) == ["/messages/0/content/0", "/messages/2/content/1", "/system/0", "/tools/1"]
    for before, after in pairwise(sent):
        end = max(place for place in places(before) if place.startswith("/messages"))
        assert end in places(after), "what was cached last is not looked up"
        assert len(places(after)) == 4
        assert (before["system"], before["tools"]) == (after["system"], after["tools"])
        known = without_marks(before["messages"])
        assert json.dumps(without_marks(after["messages"])).startswith(json.dumps(known)[:-1])


def test_claude_behind_openrouter_is_told_in_parts_of_texts(serve: Any) -> None:
    asked = [turns(1), turns(2)]

    def link(url: str) -> Provider:
        return provider(url, "openrouter", wire="openai")

    before, after = bodies(serve, link, "anthropic/claude-x", asked)
    assert before["messages"][0] == {
        "role": "system",
        "content": [{"type": "text", "text": "be brief", "cache_control": MARK}],
    }
    assert places(before) == ["/messages/0/content/0", "/messages/1/content/0", "/messages/4/content/0"]
    assert places(after) == ["/messages/0/content/0", "/messages/4/content/0", "/messages/7/content/0"]
    assert places(bodies(serve, link, "qwen/qwen3-coder", asked)) == []


def test_claude_on_bedrock_gets_cache_points(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    (body,) = bodies(serve, lambda url: provider(url, "bedrock", litellm_prefix="bedrock"), model, [turns(2)])
    points = [("cachePoint" in json.dumps(part)) for part in (body["system"], body["toolConfig"]["tools"])]
    assert points == [True, True]
    assert ["cachePoint" in json.dumps(message) for message in body["messages"]] == [
        False,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("card", "more", "model", "style"),
    [
        ("vertex", {"litellm_prefix": "vertex_ai"}, "claude-opus-4-5@20251101", "message"),
        ("vertex", {"litellm_prefix": "vertex_ai"}, "gemini-3-pro", None),
        ("own", {"litellm_prefix": "anthropic"}, "of-my-own", "message"),
        ("bedrock", {"litellm_prefix": "bedrock"}, "us.anthropic.claude-opus-4-5-v1:0", "message"),
        ("bedrock", {"litellm_prefix": "bedrock"}, "amazon.nova-pro-v1:0", None),
        ("own", {"wire": "openai", "url": "https://openrouter.ai/api/v1"}, "anthropic/claude-x", "part"),
        ("litellm-proxy", {"wire": "openai"}, "claude-x", "message"),
        ("openai-compatible", {"wire": "openai"}, "claude-x", None),
    ],
)
def test_only_claude_is_told_and_only_where_it_is_documented(card: str, more: Any, model: str, style: Any) -> None:
    made = provider(**{"url": "https://a.example", "card": card} | more)
    assert cache_style(made, model) == style


def test_nobody_else_on_the_litellm_wire_sees_a_marker() -> None:
    request = Request(model="gemini-3-pro", messages=turns(1), tools=TOOLS)
    made = provider("https://a.example", "gemini", litellm_prefix="gemini")
    assert places(completion(request, made, None, Timers())) == []
