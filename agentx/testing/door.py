"""The socket side of the fault server: reads requests, carries out plans, and can be closed at any moment."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from agentx.testing.plans import Plan


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came; `body` is parsed JSON, or the text where it is none, or None where there is none."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


Site = Callable[[Asked], tuple[Plan, Callable[[bool], None]]]
"""Gives what to do, and whom to tell when it is done (True when the client had gone)."""


class Door(ThreadingMixIn, TCPServer):
    """A threaded HTTP/1.1 server on loopback, on a port of its own.

    `http.server` is not used for the server itself: its bind looks the host's name up, which takes seconds on
    some machines.
    """

    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = False  # closing waits for every thread, so that no socket is left behind

    def __init__(self, site: Site, port: int = 0) -> None:
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _handler(self, site))
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Break every connection and give the port back. Returns when no thread is left."""
        self.closing.set()
        self.shutdown()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _break(connection)
        self.server_close()
        self._thread.join()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


def _break(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already


def _handler(door: Door, site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            door.opened(self.connection)

        def finish(self) -> None:
            try:
                super().finish()
            except OSError:
                self.close_connection = True  # the client went before everything was written
            finally:
                door.closed(self.connection)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is http.server's
            """Nothing is printed: the server keeps its own log."""

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(length) if length else b""
            headers = {name.lower(): value for name, value in self.headers.items()}
            plan, done = site(Asked(self.command, self.path.split("?")[0], headers, _parsed(raw)))
            gone = False
            try:
                self._carry_out(plan)
            except OSError:
                gone = self.close_connection = True
            done(gone)

        def _carry_out(self, plan: Plan) -> None:
            if plan.delay and door.closing.wait(plan.delay):
                self.close_connection = True
                return
            if plan.status is not None:
                self._send(plan, plan.status)
            if plan.then == "hang":
                door.closing.wait()
            while plan.then == "beat" and not door.closing.wait(plan.every):
                self._chunk(plan.beat)
            if plan.then != "end":
                self.close_connection = True
            elif plan.pieces is not None:
                self.wfile.write(b"0\r\n\r\n")

        def _send(self, plan: Plan, status: int) -> None:
            self.send_response(status)
            for name, value in plan.headers.items():
                self.send_header(name, value)
            if plan.pieces is None:
                announced = len(plan.body) if plan.announced is None else plan.announced
                self.send_header("content-length", str(announced))
                self.end_headers()
                self.wfile.write(plan.body)
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in plan.pieces:
                self._chunk(piece)

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    return Handler


def _parsed(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
