"""The server's own count of a prompt, where it has a counter that costs nothing and loads no model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import httpx

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.wires.dialect import openai_messages, openai_tools
from agentx.wires.families import dialect_of
from agentx.wires.key import Key, headers_for, key_for
from agentx.wires.messages import Request
from agentx.wires.rendered import compact

COUNT_SECONDS = 2.0


async def server_count(client: httpx.AsyncClient, provider: Provider, key: Key, request: Request) -> int | None:
    """Tokens of the whole prompt, template and tools included; None where there is no counter or it is silent."""
    if provider.base_url is None:
        return None
    root = provider.base_url.rstrip("/").removesuffix("/v1")
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            counter = _Counter(client, headers_for(provider, key_for(provider, key)))
            if "llamacpp" in provider.probes:
                return await counter.llamacpp(root, _chat(request, provider))
            if "vllm" in provider.probes:
                return await counter.vllm(root, _chat(request, provider))
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, RequestFailed):
        return None
    return None


class _Counter:
    def __init__(self, client: httpx.AsyncClient, headers: Mapping[str, str]) -> None:
        self.client = client
        self.headers = headers

    async def llamacpp(self, root: str, chat: dict[str, Any]) -> int | None:
        """One route counts the chat; older builds give the rendered prompt, which is then tokenized."""
        counted = await self._ask(f"{root}/v1/chat/completions/input_tokens", chat)
        if (tokens := _number(counted.get("input_tokens"))) is not None:
            return tokens
        prompt = (await self._ask(f"{root}/apply-template", chat)).get("prompt")
        if not isinstance(prompt, str):
            return None
        tokenized = await self._ask(f"{root}/tokenize", {"content": prompt, "add_special": True})
        tokens = tokenized.get("tokens")
        return len(cast("list[Any]", tokens)) if isinstance(tokens, list) and tokens else None

    async def vllm(self, root: str, chat: dict[str, Any]) -> int | None:
        counted = await self._ask(f"{root}/tokenize", {**chat, "add_generation_prompt": True})
        return _number(counted.get("count"))

    async def _ask(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer's object; an empty one for everything else.

        A router of llama.cpp would load a model for a count; `autoload=false` keeps it from that.
        """
        response = await self.client.post(
            url,
            content=compact(body),
            headers=self.headers,
            params={"autoload": "false"},
            timeout=COUNT_SECONDS,
        )
        if not response.is_success:
            return {}
        answer = response.json()
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


def _chat(request: Request, provider: Provider) -> dict[str, Any]:
    """The prompt in the very words of the request."""
    dialect = dialect_of(provider, request.model, images=request.shows_images)
    chat: dict[str, Any] = {"model": request.model, "messages": openai_messages(request.messages, dialect)}
    if request.tools:
        chat["tools"] = openai_tools(request.tools, dialect.schemas)
    return chat


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
