from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from agentx.testing.clock import VirtualClock
from agentx.testing.faults import Status, first
from agentx.testing.server import FaultServer

ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Say hello."}]}


def test_the_log_tells_what_was_asked_and_answered(client: httpx.Client) -> None:
    clock = VirtualClock(start=1_000.0)
    with FaultServer(schedule=first(1, Status(500)), now=clock.now) as server:
        address = f"{server.v1}/chat/completions"
        client.post(address, json=ASK, headers={"X-Mark": "one"})
        clock.advance(5)
        client.post(address, json=ASK)
        failed, answered = server.requests
    assert (failed.time, answered.time) == (1_000.0, 1_005.0)
    assert (failed.method, failed.path, failed.headers["x-mark"]) == ("POST", "/v1/chat/completions", "one")
    assert failed.body == answered.body == ASK
    assert (failed.status, failed.fault, failed.kept) == (500, Status(500), None)
    assert (answered.status, answered.fault, answered.dropped) == (200, None, 0)
    assert answered.kept == ({"role": "user", "content": "Say hello."},)
    assert "Hello." in answered.answer


def test_a_body_that_is_no_json_is_kept_as_text(client: httpx.Client) -> None:
    with FaultServer() as server:
        client.post(f"{server.v1}/chat/completions", content=b"{not json")
        (seen,) = server.chats
    assert seen.body == "{not json"
    assert seen.status == 404


def test_many_clients_at_once_are_all_in_the_log() -> None:
    with FaultServer() as server, httpx.Client(trust_env=False) as client, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.post, f"{server.v1}/chat/completions", json=ASK) for _ in range(40)]
        assert {future.result().status_code for future in asked} == {200}
        assert sorted(seen.chat or 0 for seen in server.chats) == list(range(1, 41))


def test_a_closed_server_leaves_no_thread_and_refuses_connections(client: httpx.Client) -> None:
    before = set(threading.enumerate())
    with FaultServer() as server:
        client.get(f"{server.v1}/models")
        address = server.v1
    assert set(threading.enumerate()) <= before
    try:
        client.get(f"{address}/models")
    except httpx.TransportError:
        return
    raise AssertionError("a closed server answered")
