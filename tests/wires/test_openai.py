"""The openai wire on real sockets: what comes whole is a reply, everything else is a failure with its phase."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
import respx

from agentx.config.links import Provider
from agentx.errors import AgentxError, RequestFailed
from agentx.wires.make import client
from agentx.wires.messages import Message, Reply, Request, Timers, Tool, ToolCall, Usage
from agentx.wires.openai import OpenAIWire

Serve = Callable[..., AbstractAsyncContextManager[tuple[str, list[bytes]]]]
Events = Callable[..., bytes]

READ = Tool("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Request(model="qwen", messages=[Message(role="user", text="hi")], tools=[READ], max_tokens=64)


def provider(url: str = "https://api.example/v1", **changes: Any) -> Provider:
    settings: dict[str, Any] = {"name": "box", "card": "openai-compatible", "wire": "openai", "base_url": url}
    return Provider(**settings | changes)


def delta(finish: str | None = None, **piece: Any) -> dict[str, Any]:
    return {"model": "qwen-2", "choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}


def reply_to(serve: Serve, *steps: bytes | str | float, timers: Timers | None = None, **changes: Any) -> Reply:
    async def run() -> Reply:
        async with serve(*steps) as (url, _), client() as http:
            wire = OpenAIWire(provider(url + "/v1", **changes), http)
            return await wire.ask(ASKED, timers or Timers(total=20))

    return asyncio.run(run())


def failure_of(
    serve: Serve, *steps: bytes | str | float, timers: Timers | None = None, **changes: Any
) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        reply_to(serve, *steps, timers=timers, **changes)
    return caught.value


def plain(status: str, body: str, content_type: str = "application/json", headers: str = "") -> bytes:
    data = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def test_a_stream_becomes_one_reply_with_its_usage(serve: Serve, events: Events) -> None:
    usage = {"prompt_tokens": 37, "completion_tokens": 14, "prompt_tokens_details": {"cached_tokens": 24}}
    steps = events(
        delta(role="assistant", content=None),
        ": keepalive\n\n",
        delta(reasoning_content="let me see"),
        delta(content="hel"),
        delta(content="lo"),
        delta(finish="stop"),
        {"choices": [], "usage": usage},
        "data: [DONE]\n\n",
    )
    reply = reply_to(serve, steps)
    assert (reply.message.text, reply.message.reasoning) == ("hello", "let me see")
    assert (reply.finish, reply.model) == ("stop", "qwen-2")
    assert reply.usage == Usage(input=37, output=14, cache_read=24)
    assert reply.headers["content-type"] == "text/event-stream"


def test_the_request_is_prepared_json_with_the_key_in_its_header() -> None:
    async def run() -> httpx.Request:
        async with client() as http:
            with respx.mock:
                route = respx.post("https://api.example/v1/chat/completions").respond(
                    json={"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
                )
                settings = provider(api_key_env="BOX_KEY", headers={"X-Title": "agentx"})
                await OpenAIWire(settings, http, lambda: "sk-1").ask(ASKED, Timers())
                return route.calls.last.request

    sent = asyncio.run(run())
    assert sent.headers["authorization"] == "Bearer sk-1"
    assert sent.headers["x-title"] == "agentx"
    assert json.loads(sent.content) == {
        "model": "qwen",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "max_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("auth", ["x-api-key", "x-goog-api-key", "api-key"])
def test_the_key_goes_into_the_header_that_the_provider_wants(auth: str) -> None:
    async def run() -> httpx.Headers:
        async with client() as http:
            with respx.mock:
                route = respx.post("https://api.example/v1/chat/completions").respond(
                    json={"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
                )
                await OpenAIWire(provider(auth=auth), http, lambda: " sk-1\n").ask(ASKED, Timers())
                return route.calls.last.request.headers

    headers = asyncio.run(run())
    assert headers[auth] == "sk-1"
    assert "authorization" not in headers


def test_a_missing_key_is_told_by_its_variable_and_nothing_is_sent() -> None:
    async def run() -> None:
        async with client() as http:
            with respx.mock:
                await OpenAIWire(provider(api_key_env="BOX_KEY"), http, lambda: "").ask(ASKED, Timers())

    with pytest.raises(RequestFailed) as caught:
        asyncio.run(run())
    error = caught.value
    assert (error.phase, error.error_class, error.status) == ("connect", "auth", None)
    assert error.message == "box: no key, `BOX_KEY` is not set"
    assert error.hint == "export BOX_KEY=..."


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown() -> None:
    async def run() -> None:
        async with client() as http:
            await OpenAIWire(provider(api_key_env="K"), http, lambda: "sk\nsecret").ask(ASKED, Timers())

    with pytest.raises(RequestFailed) as caught:
        asyncio.run(run())
    assert caught.value.error_class == "auth"
    assert "secret" not in repr(caught.value)


def test_an_optional_key_may_be_missing(serve: Serve, events: Events) -> None:
    steps = events(delta(content="ok"), delta(finish="stop"), "data: [DONE]\n\n")
    assert reply_to(serve, steps, api_key_env="BOX_KEY", key_optional=True).message.text == "ok"


def test_an_address_that_is_none_is_a_mistake_of_the_configuration() -> None:
    async def run() -> None:
        async with client() as http:
            await OpenAIWire(provider("box:8000"), http).ask(ASKED, Timers())

    with pytest.raises(AgentxError, match=r"providers\.box\.base_url"):
        asyncio.run(run())


def test_a_key_that_is_echoed_stays_out_of_the_error(serve: Serve) -> None:
    async def run() -> RequestFailed:
        body = '{"error": {"message": "bad key sk-very-secret"}}'
        async with serve(plain("401 Unauthorized", body)) as (url, _), client() as http:
            wire = OpenAIWire(provider(url, api_key_env="K"), http, lambda: "sk-very-secret")
            with pytest.raises(RequestFailed) as caught:
                await wire.ask(ASKED, Timers())
            return caught.value

    error = asyncio.run(run())
    assert (error.status, error.phase) == (401, "status")
    assert error.message == "box/qwen: 401 Unauthorized: bad key [key]"
    assert error.body == '{"error": {"message": "bad key [key]"}}'


def test_a_refusal_keeps_status_headers_and_text(serve: Serve) -> None:
    body = '{"error":{"message":"slow down","type":"rate_limit"}}'
    step = plain("429 Too Many Requests", body, headers="Retry-After: 7\r\nSet-Cookie: session=1\r\n")
    error = failure_of(serve, step)
    assert (error.status, error.phase, error.body, error.error_class) == (429, "status", body, None)
    assert error.headers["retry-after"] == "7"
    assert "set-cookie" not in error.headers
    assert error.message == "box/qwen: 429 Too Many Requests: slow down"


def test_a_refusal_whose_text_is_cut_keeps_its_status(serve: Serve) -> None:
    head = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 999\r\n\r\nover"
    error = failure_of(serve, head, "cut")
    assert (error.status, error.phase) == (503, "status")


def test_the_text_of_an_error_is_kept_up_to_64_kib(serve: Serve) -> None:
    error = failure_of(serve, plain("500 Internal Server Error", "x" * 200_000, "text/plain"))
    assert len(error.body) == 64 * 1024
    assert len(error.message) < 400


def test_plain_json_is_read_though_a_stream_was_asked_for(serve: Serve) -> None:
    body = json.dumps(
        {
            "model": "m",
            "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        },
        indent=1,
    )
    reply = reply_to(serve, plain("200 OK", "\n\n" + body))
    assert (reply.message.text, reply.usage) == ("hello", Usage(input=5, output=1))


@pytest.mark.parametrize(
    ("body", "content_type", "phase"),
    [
        ("<html>log in</html>", "text/html", "body"),
        ('{"error": {"message": "overloaded"}}', "application/json", "body"),
        ('{"error": {"message": "overloaded"}}\n\ndata: [DONE]\n\n', "text/event-stream", "body"),
        ('[{"error": {"message": "overloaded"}}]', "application/json", "body"),
        ('{"detail": "not here"}', "application/json", "body"),
        ('{"choices": [{"message": {"con', "application/json", "body"),
        ('data: {"error": {"message": "overloaded"}}\n\n', "text/event-stream", "stream"),
        ("event: error\ndata: overloaded\n\n", "text/event-stream", "stream"),
        ("data: <html>\n\n", "text/event-stream", "stream"),
        ("", "text/event-stream", "stream"),
        ("data: [DO", "text/event-stream", "stream"),
    ],
)
def test_a_200_that_is_no_reply_fails_with_its_text(
    serve: Serve, body: str, content_type: str, phase: str
) -> None:
    error = failure_of(serve, plain("200 OK", body, content_type))
    assert (error.status, error.phase, error.error_class) == (200, phase, None)
    for word in ("overloaded", "log in", "not here"):
        assert (word in error.body) == (word in body)


@pytest.mark.parametrize(
    ("body", "error_class"),
    [
        ('{"choices": []}', "empty_reply"),
        ('{"choices": null}', "empty_reply"),
        ('{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}', "empty_reply"),
        ('{"choices": [{"message": {"content": "  \\n"}, "finish_reason": "stop"}]}', "empty_reply"),
        ('{"choices": [{"message": {"content": "<think>hm"}, "finish_reason": "length"}]}', "cut"),
        ('{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}', "content_filter"),
    ],
)
def test_an_answer_without_an_answer_is_refused(serve: Serve, body: str, error_class: str) -> None:
    error = failure_of(serve, plain("200 OK", body))
    assert (error.phase, error.error_class) == ("reply", error_class)


def test_a_stream_that_ends_without_a_reason_is_no_reply(serve: Serve, events: Events) -> None:
    error = failure_of(serve, events(delta(content="hel"), delta(content="lo")))
    assert (error.phase, error.status) == ("stream", 200)
    assert error.message == "box/qwen: the stream ended in the middle of the reply"


def test_done_without_a_reason_is_no_end(serve: Serve, events: Events) -> None:
    """In a stream and in a plain answer. A server that never gives one (vllm-mlx 0.4) can be called so."""
    stream = events(delta(content="half an ans"), "data: [DONE]\n\n")
    body = json.dumps({"choices": [{"message": {"content": "half an ans"}, "finish_reason": None}]})
    for steps in (stream, plain("200 OK", body)):
        error = failure_of(serve, steps)
        assert (error.phase, error.status, error.error_class) == ("reply", 200, "invalid_reply")
        assert error.message.endswith(": no reason was given why the reply ended: it may be cut")
        assert error.hint == "if this server never gives one, set `gives_reason: false` at its provider"
        assert reply_to(serve, steps, gives_reason=False).finish == "stop"


def test_a_cut_connection_is_no_reply(serve: Serve, events: Events) -> None:
    error = failure_of(serve, events(delta(content="hel"), end=False), "cut")
    assert (error.phase, error.status, error.timed_out) == ("stream", 200, False)


def test_a_cut_after_the_reason_loses_only_the_usage(serve: Serve, events: Events) -> None:
    reply = reply_to(serve, events(delta(content="hello"), delta(finish="stop"), end=False), "cut")
    assert (reply.message.text, reply.usage) == ("hello", None)


def test_a_server_that_never_closes_its_stream_is_left(serve: Serve, events: Events) -> None:
    steps = events(delta(content="hello"), delta(finish="stop"), "data: [DONE]\n\n", end=False)
    assert reply_to(serve, steps, "hold").message.text == "hello"


def test_a_connection_closed_before_an_answer_fails_at_the_headers(serve: Serve) -> None:
    error = failure_of(serve, "cut")
    assert (error.phase, error.status, error.timed_out) == ("headers", None, False)


def test_an_error_in_a_running_stream_drops_the_reply(serve: Serve, events: Events) -> None:
    error = failure_of(serve, events(delta(content="hel"), {"error": {"code": 529, "message": "Overloaded"}}))
    assert (error.phase, error.status) == ("stream", 200)
    assert json.loads(error.body) == {"error": {"code": 529, "message": "Overloaded"}}


def test_a_reason_that_means_a_failure_drops_the_reply(serve: Serve, events: Events) -> None:
    error = failure_of(serve, events(delta(content="hel"), delta(finish="error")))
    assert error.phase == "stream"


def test_nobody_listening_fails_at_connect() -> None:
    async def run() -> RequestFailed:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
            async with client() as http:
                with pytest.raises(RequestFailed) as caught:
                    await OpenAIWire(provider(url), http).ask(ASKED, Timers())
        return caught.value

    error = asyncio.run(run())
    assert (error.phase, error.status, error.timed_out) == ("connect", None, False)
    assert "refused" in error.message.lower()


SHORT = Timers(connect=5, first=0.5, idle=0.5, total=20)


def test_silence_before_the_headers_ends_by_the_headers_timer(serve: Serve) -> None:
    """By its own, or by the one for the first content where it has none, or a longer one."""
    for timers in (Timers(headers=0.5, first=20), SHORT, Timers(headers=20, first=0.5)):
        error = failure_of(serve, "hold", timers=timers)
        assert (error.phase, error.status, error.timed_out) == ("headers", None, True)
        assert error.message == "box/qwen: no answer within 0.5 s"


def test_headers_and_then_nothing_ends_by_the_timer_of_the_first_content(serve: Serve, events: Events) -> None:
    error = failure_of(serve, events(end=False), "hold", timers=Timers(headers=20, first=1))
    assert (error.phase, error.status, error.timed_out) == ("stream", 200, True)
    assert error.message == "box/qwen: no content within 1 s"


def test_an_answer_that_began_in_time_may_think_for_longer(serve: Serve, events: Events) -> None:
    """Its headers come at once; its content comes when the time for headers is long over."""
    rest = [chunked(f"data: {json.dumps(one)}\n\n") for one in (delta(content="ok"), delta(finish="stop"))]
    steps = (events(end=False), 4.0, b"".join(rest) + b"0\r\n\r\n")
    assert reply_to(serve, *steps, timers=Timers(headers=3, first=60, total=60)).message.text == "ok"


def test_a_stream_of_comments_ends_by_the_first_timer(serve: Serve, events: Events) -> None:
    error = failure_of(
        serve, events(*[": keepalive\n\n", delta(content="")] * 50, end=False), "hold", timers=SHORT
    )
    assert (error.phase, error.status, error.timed_out) == ("stream", 200, True)


def test_a_stalled_stream_ends_by_the_idle_timer(serve: Serve, events: Events) -> None:
    timers = Timers(first=20, idle=0.05, total=20)
    steps = events(delta(content="hel"), *[": keepalive\n\n", delta(content=None)] * 50, end=False)
    error = failure_of(serve, steps, "hold", timers=timers)
    assert (error.phase, error.timed_out) == ("stream", True)
    assert error.message == "box/qwen: no new content for 0.05 s"


def chunked(text: str) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text.encode()), text.encode())


def test_blanks_alone_are_no_content(serve: Serve, events: Events) -> None:
    """A model that writes nothing but blanks has stalled, however busily."""
    blank = chunked(f"data: {json.dumps(delta(content=' '))}\n\n")
    steps: list[bytes | float] = [events(delta(content="hel"), end=False), *[0.1, blank] * 200]
    error = failure_of(serve, *steps, timers=Timers(first=20, idle=1, total=60))
    assert (error.timed_out, error.message) == (True, "box/qwen: no new content for 1 s")


def test_a_plain_body_that_drips_has_stalled(serve: Serve) -> None:
    head = b'HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"choices": ['
    steps: list[bytes | float] = [head, *[0.1, b"["] * 200]
    error = failure_of(serve, *steps, timers=Timers(first=1, idle=1, total=60))
    assert (error.timed_out, error.phase) == (True, "body")


def test_a_call_that_was_announced_and_did_not_come_is_no_reply(serve: Serve, events: Events) -> None:
    error = failure_of(
        serve, events(delta(content="I will look."), delta(finish="tool_calls"), "data: [DONE]\n\n")
    )
    assert (error.error_class, error.message) == (
        "invalid_reply",
        "qwen-2: a tool call was announced and none came",
    )


def test_the_whole_attempt_ends_by_the_total_timer(serve: Serve, events: Events) -> None:
    timers = Timers(first=20, idle=20, total=0.05)
    error = failure_of(serve, events(delta(content="hel"), end=False), "hold", timers=timers)
    assert (error.timed_out, error.message) == (True, "box/qwen: not finished within 0.05 s")


def test_a_stalled_body_of_plain_json_ends_by_the_idle_timer(serve: Serve) -> None:
    timers = Timers(first=20, idle=0.05, total=20)
    head = b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"choices": ['
    error = failure_of(serve, head, "hold", timers=timers)
    assert (error.phase, error.timed_out) == ("body", True)


def test_a_reply_without_end_is_ended_at_64_mib(serve: Serve) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    piece = b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % (b"x" * 2**20)
    error = failure_of(serve, head, *[piece] * 65)
    assert (error.status, error.message) == (200, "box/qwen: the answer is larger than 64 MiB")


def test_tool_calls_are_joined_from_their_pieces(serve: Serve, events: Events) -> None:
    def call(index: int, **rest: Any) -> dict[str, Any]:
        return delta(tool_calls=[{"index": index, **rest}])

    reply = reply_to(
        serve,
        events(
            call(0, id="call_a", function={"name": "read_", "arguments": ""}),
            call(0, function={"name": "file", "arguments": '{"pa'}),
            call(1, id="call_b", function={"name": "read_file", "arguments": '{"path":"b"}'}),
            call(0, function={"arguments": 'th":"a"}'}),
            delta(finish="tool_calls"),
            "data: [DONE]\n\n",
        ),
    )
    assert reply.finish == "tool_calls"
    assert reply.message.tool_calls == (
        ToolCall("call_a", "read_file", '{"path":"a"}'),
        ToolCall("call_b", "read_file", '{"path":"b"}'),
    )


def test_a_tool_call_cut_at_the_length_limit_is_said_to_be_cut(serve: Serve, events: Events) -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": '{"pa'}}
    error = failure_of(serve, events(delta(tool_calls=[piece]), delta(finish="length")))
    assert (error.phase, error.error_class) == ("reply", "cut")
    assert error.message.endswith("a call of `read_file` was cut at its length limit")


def test_a_call_written_as_text_is_a_call(serve: Serve, events: Events) -> None:
    """llama.cpp with Qwen's own template: captures, chat_tools_auto."""
    text = '{"name": "read_file", "arguments": {"path": "a"}}'
    steps = events(delta(content=text), delta(finish="stop"), "data: [DONE]\n\n")
    first, second = reply_to(serve, steps), reply_to(serve, steps)
    (call,) = first.message.tool_calls
    assert (call.name, call.parsed(), first.message.text) == ("read_file", {"path": "a"}, "")
    assert first.finish == "tool_calls"
    assert call == second.message.tool_calls[0]


def test_a_short_reply_cut_by_a_server_that_clamps_met_the_window(serve: Serve, events: Events) -> None:
    usage = {"prompt_tokens": 3990, "completion_tokens": 40}
    steps = events(delta(content="Once"), delta(finish="length"), {"choices": [], "usage": usage})
    assert reply_to(serve, steps, probes=("llamacpp",)).finish == "window"
    assert reply_to(serve, steps).finish == "length"


def test_a_server_that_says_it_truncated_is_believed(serve: Serve, events: Events) -> None:
    steps = events(delta(content="ok") | {"truncated": True}, delta(finish="stop"))
    assert reply_to(serve, steps).said_truncated


def test_a_connection_is_used_again_after_a_whole_stream(serve: Serve, events: Events) -> None:
    steps = events(delta(content="ok"), delta(finish="stop"), "data: [DONE]\n\n")

    async def run() -> int:
        async with serve(steps, one_connection=True) as (url, requests), client() as http:
            for _ in range(3):
                await OpenAIWire(provider(url), http).ask(ASKED, Timers())
            return len(requests)

    assert asyncio.run(run()) == 3
