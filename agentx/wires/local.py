"""The embedded model: a `llama-server` of our own for each link, from the first request to the end of the job."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from agentx.config.links import Link, Provider
from agentx.config.paths import paths
from agentx.errors import RequestFailed
from agentx.wires.gather import Hear
from agentx.wires.local_find import find_installed, find_model, find_server, window_of
from agentx.wires.local_models import MODELS
from agentx.wires.local_server import PORTS_TRIED, Launch, Server, cause_of_death, port_is_taken
from agentx.wires.messages import Reply, Request, Timers
from agentx.wires.openai import OpenAIWire

START_SECONDS = 180.0
"""Until the server answers, unless option `start_seconds` says otherwise: a cold disk and a large model."""


def installed(environ: Mapping[str, str]) -> bool:
    """Whether the embedded model can be asked: its server and the first model of the table are here."""
    folders = paths(environ)
    try:
        find_server({}, folders, environ)
        find_model(MODELS[0].name, {}, folders, environ)
    except RequestFailed:
        return False
    return True


class LocalWire:
    """Speaks to a server that it starts itself. One wire for each link, one server for each wire.

    `close` ends the server; a process that is killed takes it along. A server that died is started again by the
    next request.
    """

    def __init__(
        self, link: Link, client: httpx.AsyncClient, environ: Mapping[str, str], hear: Hear | None = None
    ) -> None:
        self.link = link
        self.hear = hear
        self.client = client
        self.environ = environ
        self._server: Server | None = None
        self._starting = asyncio.Lock()
        self._asked: tuple[Server, OpenAIWire] | None = None

    @property
    def served_address(self) -> str | None:
        """Where the server listens, while it is ready: `http://127.0.0.1:PORT`."""
        server = self._server
        return server.address if server and server.ready and server.ended is None else None

    async def ask(self, request: Request, timers: Timers) -> Reply:
        """The whole reply. Raises RequestFailed, with the reason when there is no server or it died."""
        server = await self._ready(timers)
        server.trim_log()
        try:
            return await self._wire(server).ask(request, timers)
        except RequestFailed as error:
            if error.status is None and await _ends(server):
                raise self._died(server, error) from error
            raise

    async def count(self, request: Request) -> int | None:
        """By the server's own counter, if it runs; None else. Never raises, never starts it."""
        if self._server is None or self.served_address is None:
            return None
        return await self._wire(self._server).count(request)

    async def close(self) -> None:
        """End the server, if there is one."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _ready(self, timers: Timers) -> Server:
        async with self._starting:
            seconds = min(float(self._options.get("start_seconds") or START_SECONDS), timers.total)
            for attempt in range(1, PORTS_TRIED + 1):
                server = await self._running()
                if server.ready or await server.wait_ready(self.client, seconds):
                    return server
                if attempt == PORTS_TRIED or not port_is_taken(server.said()):
                    raise self._died(server, None)
            raise AssertionError  # the last attempt returns or raises

    async def _running(self) -> Server:
        """The server that runs, or a new one."""
        if self._server is not None and self._server.ended is None:
            return self._server
        folders = paths(self.environ)
        found = find_installed(self.link, folders, self.environ)
        launch = Launch(
            program=found.server,
            model=found.model,
            template=found.template,
            window=window_of(self.link),
            threads=self._options.get("threads"),
            extra=_words(self._options.get("arguments")),
        )
        try:
            self._server = Server(launch, self.environ, folders.cache / "logs")
        except OSError as error:
            what = f"local: cannot start {error.filename or found.server}: {error.strerror}"
            raise RequestFailed(what, phase="connect", error_class="not_found") from error
        return self._server

    @property
    def _options(self) -> Mapping[str, Any]:
        return self.link.provider.options

    def _wire(self, server: Server) -> OpenAIWire:
        if self._asked is None or self._asked[0] is not server:
            provider: Provider = replace(self.link.provider, base_url=f"{server.address}/v1", api_key_env=None)
            wire = OpenAIWire(provider, self.client, lambda: server.key, hear=self.hear)
            self._asked = (server, wire)
        return self._asked[1]

    def _died(self, server: Server, error: RequestFailed | None) -> RequestFailed:
        death = cause_of_death(server.ended or 0, server.said())
        return RequestFailed(
            f"{self.link.name}: `llama-server` died: {death.what}",
            phase=error.phase if error else "connect",
            body=server.said(),
            error_class=death.error_class,
            hint=death.hint or f"its log is {server.log}",
        )


async def _ends(server: Server, seconds: float = 1.0) -> bool:
    """Whether the server is gone: a process is reaped a moment after its sockets close."""
    for _ in range(10):
        if server.ended is not None:
            return True
        await asyncio.sleep(seconds / 10)
    return False


def _words(arguments: Any) -> tuple[str, ...]:
    """More arguments for the server: a list, or one line as it is typed."""
    if isinstance(arguments, str):
        return tuple(shlex.split(arguments))
    return tuple(str(word) for word in arguments or ())
