"""From a link to the wire that speaks to it; only the wire that is needed is imported."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from urllib.request import getproxies

import httpx

from agentx.config.links import Link
from agentx.wires.gather import Hear
from agentx.wires.messages import Wire
from agentx.wires.proxies import proxied

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def wire_for(link: Link, client: httpx.AsyncClient, environ: Mapping[str, str], hear: Hear | None = None) -> Wire:
    """The wire of *link*. Its key is looked up in *environ* at each request and kept nowhere.

    *hear* is for a person who watches: it gets the text of turns while it comes.
    """
    variable = link.key_variable
    provider = replace(link.provider, api_key_env=variable)

    def key() -> str | None:
        return environ.get(variable) if variable else None

    if provider.card == "local":
        from agentx.wires.local import LocalWire

        return LocalWire(link, client, environ, hear)
    match provider.wire:
        case "openai":
            from agentx.wires.openai import OpenAIWire

            return OpenAIWire(provider, client, key, hear=hear)
        case "ollama":
            from agentx.wires.ollama import OllamaWire

            return OllamaWire(provider, client, key, hear=hear)
        case "litellm":
            from agentx.wires.litellm import LiteLLMWire

            return LiteLLMWire(provider, client, key, hear=hear)


class Wires:
    """One wire for each link, made when it is first asked. The client belongs to the caller."""

    def __init__(self, http: httpx.AsyncClient, environ: Mapping[str, str], hear: Hear | None = None) -> None:
        self.http = http
        self.environ = environ
        self.hear = hear
        self.made: list[tuple[Link, Wire]] = []

    def of(self, link: Link) -> Wire:
        for known, wire in self.made:
            if known == link:  # a link that was changed since has another one
                return wire
        made = wire_for(link, self.http, self.environ, self.hear)
        self.made.append((link, made))
        return made

    async def close(self) -> None:
        """End what wires started (a server of one's own)."""
        for _, wire in self.made:
            close = getattr(wire, "close", None)
            if close is not None:
                await close()


IDLE_SECONDS = 4.0
"""An idle connection is not used after this: llama-server, and vLLM's and others' uvicorn, close theirs after 5 s,
and a request that meets the closing is lost (seen with a real llama-server)."""


def client() -> httpx.AsyncClient:
    """The one HTTP client of a process; the caller closes it.

    The proxies of the environment hold for all but this machine itself. Connections are kept alive by the
    system, so that a provider that thinks for minutes is not taken for dead by what lies between; retries
    are the chain's.
    """
    limits = httpx.Limits(max_connections=32, max_keepalive_connections=16, keepalive_expiry=IDLE_SECONDS)

    def transport(proxy: str | None = None) -> httpx.AsyncHTTPTransport:
        options = keepalive_options()
        return httpx.AsyncHTTPTransport(
            http1=True, http2=False, limits=limits, retries=0, socket_options=options, proxy=proxy
        )

    return httpx.AsyncClient(
        transport=transport(),
        mounts=proxied(getproxies(), transport) | {f"all://{host}": None for host in LOOPBACK},
        limits=limits,
        follow_redirects=False,  # a redirect would take the key along
        timeout=httpx.Timeout(30.0, connect=5.0),
    )


def keepalive_options() -> list[tuple[int, int, int]]:
    """Socket options: probe after a minute of silence, four times, 15 s apart, where the system can."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if (option := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options
