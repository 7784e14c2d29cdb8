"""The socket side of the fault server: reads requests, carries out plans, and can be closed at any moment."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socketserver import StreamRequestHandler, TCPServer, ThreadingMixIn
from typing import Any, Literal, cast

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
HELLO_BYTES = 4096


class Door(ThreadingMixIn, TCPServer):
    """A threaded HTTP/1.1 server on loopback, on a port of its own.

    `manners`: it `talks`, or it is `deaf` (holds its port, and nobody listens there), or it `cuts` every
    connection when the client has said its first word. `http.server` is not used for the server itself: its
    bind looks the host's name up, which takes seconds on some machines.
    """

    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = False  # closing waits for every thread, so that no socket is left behind

    def __init__(self, site: Site, port: int = 0, manners: Literal["talks", "deaf", "cuts"] = "talks") -> None:
        self.site = site
        self.manners = manners
        self.closing = threading.Event()
        self.accepted = 0
        """How many connections there were."""
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Cut if manners == "cuts" else _Talk)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def server_activate(self) -> None:
        if self.manners != "deaf":
            super().server_activate()

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    def open(self) -> None:
        if self.manners != "deaf":
            self._thread.start()

    def close(self) -> None:
        """Break every connection and give the port back. Returns when no thread is left."""
        self.closing.set()
        if self.manners != "deaf":
            self.shutdown()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            _break(connection)
        self.server_close()
        if self.manners != "deaf":
            self._thread.join()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self.accepted += 1
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


def _break(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already


class _Cut(StreamRequestHandler):
    """Hears the client's first word, which is the beginning of a TLS handshake, and closes."""

    def handle(self) -> None:
        door = cast(Door, self.server)
        door.opened(self.connection)
        try:
            self.connection.recv(HELLO_BYTES)
        except OSError:
            return  # the client went first
        finally:
            door.closed(self.connection)


class _Talk(BaseHTTPRequestHandler):
    """One connection: reads its requests and carries out the plans for them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def door(self) -> Door:
        return cast(Door, self.server)

    def setup(self) -> None:
        super().setup()
        self.door.opened(self.connection)

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            self.close_connection = True  # the client went before everything was written
        finally:
            self.door.closed(self.connection)

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
        plan, done = self.door.site(Asked(self.command, self.path.split("?")[0], headers, _parsed(raw)))
        gone = False
        try:
            self._carry_out(plan)
        except OSError:
            gone = self.close_connection = True
        done(gone)

    def _carry_out(self, plan: Plan) -> None:
        closing = self.door.closing
        if plan.delay and closing.wait(plan.delay):
            self.close_connection = True
            return
        if plan.status is not None:
            self._send(plan, plan.status)
        if plan.then == "hang":
            closing.wait()
        while plan.then == "beat" and not closing.wait(plan.every):
            self._chunk(plan.beat)
        if plan.then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
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
        else:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        write = self.wfile.write if plan.pieces is None else self._chunk
        for piece in (plan.body,) if plan.pieces is None else plan.pieces:
            for part in self._drops(piece, plan.drip):
                write(part)

    def _drops(self, data: bytes, seconds: float) -> Iterator[bytes]:
        """*data* as it stands, or byte by byte with *seconds* before each; nothing more when the server closes."""
        if not seconds:
            yield data
            return
        for byte in data:
            if self.door.closing.wait(seconds):
                self.close_connection = True
                return
            yield bytes([byte])

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _parsed(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
