"""The server that all clients of `bench/chain.py` are measured on: a real socket, a process of its own, and
replies that were made before the first request. It prints its port.

`/v1/...` answers as a model does, streamed where a stream is asked for; `/429/v1/...` answers 429 and no more.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
BASE = {"id": "x", "created": 1, "model": "m"}
MESSAGE = {"role": "assistant", "content": "Hello."}
PLAIN = json.dumps(
    {
        **BASE,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
        "usage": USAGE,
    }
).encode()
CHUNKS: tuple[dict[str, Any], ...] = (
    {"choices": [{"index": 0, "delta": MESSAGE, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": USAGE},
)
EVENTS = b"".join(
    b"data: " + json.dumps({**BASE, "object": "chat.completion.chunk", **chunk}).encode() + b"\n\n"
    for chunk in CHUNKS
)
STREAM = EVENTS + b"data: [DONE]\n\n"
LIMITED = b'{"error":{"message":"Rate limit reached","type":"rate_limit_error","code":"rate_limit_exceeded"}}'


def answer(status: str, kind: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def streamed(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


WHOLE = answer("200 OK", "application/json", PLAIN)
IN_PIECES = streamed(STREAM)
REFUSED = answer("429 Too Many Requests", "application/json", LIMITED)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
            body = await reader.readexactly(length)
            if b" /429/" in head:
                writer.write(REFUSED)
            else:
                streams = b'"stream":true' in body[-400:] or b'"stream": true' in body[-400:]
                writer.write(IN_PIECES if streams else WHOLE)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
