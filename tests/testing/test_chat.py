"""Every face answers chats in the shape of the real server, whole and in pieces."""

from __future__ import annotations

import json
from typing import Any, get_args

import httpx
import pytest

from agentx.testing.brain import Call, KeyKeeper, Said, Script
from agentx.testing.conversations import PERSONAL_KEY, SYSTEM_KEY, conversation27
from agentx.testing.faces import Face
from agentx.testing.server import FaultServer

FACES: tuple[Face, ...] = get_args(Face)
ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Say hello."}]}
READ = Call("read_file", {"path": "notes/note-01.txt"})


def events(response: httpx.Response) -> list[Any]:
    """The events of a stream; the last one, `[DONE]`, stays a text."""
    assert response.headers["content-type"] == "text/event-stream"
    texts = [line.removeprefix("data: ") for line in response.text.split("\n") if line]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


@pytest.mark.parametrize("face", FACES)
def test_a_reply_comes_whole(client: httpx.Client, face: Face) -> None:
    with FaultServer(Script(["Hello there."]), face=face) as server:
        body = client.post(f"{server.v1}/chat/completions", json=ASK).json()
    assert body["object"] == "chat.completion"
    assert body["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}
    ]
    usage = body["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    assert ("timings" in body) == (face == "llamacpp")


@pytest.mark.parametrize("face", FACES)
def test_a_stream_ends_with_finish_usage_and_done(client: httpx.Client, face: Face) -> None:
    ask = ASK | {"stream": True, "stream_options": {"include_usage": True}}
    with FaultServer(Script(["Hello there, how are you?"]), face=face) as server:
        *chunks, usage, done = events(client.post(f"{server.v1}/chat/completions", json=ask))
    assert done == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] > 0
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    texts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "".join(texts) == "Hello there, how are you?"
    assert len(texts) > 4


def test_usage_comes_only_when_it_was_asked_for(client: httpx.Client) -> None:
    with FaultServer(Script(["Hello."])) as server:
        made = events(client.post(f"{server.v1}/chat/completions", json=ASK | {"stream": True}))
    assert not any("usage" in chunk for chunk in made[:-1])


@pytest.mark.parametrize("face", FACES)
def test_a_tool_call_comes_whole_and_in_pieces(client: httpx.Client, face: Face) -> None:
    with FaultServer(Script([READ, READ]), face=face) as server:
        address = f"{server.v1}/chat/completions"
        choice = client.post(address, json=ASK).json()["choices"][0]
        chunks = events(client.post(address, json=ASK | {"stream": True}))[:-1]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["id"].startswith("call_")
    assert call["function"]["name"] == "read_file"
    assert json.loads(call["function"]["arguments"]) == READ.arguments
    deltas = [delta for chunk in chunks for delta in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert [delta["function"]["name"] for delta in deltas if "name" in delta["function"]] == ["read_file"]
    assert json.loads("".join(delta["function"]["arguments"] for delta in deltas)) == READ.arguments
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_ollamas_own_route_streams_lines_by_itself(client: httpx.Client) -> None:
    with FaultServer(Script(["One two three four.", Said("", (READ,))]), face="ollama") as server:
        texts = client.post(f"{server.url}/api/chat", json=ASK)
        whole = client.post(f"{server.url}/api/chat", json=ASK | {"stream": False}).json()
    assert texts.headers["content-type"] == "application/x-ndjson"
    *lines, last = [json.loads(line) for line in texts.text.splitlines()]
    assert "".join(line["message"]["content"] for line in lines) == "One two three four."
    assert all(line["done"] is False for line in lines)
    assert (last["done"], last["done_reason"]) == (True, "stop")
    assert last["prompt_eval_count"] > 0
    assert last["eval_count"] > 0
    assert whole["message"] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "read_file", "arguments": READ.arguments}}],
    }
    assert whole["done_reason"] == "stop"


def test_reasoning_stands_apart(client: httpx.Client) -> None:
    thinking = Said("Four.", reasoning="Two and two.")
    with FaultServer(Script([thinking, thinking]), face="ollama") as server:
        body = client.post(f"{server.v1}/chat/completions", json=ASK).json()
        native = client.post(f"{server.url}/api/chat", json=ASK | {"stream": False}).json()
    assert body["choices"][0]["message"]["reasoning_content"] == "Two and two."
    assert native["message"]["thinking"] == "Two and two."


def test_a_truncating_server_answers_200_and_has_forgotten(client: httpx.Client) -> None:
    ask = {"model": "scripted", "messages": conversation27()}
    with FaultServer(KeyKeeper(), face="ollama", window=4_096, overflow="drop_oldest") as server:
        answer = client.post(f"{server.v1}/chat/completions", json=ask)
        (seen,) = server.chats
    assert answer.status_code == 200
    text = answer.json()["choices"][0]["message"]["content"]
    assert SYSTEM_KEY in text
    assert PERSONAL_KEY not in text
    assert answer.json()["usage"]["prompt_tokens"] == seen.prompt_tokens
    assert seen.prompt_tokens is not None
    assert seen.prompt_tokens < 4_096
    assert seen.dropped > 0
    assert seen.kept is not None
    assert len(seen.kept) + seen.dropped == 27


def test_a_large_window_remembers_both_keys(client: httpx.Client) -> None:
    ask = {"model": "scripted", "messages": conversation27()}
    with FaultServer(KeyKeeper(), window=8_192) as server:
        text = client.post(f"{server.v1}/chat/completions", json=ask).text
    assert SYSTEM_KEY in text
    assert PERSONAL_KEY in text


def test_num_ctx_sets_the_window_on_ollamas_own_route_only(client: httpx.Client) -> None:
    ask = {"model": "scripted", "messages": conversation27(), "options": {"num_ctx": 8_192}, "stream": False}
    with FaultServer(KeyKeeper(), face="ollama", window=4_096, overflow="drop_oldest") as server:
        assert PERSONAL_KEY in client.post(f"{server.url}/api/chat", json=ask).text
        assert PERSONAL_KEY not in client.post(f"{server.v1}/chat/completions", json=ask).text
        assert server.loads == [8_192, 4_096]


def test_num_ctx_is_clamped_to_what_the_model_was_trained_for(client: httpx.Client) -> None:
    ask = ASK | {"options": {"num_ctx": 65_536}, "stream": False}
    with FaultServer(face="ollama", trained=32_768) as server:
        client.post(f"{server.url}/api/chat", json=ask)
        assert server.loads == [32_768]


@pytest.mark.parametrize("honours", [True, False])
def test_truncate_false_is_an_error_only_where_it_is_known(client: httpx.Client, honours: bool) -> None:
    ask = {"model": "scripted", "messages": conversation27(), "truncate": False, "stream": False}
    with FaultServer(face="ollama", window=4_096, overflow="drop_oldest", honours_truncate=honours) as server:
        assert client.post(f"{server.url}/api/chat", json=ask).status_code == (400 if honours else 200)
        assert client.post(f"{server.v1}/chat/completions", json=ask).status_code == 200


def test_output_stops_at_max_tokens_and_at_the_window(client: httpx.Client) -> None:
    """llama.cpp: 200, `length`, and the total is exactly the window."""
    long = Script(["word " * 5_000, "word " * 5_000])
    with FaultServer(long, face="llamacpp", window=2_048) as server:
        short = client.post(f"{server.v1}/chat/completions", json=ASK | {"max_tokens": 7}).json()
        full = client.post(f"{server.v1}/chat/completions", json=ASK | {"max_tokens": 4_000}).json()
    assert short["choices"][0]["finish_reason"] == "length"
    assert short["usage"]["completion_tokens"] == 7
    assert full["choices"][0]["finish_reason"] == "length"
    assert full["usage"]["total_tokens"] == 2_048


def test_a_script_that_is_over_says_so(client: httpx.Client) -> None:
    with FaultServer(Script(["only one"])) as server:
        client.post(f"{server.v1}/chat/completions", json=ASK)
        second = client.post(f"{server.v1}/chat/completions", json=ASK)
    assert second.status_code == 500
    assert "the script is over after 1 replies" in second.text
