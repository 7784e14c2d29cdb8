"""The litellm wire against the routes of Anthropic and Gemini: nothing of a reply or a refusal is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from agentx.chain.classify import classify
from agentx.config.cards import read_cards
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


def wire(prefix: str, url: str, http: httpx.AsyncClient) -> LiteLLMWire:
    provider = Provider(
        name=prefix, card=prefix, wire="litellm", base_url=url, api_key_env="K", litellm_prefix=prefix
    )
    return LiteLLMWire(provider, http, lambda: "sk-very-secret")


def ask(answer: httpx.Response | Exception, request: Request = ASKED) -> tuple[Reply, httpx.Request]:
    async def run() -> tuple[Reply, httpx.Request]:
        with respx.mock:
            http = httpx.AsyncClient()
            if request.model.startswith("gemini"):
                made, route = wire("gemini", "https://g.example", http), respx.post(url__startswith=GEMINI)
            else:
                made, route = wire("anthropic", "https://a.example", http), respx.post(ANTHROPIC)
            if isinstance(answer, Exception):
                route.mock(side_effect=answer)
            else:
                route.mock(return_value=answer)
            try:
                reply = await made.ask(request, Timers(total=60))
            finally:
                await http.aclose()
                assert route.call_count == 1, "not exactly one request"
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


def class_of(error: RequestFailed, card: str = "anthropic") -> str:
    """What the chain makes of it, with the words of the shipped card."""
    patterns = read_cards(Path("/nowhere"))[card].patterns()
    return classify(error, Provider(name=card, card=card, wire="litellm", errors=patterns), 0.0).error_class


def said(status: int, kind: str, message: str, **headers: str) -> httpx.Response:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return httpx.Response(status, headers=headers, json=body)


@pytest.mark.parametrize(
    ("answer", "means", "status"),
    [
        (said(429, "rate_limit_error", "slow down", **{"retry-after": "7"}), "rate_limit", 429),
        (said(429, "insufficient_quota", "You exceeded your current quota"), "quota", 429),
        (said(529, "overloaded_error", "Overloaded"), "overloaded", 529),
        (said(400, "invalid_request_error", "Your credit balance is too low to access the API"), "quota", 400),
        (said(402, "billing_error", "Insufficient credits"), "quota", 402),
        (
            said(400, "invalid_request_error", "prompt is too long: 201000 tokens > 200000"),
            "overflow",
            400,
        ),
        (said(401, "authentication_error", "invalid x-api-key"), "auth", 401),
        (said(404, "not_found_error", "model: claude-x"), "not_found", 404),
        (httpx.ConnectError("refused"), "network", None),
        (httpx.ReadTimeout("too slow"), "timeout", None),
        (httpx.Response(200, html="<html>log in</html>"), "invalid_reply", 200),
    ],
    ids=["429", "quota", "529", "credit", "402", "too long", "key", "model", "refused", "timeout", "page"],
)
def test_what_litellm_loses_is_found_again_after_exactly_one_request(
    answer: httpx.Response | Exception, means: str, status: int | None
) -> None:
    error = failure(answer)
    assert (class_of(error), error.status) == (means, status)
    if isinstance(answer, httpx.Response) and "retry-after" in answer.headers:
        assert error.headers["retry-after"] == "7"


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


def test_a_stream_of_gemini_that_ends_early_and_cleanly_is_no_reply() -> None:
    error = failure(stream([candidate({"text": "half an ans"})]), ASKED_GEMINI)
    assert (error.phase, class_of(error, "gemini")) == ("stream", "network")


@pytest.mark.parametrize("before", [[], [candidate({"text": "hi "})]], ids=["at once", "in the middle"])
def test_an_error_of_gemini_inside_a_stream_means_what_it_says(before: list[dict[str, Any]]) -> None:
    body = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    error = failure(stream([*before, body]), ASKED_GEMINI)
    assert (error.phase, class_of(error, "gemini")) == ("stream", "overloaded")
    assert json.loads(error.body) == body


def test_a_quota_of_gemini_keeps_its_text() -> None:
    body = {"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "14s"}]}}
    error = failure(httpx.Response(429, json=body), ASKED_GEMINI)
    assert (error.status, error.phase) == (429, "status")
    assert json.loads(error.body) == body
