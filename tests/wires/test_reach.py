"""A connection tells whether somebody is there; only what it cannot tell is left to a request."""

from __future__ import annotations

import asyncio
import socket

import pytest

from agentx.testing.server import FaultServer
from agentx.wires.reach import reachable


def reach(url: str | None, seconds: float = 20) -> bool | None:
    return asyncio.run(reachable(url, seconds=seconds))


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_server_that_listens_is_there_and_is_asked_nothing() -> None:
    with FaultServer() as server:
        assert reach(server.v1) is True
        assert server.requests == []


def test_a_refused_port_is_nobody() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert reach(f"http://127.0.0.1:{unused.getsockname()[1]}/v1") is False


def test_a_name_that_is_not_known_is_nobody() -> None:
    assert reach("http://no-such-host.invalid/v1") is False


def test_a_server_without_tls_is_nobody_at_an_https_address() -> None:
    with FaultServer() as server:
        assert reach(server.v1.replace("http:", "https:"), seconds=5) is False


def test_a_handshake_that_never_ends_is_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert reach(f"https://127.0.0.1:{silent.getsockname()[1]}/v1", seconds=0.2) is False


@pytest.mark.parametrize("url", [None, "", "http://:8000/v1", "http://host:port/v1"])
def test_without_an_address_only_a_request_can_tell(url: str | None) -> None:
    assert reach(url) is None


def test_behind_a_proxy_only_a_request_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert reach("https://api.example.com/v1") is None
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    with FaultServer() as server:
        assert reach(server.v1) is True
