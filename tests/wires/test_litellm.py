"""The litellm wire against the routes of Anthropic and Gemini: nothing of a reply or a refusal is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import respx

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.wires.litellm import LiteLLMWire
from agentx.wires.messages import Image, Message, Reply, Request, Timers, Tool, ToolCall, Usage

READ = Tool("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Request(
    model="claude-sonnet-4-5",
    messages=[
        Message(role="system", text="be brief"),
        Message(role="user", text="look", images=(Image("image/png", "aGk="),)),
    ],
    tools=[READ],
    max_tokens=64,
)
ANTHROPIC = "https://a.example/v1/messages"
GEMINI = "https://g.example/v1beta/models/gemini-2.5-flash:streamGenerateContent"


def wire(prefix: str, url: str) -> LiteLLMWire:
    provider = Provider(
        name=prefix, card=prefix, wire="litellm", base_url=url, api_key_env="K", litellm_prefix=prefix
    )
    return LiteLLMWire(provider, lambda: "sk-very-secret")


def ask(answer: httpx.Response | Exception, request: Request = ASKED) -> tuple[Reply, httpx.Request]:
    async def run() -> tuple[Reply, httpx.Request]:
        with respx.mock:
            if request.model.startswith("gemini"):
                made, route = wire("gemini", "https://g.example"), respx.post(url__startswith=GEMINI)
            else:
                made, route = wire("anthropic", "https://a.example"), respx.post(ANTHROPIC)
            if isinstance(answer, Exception):
                route.mock(side_effect=answer)
            else:
                route.mock(return_value=answer)
            reply = await made.ask(request, Timers(total=60))
            return reply, route.calls.last.request

    return asyncio.run(run())


def failure(answer: httpx.Response | Exception, request: Request = ASKED) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        ask(answer, request)
    assert "very-secret" not in repr(caught.value)
    return caught.value


def block(index: int, start: dict[str, Any], change: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": change},
        {"type": "content_block_stop", "index": index},
    ]


USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 1}
BEGIN: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c", "usage": USAGE},
}
PIECES = [
    BEGIN,
    *block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hm"}),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hello"}),
    *block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"path": "a"}'},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]


def stream(pieces: list[dict[str, Any]]) -> httpx.Response:
    named = [f"event: {piece['type']}\n" if "type" in piece else "" for piece in pieces]
    text = "".join(f"{name}data: {json.dumps(piece)}\n\n" for name, piece in zip(named, pieces, strict=True))
    headers = {"content-type": "text/event-stream", "anthropic-ratelimit-tokens-remaining": "7"}
    return httpx.Response(200, headers=headers, text=text)


def test_a_reply_of_anthropic_keeps_calls_reasoning_counts_and_headers() -> None:
    reply, sent = ask(stream(PIECES))
    assert reply.message == Message(
        role="assistant",
        text="hello",
        reasoning="hm",
        issuer="https://a.example claude-sonnet-4-5",
        tool_calls=(ToolCall("toolu_1", "read_file", '{"path": "a"}'),),
    )
    assert reply.finish == "tool_calls"
    usage = reply.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (115, 20, 100, 5)
    assert reply.headers["anthropic-ratelimit-tokens-remaining"] == "7"
    assert sent.headers["x-api-key"] == "sk-very-secret"
    body = json.loads(sent.content)
    assert (body["max_tokens"], body["stream"], body["tools"][0]["name"]) == (64, True, "read_file")
    assert body["messages"][0]["content"][1]["source"]["data"] == "aGk="


def test_a_refusal_of_anthropic_keeps_its_status_headers_and_text() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = failure(httpx.Response(529, headers={"Retry-After": "7"}, json=body))
    assert (error.status, error.phase, error.headers["retry-after"]) == (529, "status", "7")
    assert json.loads(error.body) == body
    assert error.message == "anthropic/claude-sonnet-4-5: 529: Overloaded"


def test_an_overload_inside_a_stream_drops_the_reply() -> None:
    error = failure(
        stream([BEGIN, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}])
    )
    assert (error.status, error.phase) == (200, "stream")
    assert "Overloaded" in error.body


def test_a_cut_stream_of_anthropic_is_no_reply() -> None:
    error = failure(stream(PIECES[:7]))
    assert (error.status, error.phase) == (200, "stream")


def test_a_refused_connection_is_no_500() -> None:
    error = failure(httpx.ConnectError("refused"))
    assert (error.status, error.phase, error.timed_out) == (None, "connect", False)


def test_a_page_in_place_of_a_reply_is_refused() -> None:
    assert failure(httpx.Response(200, html="<html>log in</html>")).phase in ("stream", "reply")


ASKED_GEMINI = Request(model="gemini-2.5-flash", messages=[Message(role="user", text="hi")], tools=[READ])


def candidate(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    counts = {"promptTokenCount": 12, "candidatesTokenCount": 8, "thoughtsTokenCount": 30, "totalTokenCount": 50}
    content = {"parts": [part], "role": "model"}
    return {"candidates": [{"content": content, "index": 0, **more}], "usageMetadata": counts}


def test_a_reply_of_gemini_keeps_its_call_and_counts() -> None:
    call = {"functionCall": {"name": "read_file", "args": {"path": "a"}}}
    reply, _ = ask(stream([candidate({"text": "hi "}), candidate(call, finishReason="STOP")]), ASKED_GEMINI)
    (made,) = reply.message.tool_calls
    assert (made.name, made.parsed(), reply.finish) == ("read_file", {"path": "a"}, "tool_calls")
    assert reply.usage == Usage(input=12, output=38, reasoning=30)


def test_a_cut_connection_to_gemini_is_no_reply() -> None:
    async def cut() -> AsyncIterator[bytes]:
        yield f"data: {json.dumps(candidate({'text': 'hi '}))}\n\n".encode()
        raise httpx.ReadError("connection reset")

    error = failure(
        httpx.Response(200, headers={"content-type": "text/event-stream"}, content=cut()), ASKED_GEMINI
    )
    assert (error.status, error.phase) == (200, "stream")


def test_a_quota_of_gemini_keeps_its_text() -> None:
    body = {"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "14s"}]}}
    error = failure(httpx.Response(429, json=body), ASKED_GEMINI)
    assert (error.status, error.phase) == (429, "status")
    assert json.loads(error.body) == body
