"""The `ollama` wire: the native `/api/chat`, the only route that takes `num_ctx` and refuses to truncate.

Servers that are too old for `truncate: false` ignore it and cut the conversation in silence all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import httpx

from agentx.config.links import Provider, identity_of
from agentx.errors import RequestFailed
from agentx.wires.dialect import ollama_body
from agentx.wires.gather import Hear, counted
from agentx.wires.key import Key, headers_for, key_for, no_key
from agentx.wires.messages import Reply, Request, Timers
from agentx.wires.openai import address
from agentx.wires.readers import OllamaReader, inner_error
from agentx.wires.rendered import Rendered
from agentx.wires.transport import Post, excerpt, post
from agentx.wires.whole import Facts, whole_reply


class OllamaWire:
    """One Ollama server. `key` is only for servers that want one; the client belongs to the caller."""

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
            url=f"{address(provider).removesuffix('/v1')}/api/chat",
            headers=headers_for(provider, key),
            body=ollama_body(request, provider, self.rendered),
            secret=key,
        )
        reader = OllamaReader(self.hear if request.purpose == "turn" else None)
        try:
            with counted(reader.gathered):
                headers = await post(self.client, call, timers, reader)
        except RequestFailed as error:
            inner = inner_error(error.body)
            if error.phase != "status" or inner == error.body:
                raise
            # The runner's own error, which Ollama hands on as JSON inside a text.
            message = f"{call.who}: {error.status}: {excerpt(inner)}"
            raise replace(error, message=message, body=inner) from error
        return whole_reply(
            reader.gathered,
            request,
            Facts(
                sent=call.body,
                seconds=self.monotonic() - started,
                issuer=identity_of(provider, request.model),
                headers=headers,
                # `num_predict` not reached and yet `length`: the window was.
                clamps_at_window=True,
            ),
        )

    async def count(self, request: Request) -> int | None:
        """None: Ollama has no counter."""
        return None
