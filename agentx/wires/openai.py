"""The `openai` wire: chat completions over httpx, as OpenAI and most other servers speak them."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from agentx.config.links import Provider, identity_of
from agentx.errors import ConfigError, Problem
from agentx.wires.count import server_count
from agentx.wires.dialect import openai_body
from agentx.wires.gather import Hear, counted
from agentx.wires.key import Key, headers_for, key_for, no_key
from agentx.wires.messages import Reply, Request, Timers
from agentx.wires.readers import ChatReader
from agentx.wires.rendered import Rendered
from agentx.wires.transport import Post, post
from agentx.wires.whole import Facts, whole_reply

CLAMPING_PROBES = frozenset({"llamacpp", "vllm"})
"""Servers that cut a reply short of `max_tokens` only at the end of the window."""


class OpenAIWire:
    """One provider's chat completions. `key` is asked at each request; the client belongs to the caller."""

    def __init__(
        self,
        provider: Provider,
        client: httpx.AsyncClient,
        key: Key = no_key,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        hear: Hear | None = None,
    ) -> None:
        self.provider = provider
        self.client = client
        self.key = key
        self.monotonic = monotonic
        self.hear = hear
        self.rendered = Rendered()

    async def ask(self, request: Request, timers: Timers) -> Reply:
        """The whole reply, read from a stream into a buffer. Raises RequestFailed."""
        provider, started = self.provider, self.monotonic()
        key = key_for(provider, self.key)
        call = Post(
            who=f"{provider.name}/{request.model}",
            url=f"{address(provider)}/chat/completions",
            headers=headers_for(provider, key),
            body=openai_body(request, provider, self.rendered),
            secret=key,
        )
        reader = ChatReader(self.hear if request.purpose == "turn" else None)
        with counted(reader.gathered):
            headers = await post(self.client, call, timers, reader)
        facts = Facts(
            sent=call.body,
            seconds=self.monotonic() - started,
            issuer=identity_of(self.provider, request.model),
            headers=headers,
            gives_reason=provider.gives_reason,
            clamps_at_window=not CLAMPING_PROBES.isdisjoint(provider.probes),
        )
        return whole_reply(reader.gathered, request, facts)

    async def count(self, request: Request) -> int | None:
        """The prompt's tokens by llama.cpp's or vLLM's own counter; None elsewhere. Never raises."""
        return await server_count(self.client, self.provider, self.key, request)


def address(provider: Provider) -> str:
    """The provider's address without a slash at its end. Raises ConfigError where there is none."""
    url = (provider.base_url or "").rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        where = f"providers.{provider.name}.base_url"
        what = f"`{url}` is no address" if url else "no address is set"
        raise ConfigError([Problem(where, what, f"set `{where}` to something like `http://127.0.0.1:8080/v1`")])
    return url
