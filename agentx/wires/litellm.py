"""The `litellm` wire: every provider that speaks a language of its own, behind one door.

litellm takes seconds and 190 MB to import and asks the network while it does; so it is loaded at the first
request, in a thread, by one function of this file. Its retries are off: retrying has one place, the chain.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx

from agentx.config.links import Provider, identity_of
from agentx.errors import Phase, RequestFailed
from agentx.wires.cache import marked_messages, marked_tools
from agentx.wires.dialect import apply_changes, openai_messages, openai_tools
from agentx.wires.families import dialect_of
from agentx.wires.gather import Gathered, Hear, counted
from agentx.wires.key import Key, key_for, no_key
from agentx.wires.litellm_door import OneRequest
from agentx.wires.messages import Reply, Request, Timers
from agentx.wires.rendered import compact
from agentx.wires.timing import Clock
from agentx.wires.transport import LINGER_SECONDS, MAX_ERROR_BYTES, Broken, causes, excerpt, root_cause
from agentx.wires.whole import Facts, whole_reply

OVER_OUR_CLIENT = frozenset({"anthropic", "gemini", "vertex_ai", "bedrock"})
"""Where litellm takes a client of ours; for those that it speaks to over an SDK it would have to be another."""
HEADER_PREFIX = "llm_provider-"
"""litellm puts this before the names of the provider's own headers."""


def load() -> Any:
    """The litellm module, set up. Slow: call it in a thread.

    The only place of agentx that writes to the environment: both variables are read while litellm is being
    imported, and there is no other way in. The first keeps the price map from being fetched over the network,
    the second keeps older versions from reading a `.env` file out of the workspace.
    """
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    # By name, since type checkers take minutes for its types and find little.
    litellm: Any = importlib.import_module("litellm")
    # aiohttp would go round our proxies and timers.
    litellm.disable_aiohttp_transport = True
    # It prints advice to stdout, which is the answer's.
    litellm.suppress_debug_info = True
    # Its types make pydantic warn on stderr at the first reply.
    warnings.filterwarnings("ignore", ".*`ReadOnly` qualifier", UserWarning)
    # What went wrong is told by our own errors.
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


class LiteLLMWire:
    """One provider through litellm. `key` is asked at each request; the client belongs to the caller."""

    def __init__(
        self,
        provider: Provider,
        client: httpx.AsyncClient,
        key: Key = no_key,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        hear: Hear | None = None,
    ) -> None:
        self.provider = provider
        self.client = client
        self.key = key
        self.monotonic = monotonic
        self.hear = hear

    async def ask(self, request: Request, timers: Timers) -> Reply:
        """The whole reply, read from a stream into a buffer. Raises RequestFailed."""
        started = self.monotonic()
        key = key_for(self.provider, self.key)
        litellm = await asyncio.to_thread(load)
        door = OneRequest(self.client)
        attempt = _Attempt(f"{self.provider.name}/{request.model}", key, door)
        attempt.gathered.hear = self.hear if request.purpose == "turn" else None
        arguments = completion(request, self.provider, key, timers)
        if (self.provider.litellm_prefix or self.provider.name) in OVER_OUR_CLIENT:
            arguments["client"] = litellm.AsyncHTTPHandler(transport=door, follow_redirects=False)
        sent = compact(arguments["messages"])
        with counted(attempt.gathered):
            async with attempt.translated(Clock(timers)) as clock:
                stream: Any = await litellm.acompletion(**arguments)
                attempt.stream = stream
                clock.answered()
                async for chunk in stream:
                    attempt.take(chunk.model_dump(exclude_none=True), clock)
                attempt.close()
        facts = Facts(
            sent=sent,
            seconds=self.monotonic() - started,
            issuer=identity_of(self.provider, request.model),
            headers=attempt.headers(),
        )
        return whole_reply(attempt.gathered, request, facts)

    async def count(self, request: Request) -> int | None:
        """None: counting would cost a request to the provider."""
        return None


def completion(request: Request, provider: Provider, key: str | None, timers: Timers) -> dict[str, Any]:
    """The arguments of litellm's `acompletion`. What a model does not take (`temperature`) is left out by it."""
    prefix = provider.litellm_prefix or provider.name
    dialect = dialect_of(provider, request.model, images=request.shows_images)
    messages, tools = openai_messages(request.messages, dialect), openai_tools(request.tools, dialect.schemas)
    if dialect.cache is not None:
        messages, tools = marked_messages(messages, dialect.cache), marked_tools(tools)
    arguments: dict[str, Any] = {
        "model": f"{prefix}/{request.model}",
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,
        "timeout": httpx.Timeout(timers.total, connect=timers.connect),
    }
    optional: dict[str, Any] = {
        "base_url": _base(provider.base_url, prefix),
        "api_key": key,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature if dialect.temperature else None,
        "tools": tools or None,
        "extra_headers": dict(provider.headers) or None,
    }
    arguments |= {name: value for name, value in optional.items() if value is not None}
    apply_changes(arguments, request)
    return arguments


def _base(url: str | None, prefix: str) -> str | None:
    # litellm appends `/models/...` to a Gemini address: the version belongs to it.
    if url is None or prefix != "gemini" or url.rsplit("/", 1)[-1].startswith("v1"):
        return url
    return f"{url}/v1beta"


class _Attempt:
    """What one request has brought so far, and what its failure means."""

    def __init__(self, who: str, secret: str | None, door: OneRequest) -> None:
        self.who = who
        self.secret = secret
        self.door = door
        self.stream: Any = None
        self.gathered = Gathered()

    def take(self, chunk: dict[str, Any], clock: Clock) -> None:
        finished = self.gathered.finish is not None
        if self.gathered.add(chunk) and self.gathered.finish is None:
            clock.content()
        elif self.gathered.finish is not None and not finished:
            clock.linger(LINGER_SECONDS)

    def close(self) -> None:
        """Raises Broken when the provider never said why the reply ended: litellm then says `stop` for it."""
        if (refused := self.door.refused()) is not None:
            raise refused
        said = getattr(self.stream, "received_finish_reason", "stop") or getattr(
            self.stream, "intermittent_finish_reason", None
        )
        if self.gathered.finish is None or said is None or self.door.unfinished():
            came = self.gathered.text or self.gathered.reasoning or self.gathered.calls
            raise Broken(f"the stream ended {'in the middle of the reply' if came else 'before anything came'}")

    def headers(self) -> dict[str, str]:
        """The provider's own headers, with lower-case names."""
        hidden: dict[str, Any] = getattr(self.stream, "_hidden_params", None) or {}
        named = cast("dict[str, Any]", hidden.get("additional_headers") or {})
        return self._clean({name.removeprefix(HEADER_PREFIX): str(value) for name, value in named.items()})

    @asynccontextmanager
    async def translated(self, clock: Clock) -> AsyncGenerator[Clock]:
        """Everything that may happen inside comes out as RequestFailed."""
        # The root of all that litellm raises; it has a class of the same name that is not.
        root: type[Exception] = importlib.import_module("openai").OpenAIError
        try:
            async with clock:
                yield clock
        except TimeoutError as error:
            if self.gathered.finish is None:
                raise self._failed(clock.why(), timed_out=True) from error
        except Broken as error:
            raise self._failed(error.what, phase=error.phase, body=error.body) from error
        except (root, httpx.HTTPError, ValueError, OSError) as error:
            raise self._of(error) from error
        finally:
            if self.stream is not None and hasattr(self.stream, "aclose"):
                await self.stream.aclose()

    def _of(self, error: Exception) -> RequestFailed:
        """From litellm's error, or rather from what lies under it: litellm turns a 529 and a refused connection
        into a 500 and drops headers, but keeps httpx's own errors as causes."""
        under = list(causes(error))
        text = next((found for found in map(_provider_text, under) if found), str(error))
        for one in under:
            if isinstance(one, httpx.HTTPStatusError):
                return self._failed(
                    f"{one.response.status_code}: {excerpt(text)}",
                    phase="status",
                    status=one.response.status_code,
                    headers=one.response.headers,
                    body=text,
                )
            if isinstance(one, httpx.ConnectError | httpx.ConnectTimeout):
                timed_out = isinstance(one, httpx.ConnectTimeout)
                return self._failed(f"cannot connect: {root_cause(one)}", phase="connect", timed_out=timed_out)
            if isinstance(one, httpx.TransportError):
                timed_out = isinstance(one, httpx.TimeoutException)
                return self._failed(f"the connection broke: {root_cause(one)}", timed_out=timed_out)
        if (refused := self.door.refused()) is not None:
            return self._failed(refused.what, phase=refused.phase, body=refused.body)
        if self.stream is not None:
            return self._failed(excerpt(text), body=text)
        return self._failed(
            excerpt(text),
            phase="status",
            status=getattr(error, "status_code", None),
            headers=getattr(error, "litellm_response_headers", None) or {},
            body=text,
        )

    def _failed(
        self,
        what: str,
        *,
        phase: Phase | None = None,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: str = "",
        timed_out: bool = False,
    ) -> RequestFailed:
        phase = phase or ("headers" if self.stream is None else "stream")
        return RequestFailed(
            message=self._hidden(f"{self.who}: {what}"),
            phase=phase,
            status=200 if phase in ("stream", "body") else status,
            headers=self.headers() if headers is None else self._clean(headers),
            body=self._hidden(body[:MAX_ERROR_BYTES]),
            timed_out=timed_out,
        )

    def _clean(self, headers: Mapping[str, str]) -> dict[str, str]:
        lower = {name.lower(): self._hidden(value) for name, value in headers.items()}
        return {name: value for name, value in lower.items() if name != "set-cookie"}

    def _hidden(self, text: str) -> str:
        return text.replace(self.secret, "[key]") if self.secret else text


def _provider_text(error: BaseException) -> str:
    """What the provider wrote: litellm's own errors keep it as bytes, the SDK's keep the object of the error."""
    message, body = getattr(error, "message", None), getattr(error, "body", None)
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    return json.dumps({"error": body}, ensure_ascii=False) if isinstance(body, dict) else ""
