"""What litellm says to the network and hears from it, as it really was.

litellm sends over a transport of ours: it shares the connections and the proxies of the other wires, one request
stays one (litellm would connect again by itself), and what it makes of an answer can be held against the bytes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from agentx.wires.gather import error_in, objects
from agentx.wires.transport import MAX_ERROR_BYTES, Broken, excerpt

WORDS_OF_AN_END = (b'"finishReason"', b'"finish_reason"', b'"blockReason"')
"""Gemini's, of which litellm makes an end up where none came."""
OVERLAP = max(map(len, WORDS_OF_AN_END))


class NotConnected(OSError):
    """In place of httpx's ConnectError, after which litellm would connect a second time."""


class OneRequest(httpx.AsyncBaseTransport):
    """Passes the one request of an attempt to *client*, whose owner closes it, and keeps what came.

    `body` is at most 64 KiB of it; `ended` tells that Gemini said why the reply ended.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.response: httpx.Response | None = None
        self.asked = ""
        self.body = bytearray()
        self.ended = False
        self._tail = b""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked = str(request.url)
        # So that what is heard can be read; a stream of small events hardly gains from less.
        request.headers["accept-encoding"] = "identity"
        try:
            response = await self.client.send(request, stream=True)
        except httpx.ConnectError as error:
            raise NotConnected(str(error)) from error
        self.response = response
        stream = _Heard(response, self._heard)
        return httpx.Response(response.status_code, headers=response.headers, stream=stream, request=request)

    def unfinished(self) -> bool:
        """Whether this was a stream of Gemini that ended before it said why."""
        return "streamGenerateContent" in self.asked and self._plain() and not self.ended

    def refused(self) -> Broken | None:
        """What a server said under 200 in place of a reply: a page, or an error."""
        response = self.response
        if response is None or not response.is_success or not self._plain():
            return None
        text = self.body.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
        if "html" in response.headers.get("content-type", "") or text[:9].lower() in ("<!doctype", "<html>"):
            return Broken(f"answered 200 with HTML: {excerpt(text, 80)}", text, phase="body")
        for line in text.splitlines():
            said = _json(line.removeprefix("data:"))
            if any(error_in(one) for one in said):
                body = json.dumps(said[0], ensure_ascii=False)
                return Broken(f"an error in place of a reply: {excerpt(body)}", body)
        return None

    def _plain(self) -> bool:
        return self.response is not None and "content-encoding" not in self.response.headers

    def _heard(self, data: bytes) -> None:
        self.body += data[: max(0, MAX_ERROR_BYTES - len(self.body))]
        joined = self._tail + data
        self.ended = self.ended or any(word in joined for word in WORDS_OF_AN_END)
        self._tail = joined[-OVERLAP:]


class _Heard(httpx.AsyncByteStream):
    def __init__(self, response: httpx.Response, hear: Callable[[bytes], None]) -> None:
        self._response = response
        self._hear = hear

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._response.aiter_raw():
            self._hear(data)
            yield data

    async def aclose(self) -> None:
        await self._response.aclose()


def _json(text: str) -> list[dict[str, Any]]:
    try:
        return objects(json.loads(text))
    except (ValueError, RecursionError):
        return []
