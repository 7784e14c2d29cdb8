"""Whole jobs of a real model on real servers: hidden windows, a refusal, a silent cut, a lost server."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentx.cli.demo_real import FIRST, TASK, write_stations

pytestmark = [pytest.mark.real, pytest.mark.timeout(1_800)]
BELIEVED = 8_000
"""Below the window at which the model gets long instructions: a small one does better with short ones."""
SECONDS = 1_500
LONG = "The harbour crew checked the north gate and wrote down the level of the water before lunch. " * 26


@contextmanager
def gateway(url: str) -> Generator[str]:
    """A gateway that passes chats on to *url* and tells nothing else: no list, no properties, no window."""

    class Passes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/v1/chat/completions":
                self._answer(404, "application/json", b"{}")
                return
            asked = urllib.request.Request(url + self.path, body, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(asked, timeout=SECONDS) as found:
                    self._answer(found.status, found.headers["content-type"], found.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, "application/json", error.read())

        def do_GET(self) -> None:
            self._answer(404, "application/json", b"{}")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that it has above
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def settings(**links: dict[str, Any]) -> dict[str, Any]:
    chain: list[dict[str, Any]] = []
    providers: dict[str, Any] = {}
    for name, link in links.items():
        given = {"temperature": 0, "max_tokens": 160} | link
        providers[name] = {"card": given.pop("card"), "base_url": given.pop("base_url")}
        chain.append({**given, "model": f"{name}/{given['model']}"})
    return {
        "chains": {"night": chain},
        "default_chain": "night",
        "providers": providers,
        "tools": {"only": ["shell"]},
        "limits": {"turns": 40},
        "timers": {"first": 600, "idle": 300},
    }


def visited(work: Path) -> list[str]:
    return [name for name in FIRST if (work / f"{name}.read").exists()]


def test_a_refused_overflow_is_learned_and_the_job_ends(home: Any, small: Any) -> None:
    """The link believes 8,000; the server behind the gateway holds 2,304 and says so when it refuses."""
    write_stations(home.workspace)
    with gateway(small.url) as base:
        link = {"card": "openai-compatible", "base_url": base, "model": small.model, "window": BELIEVED}
        home.configure(settings(box=link))
        done = home.run("run", "--json", "--until", "sh check.sh", TASK, seconds=SECONDS)
    assert (done.code, done.events[-1]["ending"]) == (0, "done"), done.out[-2000:]
    assert visited(home.workspace) == list(FIRST)
    assert [event["limit"] for event in done.of("link.failed") if event["class"] == "overflow"][:1] == [2304]
    assert done.of("window.learned")[0]["value"] == 2304
    assert done.of("compaction")


def test_a_dead_link_is_passed_over_and_a_real_one_does_the_job(home: Any, large: Any) -> None:
    write_stations(home.workspace)
    dead = {"card": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "model": "m", "window": BELIEVED}
    well = {"card": "llamacpp", "base_url": f"{large.url}/v1", "model": large.model}
    home.configure(settings(dead=dead, box=well))
    done = home.run("run", "--json", "--until", "sh check.sh", TASK, seconds=SECONDS)
    assert (done.code, done.events[-1]["ending"]) == (0, "done"), done.out[-2000:]
    assert visited(home.workspace) == list(FIRST)
    selected = [event for event in done.of("link.selected") if event["link"].startswith("box/")]
    assert {(event["window"], event["window_source"]) for event in selected} == {(4096, "served")}
    assert done.of("link.switched")


def test_a_silent_cut_of_a_real_ollama_is_detected_and_healed(home: Any, ollama: Any) -> None:
    """Through a gateway that tells no window, a real Ollama with `num_ctx` 2304 cuts what the link thinks fits.

    The conversation grows by about 500 tokens with each resume. Little is asked of the model: this is about
    the server.
    """
    with gateway(ollama.url) as base:
        link = {"card": "openai-compatible", "base_url": base, "model": ollama.model, "window": BELIEVED}
        home.configure(settings(box={**link, "max_tokens": 32}) | {"tools": {"only": []}})
        for number in range(1, 7):
            text = f"Note {number}: {LONG} Answer with one word: noted."
            start = ("run", "--name", "notes") if number == 1 else ("resume", "notes")
            done = home.run(*start, text, seconds=SECONDS)
            assert done.code == 0, done.err[-2000:]
        told = home.run("events", "notes")
    assert told.of("truncated"), "the conversation outgrew 2,304 tokens and nobody noticed"
    assert 2256 <= told.of("window.learned")[-1]["value"] <= 2_600
    assert told.of("compaction")
    last = [event for event in told.of("reply") if event["purpose"] == "turn"][-1]
    assert last["usage"]["input"] < 2304
