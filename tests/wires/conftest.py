"""A server on a real socket that plays back exactly the bytes that a test gives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Literal

import pytest

Step = bytes | float | Literal["hold", "cut"]
"""Bytes are written; a number waits so many seconds; `hold` waits until the client goes away; `cut` resets the
connection."""

Serve = Callable[..., AbstractAsyncContextManager[tuple[str, list[bytes]]]]

SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def serve() -> Serve:
    """`async with serve(*steps) as (url, requests)`: each connection gets the same steps.

    With `one_connection` the first one is the last, and each request on it gets the steps again.
    """
    return _serve


@pytest.fixture
def events() -> Callable[..., bytes]:
    """A chunked answer's head and one SSE event for each chunk; a str is taken as the raw text of an event."""

    def build(*chunks: dict[str, Any] | str, end: bool = True) -> bytes:
        out = SSE_HEAD
        for chunk in chunks:
            text = chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}\n\n"
            out += b"%x\r\n%s\r\n" % (len(text.encode()), text.encode())
        return out + (b"0\r\n\r\n" if end else b"")

    return build


@asynccontextmanager
async def _serve(*steps: Step, one_connection: bool = False) -> AsyncGenerator[tuple[str, list[bytes]]]:
    requests: list[bytes] = []
    tasks: set[asyncio.Task[None]] = set()

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lines[0].partition(b":")[2]) if lines else 0
        requests.append(head + await reader.readexactly(length))
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif step == "hold":
                await reader.read()
            else:
                writer.transport.abort()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await play(reader, writer)
            while one_connection:
                server.close()
                await play(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", requests
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports let go of their sockets in the next round of the loop
