"""Each named fault is true: a plain HTTP client, which knows nothing of agentx, sees that very fault."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from agentx.testing.faults import Drip, always
from agentx.testing.named import HARMLESS, NAMED, failing
from agentx.testing.server import FaultServer

PATIENCE = 0.4
"""Seconds until this client ends what would not end by itself."""
BODY: dict[str, Any] = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "Say hello."}],
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    "stream_options": {"include_usage": True},
}


@dataclass
class Saw:
    """What came, and what kind of exception ended it."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: bytes = b""
    ended_by: str = ""
    connections: int = 0
    chats: int = 0

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def events(self) -> list[Any]:
        """The JSON of each event; a comment or `[DONE]` as text."""
        lines = [line for line in self.text.splitlines() if line]
        return [json.loads(line[6:]) if line.startswith("data: {") else line for line in lines]

    @property
    def choices(self) -> list[Any]:
        return [choice for one in self.events if "choices" in one for choice in one["choices"]]

    @property
    def said(self) -> str:
        """The text of all deltas."""
        return "".join(choice["delta"].get("content") or "" for choice in self.choices)

    @property
    def finishes(self) -> list[str]:
        return [choice["finish_reason"] for choice in self.choices if choice["finish_reason"]]


def look(client: httpx.Client, name: str, *, stream: bool = True) -> Saw:
    saw = Saw()
    with failing(NAMED[name].fault) as server:
        try:
            end = time.monotonic() + PATIENCE
            url = f"{server.v1}/chat/completions"
            timeout = httpx.Timeout(PATIENCE if NAMED[name].endless else 30)
            with client.stream("POST", url, json=BODY | {"stream": stream}, timeout=timeout) as response:
                saw.status, saw.headers = response.status_code, response.headers
                for data in response.iter_raw():
                    saw.raw += data
                    if NAMED[name].endless and time.monotonic() > end:
                        saw.ended_by = "the client"
                        break
        except httpx.TransportError as error:
            saw.ended_by = type(error).__name__
        saw.connections, saw.chats = server.connections, len(server.chats)
    return saw


STATUSES = sorted(name for name in NAMED if name.startswith("status-"))


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_is_a_status_with_a_sentence(client: httpx.Client, name: str) -> None:
    saw = look(client, name)
    assert (f"status-{saw.status}", saw.ended_by, saw.chats) == (name, "", 1)
    assert json.loads(saw.text)["error"]["message"]


def test_an_empty_account_is_told_under_four_statuses(client: httpx.Client) -> None:
    words = {429: "quota", 400: "credit balance", 403: "Key limit exceeded", 404: "free tier is depleted"}
    for status, word in words.items():
        saw = look(client, f"quota-{status}")
        assert saw.status == status
        assert word in json.loads(saw.text)["error"]["message"]
        assert "retry-after" not in saw.headers


def test_come_back_later_stands_in_the_headers(client: httpx.Client) -> None:
    for seconds in (0, 3, 130, 3600):
        saw = look(client, f"retry-after-{seconds}")
        assert (saw.status, saw.headers["retry-after"]) == (429, str(seconds))
    saw = look(client, "retry-after-ms")
    assert (saw.status, saw.headers["retry-after-ms"], "retry-after" in saw.headers) == (429, "1500", False)
    saw, now = look(client, "retry-after-date"), time.time()
    assert saw.status == 429
    assert 60 < parsedate_to_datetime(saw.headers["retry-after"]).timestamp() - now <= 130
    saw = look(client, "no-retry")
    assert (saw.status, saw.headers["x-should-retry"]) == (500, "false")


def test_there_may_be_no_way_to_a_server(client: httpx.Client) -> None:
    found = {name: look(client, name) for name in ("refused", "unresolvable", "tls-cut", "close", "reset")}
    assert {name: (saw.ended_by, saw.connections, saw.chats) for name, saw in found.items()} == {
        "refused": ("ConnectError", 0, 0),
        "unresolvable": ("ConnectError", 0, 0),
        "tls-cut": ("ConnectError", 1, 0),
        "close": ("RemoteProtocolError", 1, 1),
        "reset": ("ReadError", 1, 1),
    }


def test_why_there_is_no_way_is_told_by_the_system(client: httpx.Client) -> None:
    for name, words in (("refused", "refused"), ("unresolvable", "not known|resolution"), ("tls-cut", "SSL|EOF")):
        with failing(NAMED[name].fault) as server, pytest.raises(httpx.ConnectError, match=words):
            client.post(f"{server.v1}/chat/completions", json=BODY)


def test_a_body_may_be_shorter_than_it_says(client: httpx.Client) -> None:
    saw = look(client, "short-body")
    assert (saw.status, saw.ended_by) == (200, "RemoteProtocolError")
    assert saw.headers["content-type"].startswith("application/json")
    assert 0 < len(saw.raw) < int(saw.headers["content-length"])


def test_two_hundred_may_hold_no_answer(client: httpx.Client) -> None:
    def plain(name: str) -> Any:
        saw = look(client, name, stream=False)
        assert saw.status == 200
        return json.loads(saw.text)

    page = look(client, "html-200")
    assert (page.status, page.headers["content-type"], page.text[:15]) == (200, "text/html", "<!doctype html>")
    with pytest.raises(ValueError, match="Unterminated"):
        plain("garbage-200")
    assert plain("error-200")["error"]["type"] == "overloaded_error"
    assert plain("empty-choices")["choices"] == []
    assert plain("null-content")["choices"][0]["message"] == {"role": "assistant", "content": None}
    thought = plain("reasoning-only")["choices"][0]["message"]
    assert (thought["content"], bool(thought["reasoning_content"])) == ("", True)
    (call,) = plain("half-tool-call")["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "look"
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(call["function"]["arguments"])


def test_the_same_holds_for_streams(client: httpx.Client) -> None:
    assert [event["error"]["type"] for event in look(client, "error-200").events] == ["overloaded_error"]
    empty = look(client, "empty-choices")
    assert [event["choices"] for event in empty.events[:-1]] == [[]]
    for name in ("null-content", "reasoning-only", "half-tool-call"):
        saw = look(client, name)
        assert (saw.said, len(saw.finishes), saw.events[-1], saw.ended_by) == ("", 1, "data: [DONE]", "")


def test_a_stream_may_stop_anywhere(client: httpx.Client) -> None:
    cut = look(client, "cut-stream")
    assert (len(cut.events), cut.finishes, cut.ended_by) == (3, [], "RemoteProtocolError")
    error = look(client, "error-event")
    assert (len(error.events), error.finishes, error.ended_by) == (4, [], "")
    assert error.events[-1]["error"]["type"] == "server_error"
    overloaded = look(client, "overloaded-event")
    assert (len(overloaded.events), overloaded.events[-1]["error"]["type"]) == (4, "overloaded_error")
    open_end = look(client, "no-finish")
    assert (open_end.said, open_end.finishes, open_end.ended_by) == ("Hello.", [], "")
    assert "[DONE]" not in open_end.text
    nothing = look(client, "empty-stream")
    assert (nothing.status, nothing.text, nothing.ended_by) == (200, "", "")
    assert nothing.headers["content-type"] == "text/event-stream"


def blanks(saw: Saw) -> bool:
    return bool(saw.said.strip()) and len(saw.said) > len("Hello.  ") and saw.said.endswith("  ")


def empty(saw: Saw) -> bool:
    return len(saw.events) > 3 and saw.said in ("Hell", "Hello.")


def comments(saw: Saw) -> bool:
    return bool(saw.events) and set(saw.events) == {": keepalive"}


ENDLESS: dict[str, tuple[int | None, str, Callable[[Saw], bool]]] = {
    "hang": (None, "ReadTimeout", lambda saw: saw.raw == b""),
    "headers-then-hang": (200, "ReadTimeout", lambda saw: saw.raw == b""),
    "keepalives": (200, "the client", comments),
    "keepalives-later": (200, "the client", lambda saw: len(saw.events) > 3 and saw.said == "Hello."),
    "empty-deltas": (200, "the client", empty),
    "blanks": (200, "the client", blanks),
    "drip": (200, "ReadTimeout", lambda saw: saw.raw == b""),
    "stall": (200, "ReadTimeout", lambda saw: len(saw.events) == 3 and saw.said == "Hello."),
}


@pytest.mark.parametrize("name", [name for name, named in NAMED.items() if named.endless])
def test_what_never_ends_never_ends(client: httpx.Client, name: str) -> None:
    saw = look(client, name)
    status, ended_by, holds = ENDLESS[name]
    assert (saw.status, saw.ended_by, saw.chats) == (status, ended_by, 1)
    assert holds(saw), saw.text


def test_a_drip_is_the_right_answer(client: httpx.Client) -> None:
    """Byte by byte, with the pause before each."""
    with FaultServer(schedule=always(Drip(every=0.0005))) as server:
        url = f"{server.v1}/chat/completions"
        with client.stream("POST", url, json=BODY | {"stream": True}) as response:
            pieces = list(response.iter_raw())
        plain = client.post(url, json=BODY).json()
    assert plain["choices"][0]["message"]["content"] == "Hello."
    assert len(pieces) > 300
    assert b"".join(pieces).endswith(b"data: [DONE]\n\n")


def test_a_harmless_fault_still_gives_the_answer(client: httpx.Client) -> None:
    whole = look(client, "no-done")
    assert (whole.said, whole.finishes, whole.ended_by, "[DONE]" in whole.text) == ("Hello.", ["stop"], "", False)
    assert '"usage"' not in look(client, "no-usage").text
    cut = look(client, "cut-reply")
    assert (cut.said, cut.finishes, cut.ended_by) == ("Hello", ["length"], "")
    before = time.monotonic()
    assert look(client, "slow").said == "Hello."
    assert time.monotonic() - before >= 1
    assert set(HARMLESS) == {"no-done", "no-usage", "cut-reply", "slow"}
