"""What a program needs to use a chain without an agent: links from addresses, and the wires that speak to them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from agentx.config.links import Link, Provider, link_name
from agentx.wires.messages import Wire


def link_at(
    base_url: str,
    model: str,
    *,
    name: str | None = None,
    api_key_env: str | None = None,
    self_hosted: bool = False,
) -> Link:
    """The link to *model* at a server that speaks OpenAI's chat completions; no file is read.

    *base_url* is what such clients take, usually with `/v1`. *api_key_env* names the variable of the key.
    """
    host = base_url.split("/")[2] if base_url.count("/") >= 2 else base_url
    provider = Provider(
        name=name or host,
        card="openai-compatible",
        wire="openai",
        base_url=base_url.rstrip("/"),
        api_key_env=api_key_env,
        self_hosted=self_hosted,
    )
    return Link(provider=provider, model=model, name=name or link_name(host, model))


@asynccontextmanager
async def open_wires(environ: Mapping[str, str] = os.environ) -> AsyncGenerator[Callable[[Link], Wire]]:
    """What gives each link its wire, over one HTTP client that is closed at the end. Keys are read from *environ*
    at each request."""
    from agentx.wires.make import Wires, client  # httpx: it takes as long to load as all the rest

    async with client() as http:
        wires = Wires(http, environ)
        try:
            yield wires.of
        finally:
            await wires.close()
