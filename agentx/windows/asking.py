"""Puts the probes' questions to servers: all servers at once, two seconds at most, never fatal, not too often.

An answer that takes longer is not waited for, but not lost either: it is taken when the question comes up again.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from agentx.config.links import Link
from agentx.windows.probes import Answers, Ask, probes_for
from agentx.wires.transport import root_cause

AGAIN_AFTER_SECONDS = 60.0
AGAIN_AFTER_NO_SECONDS = 600.0
"""After a plain "there is no such route": most servers know few of the routes that others have."""
LATE_SECONDS = 30.0
"""How long an answer may take at all."""
AT_ONCE = 4
"""Questions to a server: one on Python's http.server lets five connections wait and drops others for a second."""
LARGEST_ANSWER = 8 << 20
"""In bytes, unpacked; the longest list of a real provider (some 500 models) has two million."""
NO_SUCH_ROUTE = (404, 405, 410, 501)

Key = tuple[Ask, str | None]
Who = tuple[str, str | None]
Next = Callable[[Link, Answers, Iterable[Ask]], tuple[Ask, ...]]
"""What to ask next, given the answers so far and all that was asked."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a question has no answer, and since when (epoch seconds).

    `unreachable`: no server answered at all. `final`: it said that it has no such thing.
    """

    text: str
    at: float
    unreachable: bool
    final: bool


class Asker:
    """Asks with each link's own key. A question that failed is not asked again for a while."""

    def __init__(self, client: httpx.AsyncClient, environ: Mapping[str, str], now: Callable[[], float]) -> None:
        self._client = client
        self._environ = environ
        self._now = now
        self._troubles: dict[Key, Trouble] = {}
        self._coming: dict[Key, asyncio.Task[Any]] = {}
        """Questions that were put and whose answer was not taken yet."""

    async def ask(self, links: Iterable[Link], more: Next, timeout: float) -> Mapping[Who, Answers]:
        """The answers by `asked_as`; after *timeout* seconds those that came. Never raises for a server's sake.

        Each link is asked what *more* wants, again and again until it wants nothing. Servers do not wait for each
        other. The same question with the same key is asked once, however many links want it.
        """
        groups: dict[tuple[str, str | None], list[Link]] = {}
        for link in {asked_as(link): link for link in links if self.has_key(link)}.values():
            groups.setdefault((_server(link), link.key_variable), []).append(link)
        found = await asyncio.gather(*(self._group(group, more, timeout) for group in groups.values()))
        return {who: answers for one in found for who, answers in one.items()}

    def has_key(self, link: Link) -> bool:
        """The key that the provider wants is there, or it wants none."""
        variable = link.key_variable
        return variable is None or link.provider.key_optional or bool(self._environ.get(variable))

    def forget(self, link: Link) -> None:
        """Ask this link's server anything again at once: it may be another one now."""
        server = _server(link)
        self._keep(lambda ask, _: _host(ask.url) != server)
        for key in [key for key in self._coming if _host(key[0].url) == server]:
            self._coming.pop(key).cancel()

    def came_late(self, link: Link) -> bool:
        """An answer for *link* has come that nobody waited for."""
        late = [key for key, task in self._coming.items() if task.done() and key[1] == link.key_variable]
        server = _server(link) if late else ""
        return any(_host(key[0].url) == server for key in late)

    def reached(self, link: Link) -> None:
        """This link's server answers: only routes that it does not have are left alone."""
        if any(not trouble.final for trouble in self._troubles.values()):
            server = _server(link)
            self._keep(lambda ask, trouble: trouble.final or _host(ask.url) != server)

    def trouble(self, link: Link) -> Trouble | None:
        """The newest failure to reach the server of *link* at all."""
        lost = [
            (ask, one)
            for (ask, key), one in self._troubles.items()
            if one.unreachable and key == link.key_variable
        ]
        server = _server(link) if lost else ""
        found = [trouble for ask, trouble in lost if _host(ask.url) == server]
        return max(found, key=lambda one: one.at, default=None)

    def says_no(self, link: Link, answers: Answers) -> bool:
        """Each question of *link*'s probes was answered, or the server said that it has no such thing."""
        asks = [ask for probe in probes_for(link) for ask in probe.asks(link) if not answers.has(ask)]
        troubles = [self._troubles.get((ask, link.key_variable)) for ask in asks]
        return all(one is not None and one.final for one in troubles)

    def _keep(self, wanted: Callable[[Ask, Trouble], bool]) -> None:
        self._troubles = {key: one for key, one in self._troubles.items() if wanted(key[0], one)}

    def _due(self, key: Key) -> bool:
        if key in self._coming and self._coming[key].done():
            return True
        trouble = self._troubles.get(key)
        if trouble is None:
            return True
        wait = AGAIN_AFTER_NO_SECONDS if trouble.final else AGAIN_AFTER_SECONDS
        return self._now() - trouble.at >= wait

    async def _group(self, links: list[Link], more: Next, timeout: float) -> dict[Who, Answers]:
        """The answers for *links*, which share a server and a key: round by round, until nothing is wanted."""
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        door = asyncio.Semaphore(AT_ONCE)
        values: dict[Ask, Any] = {}
        asked: set[Ask] = set()

        async def answer(ask: Ask, link: Link) -> Any:
            async with door:
                left = end - clock()
                return await self._answer(ask, link, left, fair=left >= timeout / 2) if left > 0 else None

        while end > clock():
            askers: dict[Ask, Link] = {}
            for link in links:
                for ask in more(link, Answers(values), asked):
                    askers.setdefault(ask, link)
            asked |= askers.keys()
            due = [(ask, link) for ask, link in askers.items() if self._due((ask, link.key_variable))]
            answers = await asyncio.gather(*(answer(ask, link) for ask, link in due))
            values |= {ask: value for (ask, _), value in zip(due, answers, strict=True) if value is not None}
            if not askers or self._is_dead(askers):
                break
        return {asked_as(link): Answers(values) for link in links}

    def _is_dead(self, askers: Mapping[Ask, Link]) -> bool:
        """No question of this round reached anybody: others would not either."""
        troubles = [self._troubles.get((ask, link.key_variable)) for ask, link in askers.items()]
        return all(one is not None and one.unreachable for one in troubles)

    async def _answer(self, ask: Ask, link: Link, timeout: float, *, fair: bool) -> Any:
        """None where there is no answer in time. What did not come in less than a *fair* time is no trouble."""
        key = (ask, link.key_variable)
        task = self._coming.get(key) or asyncio.create_task(self._fetched(ask, link))
        self._coming[key] = task
        await asyncio.wait([task], timeout=timeout)
        if task.done():
            self._coming.pop(key, None)
            return None if task.cancelled() else task.result()
        if fair:
            text = f"{_host(ask.url).rstrip('/')}: no answer within {timeout:.2g} s"
            self._troubles[key] = Trouble(text, self._now(), unreachable=True, final=False)
        return None

    async def _fetched(self, ask: Ask, link: Link) -> Any:
        """The answer; None where there is none, and then why stands in the troubles."""
        final, unreachable = False, True
        try:
            async with asyncio.timeout(LATE_SECONDS):
                status, body = await self._fetch(ask, link)
            unreachable = False
            if 200 <= status < 300:
                value = json.loads(body)
                self._troubles.pop((ask, link.key_variable), None)
                return value
            text, final = f"status {status}", status in NO_SUCH_ROUTE
        except TimeoutError:
            text = f"no answer within {LATE_SECONDS:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            text = root_cause(error)
        except (ValueError, RecursionError, zlib.error):  # no JSON, or a key that no header can carry
            text = "no answer that can be read"
        where = _host(ask.url).rstrip("/") if unreachable else ask.shown
        trouble = Trouble(f"{where}: {text}", self._now(), unreachable, final)
        self._troubles[(ask, link.key_variable)] = trouble
        return None

    async def _fetch(self, ask: Ask, link: Link) -> tuple[int, bytes]:
        headers = {**link.provider.headers, **self._auth(link), **dict(ask.headers), "accept": "application/json"}
        # Packed answers are not asked for: a small one may unpack to more than the memory holds.
        headers["accept-encoding"] = "identity"
        if ask.body is not None:
            headers["content-type"] = "application/json"
        body = bytearray()
        # Redirects are not followed: a key goes to the address that was configured and nowhere else.
        async with self._client.stream(
            "GET" if ask.body is None else "POST",
            ask.url,
            content=ask.body,
            headers=headers,
            follow_redirects=False,
        ) as response:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise ValueError("too large")
            return response.status_code, _unpacked(bytes(body), response.headers.get("content-encoding", ""))

    def _auth(self, link: Link) -> dict[str, str]:
        key = self._environ.get(link.key_variable or "", "").strip()
        if not key:
            return {}
        if link.provider.auth == "bearer":
            return {"authorization": f"Bearer {key}"}
        return {link.provider.auth: key}


def asked_as(link: Link) -> Who:
    """What tells the answers for *link* from those for others: its identity, and the variable of its key."""
    return link.identity, link.key_variable


def _unpacked(body: bytes, encoding: str) -> bytes:
    """*body* of a server that packs it all the same. Raises ValueError or zlib.error."""
    if encoding.strip().lower() in ("", "identity"):
        return body
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        raise ValueError("packed in a way that was not asked for")
    unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LARGEST_ANSWER + 1)
    if len(unpacked) > LARGEST_ANSWER:
        raise ValueError("too large")
    return unpacked


def _server(link: Link) -> str:
    """Where the questions of *link* go; for a provider without an address of its own, where its probes know it."""
    asks = [ask for probe in probes_for(link) for ask in probe.asks(link)[:1]]
    return _host(asks[0].url if asks else link.endpoint)


def _host(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"
