"""One history for strict servers of every dialect, over real sockets and through the real wires."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.testing.brain import Call, Said, Script
from agentx.testing.strict import Strict
from agentx.testing.strict_server import StrictServer
from agentx.wires.litellm import LiteLLMWire
from agentx.wires.make import client
from agentx.wires.messages import Image, Message, Reply, Request, Timers, Tool, ToolCall
from agentx.wires.ollama import OllamaWire
from agentx.wires.openai import OpenAIWire

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "[a-z]", "format": "uri"},
        "mode": {"const": "r"},
        "lines": {"type": "array"},
    },
    "additionalProperties": False,
}
TOOLS = (Tool("read_file", "Reads a file.", SCHEMA),)
PICTURE = Image("image/png", "aGk=")
IDS = ("toolu_01ABCDEFGH", "toolu_01ABCDEFGX", "functions.read_file:0", "x" * 70)
SIGNED = '[{"type":"thinking","thinking":"hm","signature":"OF ANOTHER ENDPOINT"}]'


def turn(*ids: str, **more: Any) -> list[Message]:
    calls = tuple(ToolCall(id_, "read_file", '{"path": "a"}', "of_another_endpoint") for id_ in ids)
    results = [Message(role="tool", text=f"of {id_}", tool_call_id=id_) for id_ in ids]
    return [Message(role="assistant", tool_calls=calls, **more), *results]


HISTORY = [
    Message(role="system", text="be brief"),
    Message(role="user", text="look", images=(PICTURE,)),
    *turn(*IDS[:2], reasoning="hm", sealed=SIGNED, issuer="https://api.anthropic.com claude-x"),
    Message(role="user", text=""),
    Message(role="assistant", text=" \n"),
    *turn(*IDS[2:], reasoning="of deepseek", issuer="https://api.deepseek.com deepseek-reasoner")[:2],
    Message(role="assistant", text="so"),
    Message(role="assistant", text="then "),
    Message(role="system", text="be quick"),
    Message(role="tool", text="a picture", tool_call_id="nobody", images=(PICTURE,)),
    *turn("call_0"),
    *turn("call_0"),
    Message(role="user", text="and now?"),
]

CARDS: dict[Strict, dict[str, Any]] = {
    "openai": {"card": "openai", "wire": "openai", "output_field": "max_completion_tokens"},
    "anthropic": {"card": "anthropic", "wire": "litellm", "litellm_prefix": "anthropic"},
    "gemini": {"card": "gemini", "wire": "litellm", "litellm_prefix": "gemini"},
    "mistral": {"card": "mistral", "wire": "openai", "stream_usage": False},
    "deepseek": {"card": "deepseek", "wire": "openai"},
    "moonshot": {"card": "moonshot", "wire": "openai"},
    "ollama": {"card": "ollama", "wire": "ollama"},
    "text_only": {"card": "llamacpp", "wire": "openai", "self_hosted": True},
}
MODELS: dict[Strict, str] = {"openai": "o3", "gemini": "gemini-3-pro-preview"}


def asked(server: StrictServer, messages: list[Message], **more: Any) -> Reply:
    strict = server.strict
    base = server.v1 if CARDS[strict]["wire"] == "openai" else server.url
    provider = Provider(name=strict, base_url=base, api_key_env="K", **{**CARDS[strict], **more})
    request = Request(
        model=server.models[0],
        messages=messages,
        tools=TOOLS,
        max_tokens=99,
        temperature=0.5,
        images=strict != "text_only",
    )

    async def run() -> Reply:
        async with client() as http:
            if provider.wire == "litellm":
                return await LiteLLMWire(provider, http, lambda: "k").ask(request, Timers())
            wire = OllamaWire if provider.wire == "ollama" else OpenAIWire
            return await wire(provider, http, lambda: "k").ask(request, Timers())

    return asyncio.run(run())


@pytest.mark.parametrize("strict", CARDS)
def test_the_history_of_many_models_is_taken_by_a_strict_server(strict: Strict) -> None:
    before = [message.to_json() for message in HISTORY]
    with StrictServer(strict, models=[MODELS.get(strict, "m")]) as server:
        reply = asked(server, HISTORY)
    assert server.complaints == []
    assert reply.message.text == "Hello."
    assert [message.to_json() for message in HISTORY] == before
    assert SCHEMA["$schema"]


def test_the_strict_server_refuses_what_is_sent_in_another_dialect() -> None:
    """So that the test above can fail: Mistral's rules against what a plain endpoint is sent."""
    with StrictServer("mistral", models=["m"]) as server, pytest.raises(RequestFailed, match="Tool call id was"):
        asked(server, HISTORY, card="openai-compatible")
    assert [seen.status for seen in server.chats] == [400]


def test_mistral_behind_another_address_gets_its_own_dialect() -> None:
    with StrictServer("mistral", models=["mistralai/devstral-small"]) as server:
        asked(server, HISTORY, card="openrouter")
    assert server.complaints == []


@pytest.mark.parametrize("strict", ["anthropic", "gemini", "deepseek", "moonshot"])
def test_a_models_own_thoughts_go_back_to_it_and_to_nobody_else(strict: Strict) -> None:
    brain = Script([Said(reasoning="hm", calls=(Call("read_file", {"path": "a"}),)), "done"] * 2)
    name = MODELS.get(strict, "m")
    with StrictServer(strict, brain, models=[name]) as one, StrictServer(strict, brain, models=[name]) as other:
        first = asked(one, HISTORY).message
        assert first.reasoning == "hm"
        result = Message(role="tool", text="r", tool_call_id=first.tool_calls[0].id)
        went_on = [*HISTORY, Message.from_json(first.to_json()), result]
        asked(one, went_on)
        asked(other, went_on)  # refused, were the signature of the first one in it
    assert (one.complaints, other.complaints) == ([], [])
    mine, yours = str(one.chats[1].body), str(other.chats[0].body)
    if one.issued:
        assert (one.issued[0] in mine, one.issued[0] in yours) == (True, False)
    if strict != "gemini":
        assert (mine.count("hm'") > yours.count("hm'"), "of deepseek" in mine) == (True, False)
