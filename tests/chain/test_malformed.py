"""A history that one server calls malformed is put in order on a copy, and sent to the same link once more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentx.chain.classify import classify
from agentx.chain.walk import Chain
from agentx.config.links import Link, Provider
from agentx.errors import ChainExhausted, RequestFailed
from agentx.testing import faults
from agentx.testing.server import FaultServer
from agentx.wires.messages import Message, Request, ToolCall
from agentx.wires.openai import OpenAIWire
from agentx.wires.repair import repaired

if TYPE_CHECKING:
    from tests.chain.conftest import Failures, World

REFUSAL = json.dumps(
    {"error": {"message": "An assistant message with 'tool_calls' must be followed by tool messages"}}
)
ODD = (
    Message(role="user", text="go"),
    Message(role="assistant", reasoning="hm", tool_calls=(ToolCall("functions.read:0", "read", "{}"),)),
    Message(role="user", text="and then?"),
)


@pytest.mark.parametrize(
    ("card", "status", "text"),
    [
        ("openai", 400, "An assistant message with 'tool_calls' must be followed by tool messages responding"),
        ("openai", 400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
                        "length 64, but instead got a string with length 66 instead."),
        ("openai", 400, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."),
        ("openai", 400, "No tool output found for function call call_abc."),
        ("anthropic", 400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        ("anthropic", 400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after"),
        ("anthropic", 400, "messages.1.content.0.thinking.signature: Field required"),
        ("anthropic", 400, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("anthropic", 400, "messages: text content blocks must be non-empty"),
        ("anthropic", 400, "messages.3: all messages must have non-empty content except for the optional final "
                           "assistant message"),
        ("anthropic", 400, "messages: roles must alternate between \"user\" and \"assistant\""),
        ("bedrock", 400, "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_x"),
        ("bedrock", 400, "A conversation must start with a user message."),
        ("gemini", 400, "Function call is missing a thought_signature in functionCall parts."),
        ("gemini", 400, "Please ensure that function call turn comes immediately after a user turn"),
        ("gemini", 400, "Please ensure that the number of function response parts is equal to the number of "
                        "function call parts of the function call turn."),
        ("mistral", 400, "Unexpected role 'user' after role 'tool'"),
        ("mistral", 400, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
        ("mistral", 400, "Assistant message must have either content or tool_calls, but not none."),
        ("deepseek", 400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("deepseek", 400, "Missing `reasoning_content` field in the assistant message at message index 3"),
        ("moonshot", 400, "the message at position 2 with role 'assistant' must not be empty"),
        ("groq", 400, "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
                      "property 'reasoning_content' is unsupported)]"),
        ("llamacpp", 500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        ("llamacpp", 500, "System message must be at the beginning."),
    ],
)  # fmt: skip
def test_the_complaints_of_each_provider_are_known(
    shipped_card: Callable[[str], Provider], card: str, status: int, text: str
) -> None:
    body = json.dumps({"error": {"message": text, "type": "invalid_request_error"}})
    failure = RequestFailed("no", phase="status", status=status, body=body)
    assert classify(failure, shipped_card(card), 0.0).error_class == "malformed_history"


async def prepare(link: Link, reason: str) -> Request:
    return Request(model=link.model, messages=ODD, estimate=50)


def test_the_same_link_is_asked_once_more_with_a_repaired_history(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, REFUSAL), "hi", "and again")
    chain = world.chain("a", "b")
    answer = asyncio.run(chain.ask(prepare))
    assert (answer.link.name, answer.request.messages) == ("a/m", repaired(ODD))
    assert (world.health.last(world.links["a"]), sum(world.clock.slept)) == (None, 0)
    assert asyncio.run(chain.ask(prepare)).request.messages == repaired(ODD), "the next turn is not refused first"
    assert world.hits("a") == 3


def test_what_a_repair_does_not_help_goes_to_the_next_link_as_it_was(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, REFUSAL))
    world.say("b", "hi")
    answer = asyncio.run(world.chain("a", "b").ask(prepare))
    assert (answer.link.name, answer.request.messages, world.hits("a")) == ("b/m", ODD, 2)


def test_a_history_in_which_nothing_is_wrong_is_not_sent_again(world: World, fail: Failures) -> None:
    async def well(link: Link, reason: str) -> Request:
        return replace(await prepare(link, reason), messages=repaired(ODD))

    world.say("a", fail.status(400, REFUSAL))
    with pytest.raises(ChainExhausted, match="malformed_history"):
        asyncio.run(world.chain("a").ask(well))
    assert world.hits("a") == 1


def test_over_a_socket_the_server_gets_calls_with_results_and_plain_ids() -> None:
    refusal: dict[str, Any] = json.loads(REFUSAL)

    async def run(url: str) -> str:
        provider = Provider(name="p", card="openai-compatible", wire="openai", base_url=url)
        link = Link(provider=provider, model="scripted", name="p")
        async with httpx.AsyncClient(trust_env=False) as client:
            chain = Chain([link], wires=lambda one: OpenAIWire(one.provider, client))
            return (await chain.ask(prepare)).reply.message.text

    with FaultServer(schedule=faults.first(1, faults.Status(400, {}, refusal))) as server:
        assert asyncio.run(run(server.v1)) == "Hello."
        _, second = (chat.body["messages"] for chat in server.chats)
    (call,) = second[1]["tool_calls"]
    assert (second[2]["role"], second[2]["tool_call_id"]) == ("tool", call["id"])
    assert call["id"].isalnum()
    assert len(call["id"]) == 9
