"""Small real servers, links to them, and a clock that moves when it is told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentx.config.links import Link, Provider
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue
from agentx.windows.registry import WindowRegistry
from agentx.windows.tables import Tables

Routes = dict[str, Any]
"""`GET /path` to the JSON of the answer, a status, or a text that is no JSON."""


@dataclass
class Clock:
    at: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Server:
    """Answers from `routes`, which a test may change; `log` keeps method, path and headers of each request.

    `before` is called before each answer: a test may let it wait.
    """

    routes: Routes
    before: Callable[[], object] = lambda: None
    url: str = ""
    log: list[tuple[str, Mapping[str, str]]] = field(default_factory=list[tuple[str, Mapping[str, str]]])

    def asked(self) -> list[str]:
        return [line for line, _ in self.log]


def run(
    work: Callable[[WindowRegistry], Awaitable[None]],
    clock: Callable[[], float],
    *,
    file: Path | None = None,
    environ: dict[str, str] | None = None,
) -> None:
    """*work* with a registry over *file*; another call is another process."""

    async def go() -> None:
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            registry = WindowRegistry(
                client=client,
                environ=environ or {},
                cache=Cache(file),
                tables=Tables(),
                catalogue=Catalogue(None),
                now=clock,
            )
            await work(registry)

    asyncio.run(go())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def payload() -> Callable[[str], Any]:
    folder = Path(__file__).parent / "payloads"
    return lambda name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def serve() -> Iterator[Callable[[Routes], Server]]:
    """Starts servers on loopback; they stop with the test."""
    running: list[ThreadingHTTPServer] = []

    def start(routes: Routes) -> Server:
        server = Server(routes)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                self.rfile.read(length)
                line = f"{self.command} {self.path.partition('?')[0]}"
                server.log.append((line, {name.lower(): value for name, value in self.headers.items()}))
                server.before()
                value = server.routes.get(line, 404)
                status = value if isinstance(value, int) else 200
                body = value if isinstance(value, str) else json.dumps({"error": "x"} if status != 200 else value)
                self.send_response(status)
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET  # noqa: N815  the names are those of http.server

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(http)
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        return server

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


@pytest.fixture
def link() -> Callable[..., Link]:
    """A link to `base_url`; keywords go to the provider, but for those of the link."""

    def make(
        base_url: str | None,
        model: str = "qwen3:14b",
        *,
        window: int | None = None,
        force: bool = False,
        card: str = "openai-compatible",
        **provider: Any,
    ) -> Link:
        settings: dict[str, Any] = {"name": card, "wire": "openai", "self_hosted": True} | provider
        one = Provider(card=card, base_url=base_url, **settings)
        return Link(provider=one, model=model, name=f"{one.name}/{model}", window=window, force=force)

    return make
