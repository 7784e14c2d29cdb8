"""A link gets the wire of its card, and no more than that is loaded."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest

from agentx.config.links import Link, Provider, WireName
from agentx.errors import RequestFailed
from agentx.wires.litellm import LiteLLMWire
from agentx.wires.make import client, keepalive_options, wire_for
from agentx.wires.messages import Message, Request, Timers
from agentx.wires.ollama import OllamaWire
from agentx.wires.openai import OpenAIWire
from agentx.wires.proxies import proxied

Serve = Callable[..., AbstractAsyncContextManager[tuple[str, list[bytes]]]]

ASKED = Request(model="m", messages=[Message(role="user", text="hi")])
BODY = b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


def link(wire: WireName, url: str = "http://127.0.0.1:1", **changes: Any) -> Link:
    provider = Provider(name="p", card="p", wire=wire, base_url=url, api_key_env="P_KEY")
    return Link(provider=provider, model="m", name="p/m", **changes)


def test_each_wire_has_its_class() -> None:
    async def run() -> None:
        async with client() as http:
            assert isinstance(wire_for(link("openai"), http, {}), OpenAIWire)
            assert isinstance(wire_for(link("ollama"), http, {}), OllamaWire)
            assert isinstance(wire_for(link("litellm"), http, {}), LiteLLMWire)

    asyncio.run(run())


def test_the_links_own_key_wins_and_is_read_at_each_request(serve: Serve) -> None:
    async def run() -> list[bytes]:
        environ = {"P_KEY": "provider", "OWN_KEY": "first"}
        async with serve(OK) as (url, requests), client() as http:
            wire = wire_for(link("openai", url, api_key_env="OWN_KEY"), http, environ)
            await wire.ask(ASKED, Timers())
            environ["OWN_KEY"] = "second"
            await wire.ask(ASKED, Timers())
            del environ["OWN_KEY"]
            with pytest.raises(RequestFailed, match="`OWN_KEY` is not set"):
                await wire.ask(ASKED, Timers())
            return requests

    first, second = asyncio.run(run())
    assert b"authorization: bearer first" in first.lower()
    assert b"authorization: bearer second" in second.lower()


def test_this_machine_is_reached_past_the_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def run() -> None:
        async with serve(OK) as (url, _), client() as http:
            for host in ("127.0.0.1", "localhost"):
                wire = wire_for(link("openai", url.replace("127.0.0.1", host)), http, {"P_KEY": "k"})
                assert (await wire.ask(ASKED, Timers())).message.text == "ok"
            with pytest.raises(RequestFailed) as caught:
                await wire_for(link("openai", "http://far.example"), http, {"P_KEY": "k"}).ask(ASKED, Timers())
            assert caught.value.phase == "connect"

    asyncio.run(run())


@pytest.mark.parametrize("past", ["", "elsewhere.example,10.0.0.1"])
def test_other_machines_are_reached_through_the_proxy(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, past: str
) -> None:
    async def run() -> bytes:
        async with serve(OK) as (url, requests):
            for name in ("HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(name, url)
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.setenv(name, past)
            async with client() as http:
                wire = wire_for(link("openai", "http://far.example/v1"), http, {"P_KEY": "k"})
                assert (await wire.ask(ASKED, Timers())).message.text == "ok"
            return requests[0]

    assert asyncio.run(run()).startswith(b"POST http://far.example/v1/chat/completions HTTP/1.1")


def test_what_no_proxy_names_goes_past_it_and_a_proxy_that_cannot_be_used_is_not_gone_around() -> None:
    def transport(url: str) -> httpx.AsyncBaseTransport:
        if url.startswith("socks5"):
            raise ImportError("install httpx[socks]")
        return httpx.AsyncHTTPTransport(proxy=url)

    everything = {
        "http": "http://p:1",
        "all": "socks5://user:secret@p:2",
        "no": "a.example, .b.example,::1,10.0.0.1",
    }
    mounts = proxied(everything, transport)
    past = {"all://*a.example", "all://*.b.example", "all://[::1]", "all://10.0.0.1"}
    assert set(mounts) == {"http://", "all://"} | past
    assert {where for where, made in mounts.items() if made is None} == past
    assert proxied(everything | {"no": "a.example,*"}, transport) == {}

    async def asked() -> None:
        async with httpx.AsyncClient(mounts=mounts) as http:
            await http.get("https://far.example")

    with pytest.raises(httpx.ConnectError, match=r"install httpx\[socks\]") as caught:
        asyncio.run(asked())
    assert "secret" not in str(caught.value)


def test_connections_are_kept_alive_by_the_system() -> None:
    assert len(keepalive_options()) >= 4


def test_an_http_wire_loads_neither_litellm_nor_pydantic() -> None:
    code = (
        "import sys, agentx.wires.make, agentx.wires.openai, agentx.wires.ollama, agentx.wires.litellm\n"
        "print(sorted({'litellm', 'openai', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
