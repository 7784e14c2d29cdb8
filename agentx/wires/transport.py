"""One door to the network for the wires on httpx: post, read under four timers, translate every failure.

What a server says is judged elsewhere. Here a failure only gets its phase, and keeps status, headers and text.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol, cast

import httpx

from agentx.errors import Phase, RequestFailed
from agentx.wires.messages import Timers
from agentx.wires.timing import Clock

HEADERS = {"accept": "*/*", "accept-encoding": "gzip, deflate", "connection": "keep-alive"}
MAX_ERROR_BYTES = 64 * 1024
MAX_REPLY_BYTES = 64 * 1024 * 1024
ERROR_BODY_SECONDS = 1.0
"""The status alone says nearly all: nobody waits long for the words of a refusal."""
LINGER_SECONDS = 5.0
"""How long after the reason for the end the usage may still come; not every server closes its stream."""
END_SECONDS = 0.25
"""How long after the last event the connection may take to end, so that it can be used again."""


class Broken(Exception):
    """An answer under 200 that is no reply; `body` is what the server wrote."""

    def __init__(self, what: str, body: str = "", *, phase: Phase = "stream") -> None:
        super().__init__(what)
        self.what = what
        self.body = body
        self.phase: Phase = phase


class Reader(Protocol):
    """Reads the bytes of one answer; knows its protocol and nothing of the network."""

    @property
    def whole(self) -> bool:
        """The reply is complete: what may follow (usage) is welcome and not needed."""
        ...

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        ...

    @property
    def streaming(self) -> bool:
        """The answer is a stream, not one body."""
        ...

    def feed(self, data: bytes) -> bool:
        """True when *data* held content. Raises Broken."""
        ...

    def close(self) -> None:
        """The answer has ended. Raises Broken when it is not whole."""
        ...


@dataclass(frozen=True, slots=True)
class Post:
    """`who` names the link in messages; `secret` never shows up in an error."""

    who: str
    url: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    secret: str | None = field(default=None, repr=False)

    def clean(self, text: str) -> str:
        return text.replace(self.secret, "[key]") if self.secret else text


async def post(client: httpx.AsyncClient, call: Post, timers: Timers, reader: Reader) -> dict[str, str]:
    """Feeds the answer to *reader* until it is whole; gives the answer's headers, with lower-case names.

    Raises RequestFailed for everything else that can happen.
    """
    clock = Clock(timers)
    responses: list[httpx.Response] = []
    try:
        async with clock:
            await _exchange(client, call, clock, reader, responses)
    except TimeoutError as error:
        if responses and not responses[0].is_success:  # it has refused: only its words did not come
            raise _failed(call, _status(responses[0]), "status", responses) from error
        if not reader.whole:
            raise _failed(call, clock.why(), _phase(responses, reader), responses, timed_out=True) from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        if not reader.whole:
            raise _translated(call, error, _phase(responses, reader), responses, timers) from error
    except Broken as error:
        raise _failed(call, error.what, error.phase, responses, body=error.body) from error
    return _headers(call, responses[0])


async def _exchange(
    client: httpx.AsyncClient, call: Post, clock: Clock, reader: Reader, responses: list[httpx.Response]
) -> None:
    response = await client.send(_request(client, call, clock.timers), stream=True)
    responses.append(response)
    clock.answered()
    try:
        if not response.is_success:
            body = await _error_text(response)
            raise _failed(call, f"{_status(response)}{_colon(excerpt(body))}", "status", responses, body=body)
        await _read(response, clock, reader)
    finally:
        await response.aclose()
    reader.close()


def _request(client: httpx.AsyncClient, call: Post, timers: Timers) -> httpx.Request:
    """What `client.build_request` makes, for half of its cost: there is little to merge."""
    timeout = {"connect": timers.connect, "read": None, "write": None, "pool": None}
    return httpx.Request(
        "POST",
        _url(call.url),
        headers=HEADERS | call.headers,
        cookies=client.cookies or None,
        content=call.body,
        extensions={"timeout": timeout},
    )


@lru_cache(maxsize=64)
def _url(text: str) -> httpx.URL:
    return httpx.URL(text)


async def _read(response: httpx.Response, clock: Clock, reader: Reader) -> None:
    size = 0
    async for data in response.aiter_bytes():
        size += len(data)
        if size > MAX_REPLY_BYTES:
            raise Broken(f"the answer is larger than {MAX_REPLY_BYTES // 2**20} MiB", phase="body")
        whole, ended = reader.whole, reader.ended
        if reader.feed(data) and not reader.whole:
            clock.content()
        if reader.ended and not ended:
            clock.linger(END_SECONDS)
        elif reader.whole and not whole:
            clock.linger(LINGER_SECONDS)


async def _error_text(response: httpx.Response) -> str:
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_SECONDS):
            async for data in response.aiter_bytes():
                body += data
                if len(body) >= MAX_ERROR_BYTES:
                    break
    except (TimeoutError, httpx.HTTPError):
        pass  # the status is known; what came of the text is all there is
    return bytes(body[:MAX_ERROR_BYTES]).decode("utf-8", "replace")


def _phase(responses: list[httpx.Response], reader: Reader) -> Phase:
    if not responses:
        return "headers"
    return "stream" if reader.streaming else "body"


def _translated(
    call: Post,
    error: httpx.HTTPError | httpx.InvalidURL | UnicodeError,
    phase: Phase,
    responses: list[httpx.Response],
    timers: Timers,
) -> RequestFailed:
    match error:
        case httpx.ConnectTimeout():
            what = f"no connection to {origin(call.url)} within {timers.connect:g} s"
            return _failed(call, what, "connect", responses, timed_out=True)
        case httpx.ConnectError() | httpx.ProxyError():
            return _failed(
                call, f"cannot connect to {origin(call.url)}: {root_cause(error)}", "connect", responses
            )
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL() | UnicodeError():
            what = f"the request to `{call.url}` cannot be sent: {error}"
            return _failed(call, what, "connect", responses)
        case _:
            return _failed(call, f"the connection broke: {root_cause(error)}", phase, responses)


def origin(url: str) -> str:
    """The address in *url* without its path: what a person starts a server at."""
    return "/".join(url.split("/", 3)[:3])


def root_cause(error: BaseException) -> str:
    """What the operating system said, where it said something; else the error's own words."""
    said = str(error)
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            # asyncio writes the address where the reason should be.
            said = os.strerror(cause.errno) if isinstance(cause, ConnectionError) else cause.strerror
    return said or type(error).__name__


def causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from causes(one)
    if (cause := error.__cause__ or error.__context__) is not None:
        yield from causes(cause)


def _failed(
    call: Post,
    what: str,
    phase: Phase,
    responses: list[httpx.Response],
    *,
    body: str = "",
    timed_out: bool = False,
) -> RequestFailed:
    response = responses[0] if responses else None
    return RequestFailed(
        message=call.clean(f"{call.who}: {what}"),
        phase=phase,
        status=None if response is None else response.status_code,
        headers={} if response is None else _headers(call, response),
        body=call.clean(body[:MAX_ERROR_BYTES]),
        timed_out=timed_out,
    )


def _headers(call: Post, response: httpx.Response) -> dict[str, str]:
    # A session's cookie is nobody's business in a journal.
    return {name.lower(): call.clean(value) for name, value in response.headers.items() if name != "set-cookie"}


def _status(response: httpx.Response) -> str:
    try:
        return f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
    except ValueError:
        return f"{response.status_code} {response.reason_phrase}".rstrip()


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def excerpt(body: str, limit: int = 300) -> str:
    """The one sentence of an error's text that says what happened, on one line."""
    try:
        said = _said(json.loads(body))
    except (ValueError, RecursionError):
        said = None
    text = " ".join((body if said is None else said).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _said(value: Any) -> str | None:
    match value:
        case str():
            return value
        case [first, *_]:
            return _said(first)
        case {"error": dict() | list() | str()}:
            return _said(value["error"])
        case {"message": str() as text} | {"detail": str() as text}:
            return text
        case _:
            return None
