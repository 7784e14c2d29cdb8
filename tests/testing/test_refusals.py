"""Refusals in the exact words of the real servers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from agentx.testing.conversations import conversation27
from agentx.testing.counting import count_prompt
from agentx.testing.faces import Face
from agentx.testing.server import FaultServer

LONG: dict[str, Any] = {"model": "scripted", "messages": conversation27(), "stream": True}
SIZE = count_prompt(LONG["messages"])
LLAMACPP = {
    "error": {
        "code": 400,
        "message": f"request ({SIZE} tokens) exceeds the available context size (4096 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": SIZE,
        "n_ctx": 4096,
    }
}
OVERFLOW: dict[Face, Any] = {
    "openai": {
        "error": {
            "message": "This model's maximum context length is 4096 tokens. However, your messages resulted in "
            f"{SIZE} tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    },
    "llamacpp": LLAMACPP,
    "lmstudio": {
        "error": "The number of tokens to keep from the initial prompt is greater than the context length "
        f"(n_keep: {SIZE} >= n_ctx: 4096). Try to load the model with a larger context length, or provide a "
        "shorter input."
    },
    "vllm": {
        "error": {
            "message": "This model's maximum context length is 4096 tokens. However, your prompt contains at "
            "least 4097 input tokens, which exceeds this limit even without any output tokens. Please reduce the "
            "length of the input prompt. (parameter=input_tokens, value=4097)",
            "type": "BadRequestError",
            "param": "input_tokens",
            "code": 400,
        }
    },
}


@pytest.mark.parametrize("face", OVERFLOW)
def test_overflow_is_refused_in_the_servers_own_words(client: httpx.Client, face: Face) -> None:
    """Also when a stream was asked for: a plain JSON 400."""
    with FaultServer(face=face, window=4_096) as server:
        response = client.post(f"{server.v1}/chat/completions", json=LONG)
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("application/json")
    assert response.json() == OVERFLOW[face]


def test_ollama_passes_the_inner_refusal_on_as_text(client: httpx.Client) -> None:
    with FaultServer(face="ollama", window=4_096) as server:
        native = client.post(f"{server.url}/api/chat", json=LONG)
        compatible = client.post(f"{server.v1}/chat/completions", json=LONG)
    assert (native.status_code, compatible.status_code) == (400, 400)
    assert json.loads(native.json()["error"]) == LLAMACPP
    assert json.loads(compatible.json()["error"]["message"]) == LLAMACPP
    assert compatible.json()["error"]["type"] == "invalid_request_error"


def test_an_unknown_model_is_refused_except_by_llamacpp(client: httpx.Client) -> None:
    ask = {"model": "nope", "messages": [{"role": "user", "content": "x"}]}
    answers: dict[Face, tuple[int, Any]] = {}
    faces: tuple[Face, ...] = ("openai", "ollama", "llamacpp", "vllm")
    for face in faces:
        with FaultServer(face=face) as server:
            response = client.post(f"{server.v1}/chat/completions", json=ask)
            answers[face] = response.status_code, response.json().get("error")
    assert answers["openai"][0] == 404
    assert answers["openai"][1]["code"] == "model_not_found"
    assert answers["ollama"][1]["message"] == 'model "nope" not found, try pulling it first'
    assert answers["vllm"][1] == {
        "message": "The model `nope` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }
    assert answers["llamacpp"] == (200, None)


def test_ollamas_own_words_for_an_unknown_model(client: httpx.Client) -> None:
    ask = {"model": "nope", "messages": [{"role": "user", "content": "x"}]}
    with FaultServer(face="ollama") as server:
        chat = client.post(f"{server.url}/api/chat", json=ask)
        show = client.post(f"{server.url}/api/show", json=ask)
    assert (chat.status_code, chat.json()) == (404, {"error": 'model "nope" not found, try pulling it first'})
    assert (show.status_code, show.json()) == (404, {"error": "model 'nope' not found"})


def test_a_key_is_asked_for(client: httpx.Client) -> None:
    ask = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
    with FaultServer(face="llamacpp", key="secret") as server:
        address = f"{server.v1}/chat/completions"
        without = client.post(address, json=ask)
        right = client.post(address, json=ask, headers={"authorization": "Bearer secret"})
        assert client.get(f"{server.v1}/models").status_code == 200
        assert client.get(f"{server.url}/props").status_code == 401
    assert without.status_code == 401
    assert without.json() == {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}
    assert right.status_code == 200


def test_output_that_does_not_fit_is_refused_where_it_counts(client: httpx.Client) -> None:
    ask = {"model": "scripted", "messages": conversation27(), "max_tokens": 4_000}
    with FaultServer(window=8_192, overflow="refuse_total") as server:
        total = client.post(f"{server.v1}/chat/completions", json=ask)
    with FaultServer(window=2_048, face="vllm") as server:
        alone = client.post(f"{server.v1}/chat/completions", json=ask)
    assert (
        f"However, you requested {SIZE + 4_000} tokens ({SIZE} in the messages, 4000 in the completion)"
        in total.text
    )
    assert total.json()["error"]["code"] == "context_length_exceeded"
    assert "max_tokens=4000 cannot be greater than max_model_len=2048." in alone.text
