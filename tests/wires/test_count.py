"""A server's own counter is asked where there is one, and never in the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import respx

from agentx.config.links import Provider
from agentx.wires.make import client
from agentx.wires.messages import Message, Request, Tool
from agentx.wires.openai import OpenAIWire

ROOT = "http://box.example:8080"
ASKED = Request(
    model="qwen",
    messages=[Message(role="user", text="hi")],
    tools=[Tool("f", "does", {"type": "object"})],
)


def counted(routes: Callable[[], object], *probes: str, **changes: Any) -> int | None:
    async def run() -> int | None:
        async with client() as http:
            with respx.mock:
                routes()
                settings: dict[str, Any] = {"name": "box", "card": "x", "wire": "openai", "base_url": f"{ROOT}/v1"}
                return await OpenAIWire(Provider(**settings | changes, probes=probes), http).count(ASKED)

    return asyncio.run(run())


def test_llamacpp_counts_the_chat_without_loading_a_model() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"input_tokens": 32, "object": "response.input_tokens"})

    def routes() -> object:
        return respx.post(f"{ROOT}/v1/chat/completions/input_tokens").mock(side_effect=answer)

    assert counted(routes, "llamacpp", "openai_list") == 32
    assert seen[0].url.params["autoload"] == "false"
    assert json.loads(seen[0].content)["tools"][0]["function"]["name"] == "f"


def test_an_older_llamacpp_counts_the_rendered_prompt() -> None:
    def routes() -> None:
        respx.post(f"{ROOT}/v1/chat/completions/input_tokens").respond(404)
        respx.post(f"{ROOT}/apply-template").respond(json={"prompt": "<|im_start|>user\nhi"})
        respx.post(f"{ROOT}/tokenize").respond(json={"tokens": [1, 2, 3, 4]})

    assert counted(routes, "llamacpp") == 4


def test_vllm_counts_messages() -> None:
    def routes() -> object:
        return respx.post(f"{ROOT}/tokenize").respond(json={"count": 33, "max_model_len": 4096})

    assert counted(routes, "vllm") == 33


def test_a_silent_or_odd_counter_counts_nothing() -> None:
    assert (
        counted(lambda: respx.post(url__startswith=ROOT).mock(side_effect=httpx.ConnectError), "llamacpp") is None
    )
    assert counted(lambda: respx.post(url__startswith=ROOT).mock(side_effect=httpx.ReadTimeout), "vllm") is None
    assert counted(lambda: respx.post(url__startswith=ROOT).respond(text="<html>"), "vllm") is None
    assert counted(lambda: respx.post(url__startswith=ROOT).respond(json=[1]), "vllm") is None


def test_other_servers_are_not_asked() -> None:
    assert counted(lambda: None, "lmstudio") is None
    assert counted(lambda: None, "llamacpp", api_key_env="NOT_SET") is None
