"""Each fault is seen by a client exactly as it was meant."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from agentx.testing.brain import Call, Script
from agentx.testing.faults import (
    Close,
    CutReply,
    CutStream,
    EmptyChoices,
    EmptyStream,
    ErrorIn200,
    ErrorInStream,
    FakeUsage,
    Fault,
    Garbage200,
    HalfToolCall,
    Hang,
    Html200,
    KeepaliveForever,
    NoFinish,
    NullContent,
    ReasoningOnly,
    Slow,
    Stall,
    Status,
    after,
    always,
    at,
    first,
    rate_limited,
)
from agentx.testing.server import FaultServer

ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Say hello."}]}
STREAM = ASK | {"stream": True, "stream_options": {"include_usage": True}}
TEXT = "Hello there, how are you today? I am quite well, thank you."


def ask(client: httpx.Client, fault: Fault, body: dict[str, Any] = ASK, *, native: bool = False) -> httpx.Response:
    with FaultServer(Script([TEXT]), face="ollama", schedule=always(fault)) as server:
        return client.post(server.url + ("/api/chat" if native else "/v1/chat/completions"), json=body)


def test_a_status_comes_with_headers_and_body(client: httpx.Client) -> None:
    response = ask(client, rate_limited(30))
    assert (response.status_code, response.headers["retry-after"]) == (429, "30")
    assert response.json()["error"]["code"] == "rate_limit_exceeded"
    assert ask(client, Status(502, body="<html>")).text == "<html>"
    assert ask(client, Status(503), native=True).json() == {
        "error": "The model is overloaded. Please try again later."
    }
    assert ask(client, Status(529)).json()["error"]["message"] == "Overloaded"


def test_two_hundred_is_not_a_success(client: httpx.Client) -> None:
    assert ask(client, Html200()).text.startswith("<!doctype html>")
    with pytest.raises(ValueError, match="Unterminated"):
        ask(client, Garbage200()).json()
    assert ask(client, ErrorIn200()).json()["error"]["type"] == "overloaded_error"
    assert ask(client, ErrorIn200("full"), STREAM).text.startswith('data: {"error": {"message": "full"')
    assert ask(client, EmptyStream(), STREAM).text == ""
    assert ask(client, EmptyChoices()).json()["choices"] == []
    assert '"delta"' not in ask(client, EmptyChoices(), STREAM).text
    assert ask(client, NullContent()).json()["choices"][0]["message"] == {"role": "assistant", "content": None}
    thinking = ask(client, ReasoningOnly()).json()["choices"][0]["message"]
    assert thinking["content"] == ""
    assert thinking["reasoning_content"]


@pytest.mark.parametrize("native", [False, True])
def test_a_stream_can_stop_anywhere(client: httpx.Client, native: bool) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, CutStream(2), STREAM, native=native)
    ended = ask(client, NoFinish(), STREAM, native=native).text
    assert "[DONE]" not in ended
    assert "done_reason" not in ended
    assert '"finish_reason": "stop"' not in ended
    error = ask(client, ErrorInStream(2, "it broke"), STREAM, native=native).text
    assert error.count("\n") >= 3
    assert "it broke" in error.strip().splitlines()[-1]


@pytest.mark.parametrize("kind", ["comment", "empty"])
def test_signs_of_life_are_no_content(client: httpx.Client, kind: Any) -> None:
    fault = KeepaliveForever(after=1, every=0.001, kind=kind)
    with (
        FaultServer(Script([TEXT]), schedule=always(fault)) as server,
        client.stream("POST", f"{server.v1}/chat/completions", json=STREAM) as response,
    ):
        lines = response.iter_lines()
        got = [line for line in (next(lines) for _ in range(20)) if line]
    beats = [line for line in got[1:] if line == ": keepalive" or json.loads(line[6:])["choices"][0]]
    assert len(beats) == len(got) - 1
    assert (": keepalive" in got) == (kind == "comment")


def test_the_server_can_be_closed_while_it_hangs(client: httpx.Client) -> None:
    """And the request stands in the log although nothing was answered."""
    for fault in (Hang(), Stall(1)):
        with FaultServer(Script([TEXT]), schedule=always(fault)) as server:
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"{server.v1}/chat/completions", json=STREAM, timeout=0.5)
            (seen,) = server.chats
            assert not seen.done
        assert seen.done


def test_a_connection_can_close_without_a_byte(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        ask(client, Close())
    with pytest.raises(httpx.RemoteProtocolError):  # half of the announced body
        ask(client, CutStream())


def test_a_slow_answer_is_a_right_answer(client: httpx.Client) -> None:
    before = time.monotonic()
    assert ask(client, Slow(0.03)).json()["choices"][0]["message"]["content"] == TEXT
    assert time.monotonic() - before >= 0.03


def test_half_a_tool_call_is_said_to_be_whole(client: httpx.Client) -> None:
    call = Call("read_file", {"path": "a.txt"})
    with FaultServer(Script([call]), schedule=always(HalfToolCall())) as server:
        choice = client.post(f"{server.v1}/chat/completions", json=ASK).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"path":'


def test_a_reply_can_be_cut_and_a_count_can_lie(client: httpx.Client) -> None:
    cut = ask(client, CutReply(3)).json()
    assert cut["choices"][0]["finish_reason"] == "length"
    assert cut["choices"][0]["message"]["content"] == "Hello there,"
    assert ask(client, FakeUsage(63)).json()["usage"]["prompt_tokens"] == 63
    assert "usage" not in ask(client, FakeUsage()).json()


def test_schedules_go_by_the_number_of_the_chat() -> None:
    down = Status(503)
    for schedule, expected in (
        (always(down), [down, down, down]),
        (first(2, down), [down, down, None]),
        (after(2, down), [None, None, down]),
        (at({2: down}), [None, down, None]),
    ):
        assert [schedule(number) for number in (1, 2, 3)] == expected


def test_only_chats_count_for_the_schedule(client: httpx.Client) -> None:
    with FaultServer(Script([TEXT]), schedule=first(1, Status(500))) as server:
        client.get(f"{server.v1}/models")
        client.get(f"{server.v1}/models")
        statuses = [client.post(f"{server.v1}/chat/completions", json=ASK).status_code for _ in range(2)]
        assert statuses == [500, 200]
        assert [seen.chat for seen in server.requests] == [None, None, 1, 2]
