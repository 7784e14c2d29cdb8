"""The ollama wire on real sockets, with the lines that a real Ollama wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.wires.make import client
from agentx.wires.messages import Message, Reply, Request, Timers, Tool, Usage
from agentx.wires.ollama import OllamaWire

Serve = Callable[..., AbstractAsyncContextManager[tuple[str, list[bytes]]]]

READ = Tool("read_file", "Reads a file.", {"type": "object"})
ASKED = Request(
    model="qwen05", messages=[Message(role="user", text="hi")], tools=[READ], max_tokens=64, num_ctx=2048
)


def lines(*pieces: dict[str, Any], status: str = "200 OK") -> bytes:
    body = "".join(json.dumps(piece) + "\n" for piece in pieces).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "qwen05", "message": {"role": "assistant", "content": text}, "done": False} | more


def end(**more: Any) -> dict[str, Any]:
    counts = {"done_reason": "stop", "prompt_eval_count": 15, "eval_count": 10}
    return said("", done=True) | counts | more


def reply_to(serve: Serve, *steps: bytes | str, request: Request = ASKED) -> Reply:
    async def run() -> Reply:
        async with serve(*steps) as (url, requests), client() as http:
            provider = Provider(name="ollama", card="ollama", wire="ollama", base_url=url)
            reply = await OllamaWire(provider, http).ask(request, Timers(total=20))
            assert requests[0].startswith(b"POST /api/chat ")
            return reply

    return asyncio.run(run())


def failure_of(serve: Serve, *steps: bytes | str) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        reply_to(serve, *steps)
    return caught.value


def test_lines_become_one_reply(serve: Serve) -> None:
    thinking = said("") | {"message": {"role": "assistant", "content": "", "thinking": "hm"}}
    reply = reply_to(serve, lines(thinking, said("Hel"), said("lo"), end()))
    assert (reply.message.text, reply.message.reasoning) == ("Hello", "hm")
    assert (reply.finish, reply.usage, reply.model) == ("stop", Usage(input=15, output=10), "qwen05")


def test_calls_get_ids_of_their_own_that_are_the_same_each_time(serve: Serve) -> None:
    call = {"function": {"name": "read_file", "arguments": {"path": "a"}}}
    piece = said("") | {"message": {"role": "assistant", "content": "", "tool_calls": [call, call]}}
    first, second = (reply_to(serve, lines(piece, end())).message.tool_calls for _ in range(2))
    assert [(made.name, made.arguments) for made in first] == [("read_file", '{"path": "a"}')] * 2
    assert first[0].id != first[1].id
    assert first == second


def test_a_reply_that_met_the_window_says_so(serve: Serve) -> None:
    full = end(done_reason="length", prompt_eval_count=1915, eval_count=64)
    assert reply_to(serve, lines(said("Once"), full)).finish == "length"
    full = end(done_reason="length", prompt_eval_count=2000, eval_count=48)
    assert reply_to(serve, lines(said("Once"), full)).finish == "window"


def test_a_prompt_from_the_cache_of_an_old_server_has_no_count(serve: Serve) -> None:
    piece = end()
    del piece["prompt_eval_count"]
    assert reply_to(serve, lines(said("ok"), piece)).usage is None


def test_an_error_inside_the_stream_drops_the_reply(serve: Serve) -> None:
    error = failure_of(serve, lines(said("Hel"), {"error": "an error was encountered while running the model"}))
    assert (error.phase, error.status) == ("stream", 200)
    assert "while running the model" in error.body


def test_a_stream_without_done_is_no_reply(serve: Serve) -> None:
    error = failure_of(serve, lines(said("Hel"), said("lo")))
    assert (error.phase, error.message) == ("stream", "ollama/qwen05: the stream ended in the middle of the reply")


def test_the_error_of_the_runner_is_taken_out_of_its_wrapping(serve: Serve) -> None:
    inner = {"error": {"code": 400, "message": "request (8226 tokens) exceeds", "n_ctx": 4096}}
    error = failure_of(serve, lines({"error": json.dumps(inner)}, status="400 Bad Request"))
    assert (error.phase, error.status) == ("status", 400)
    assert json.loads(error.body) == inner
    assert error.message == "ollama/qwen05: 400: request (8226 tokens) exceeds"


def test_a_missing_model_is_told_in_the_servers_words(serve: Serve) -> None:
    text = 'model "qwen05" not found, try pulling it first'
    error = failure_of(serve, lines({"error": text}, status="404 Not Found"))
    assert error.message == f"ollama/qwen05: 404 Not Found: {text}"


ODD: list[Any] = [
    "model is loading",
    [1],
    {"content": "x", "tool_calls": "y"},
    {"content": "", "tool_calls": ["y"]},
    {"content": "", "tool_calls": [{"function": "f"}]},
    {"content": "", "tool_calls": {"a": 1}},
    {"content": "", "tool_calls": [[]]},
]


@pytest.mark.parametrize("message", ODD, ids=str)
def test_an_odd_message_is_a_broken_reply_and_no_crash(serve: Serve, message: Any) -> None:
    error = failure_of(serve, lines({"model": "m", "message": message, "done": False}, end()))
    assert error.status == 200
