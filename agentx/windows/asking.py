"""Puts the probes' questions to servers: all at once, two seconds at most, never fatal, and not again too soon."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from agentx.config.links import Link
from agentx.windows.probes import Answers, Ask
from agentx.wires.transport import root_cause

AGAIN_AFTER_SECONDS = 60.0
LARGEST_ANSWER = 16 << 20


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a question has no answer, and since when (epoch seconds). `unreachable`: no server answered at all."""

    text: str
    at: float
    unreachable: bool


class Asker:
    """Asks with each link's own key. A question that failed is not asked again for a minute."""

    def __init__(self, client: httpx.AsyncClient, environ: Mapping[str, str], now: Callable[[], float]) -> None:
        self._client = client
        self._environ = environ
        self._now = now
        self._troubles: dict[tuple[Ask, str | None], Trouble] = {}

    async def ask(self, wanted: Iterable[tuple[Link, Ask]], timeout: float) -> Mapping[str, Answers]:
        """The answers by link identity; after *timeout* seconds those that came. Never raises for a server's sake.

        The same question with the same key is asked once, however many links want it.
        """
        askers: dict[tuple[Ask, str | None], list[Link]] = {}
        for link, ask in wanted:
            askers.setdefault((ask, link.key_variable), []).append(link)
        due = {key: links for key, links in askers.items() if self._due(key) and self.has_key(links[0])}
        values = await asyncio.gather(*(self._answer(key, links[0], timeout) for key, links in due.items()))
        found: dict[str, dict[Ask, Any]] = {link.identity: {} for links in askers.values() for link in links}
        for ((ask, _), links), value in zip(due.items(), values, strict=True):
            for link in links:
                if value is not None:
                    found[link.identity][ask] = value
        return {identity: Answers(answers) for identity, answers in found.items()}

    def has_key(self, link: Link) -> bool:
        """The key that the provider wants is there, or it wants none."""
        variable = link.key_variable
        return variable is None or link.provider.key_optional or bool(self._environ.get(variable))

    def forget(self, link: Link) -> None:
        """Ask this link's server again at once: something changed."""
        endpoint = link.endpoint
        self._troubles = {
            key: one for key, one in self._troubles.items() if not key[0].url.startswith(_host(endpoint))
        }

    def trouble(self, asks: Iterable[Ask], link: Link) -> Trouble | None:
        """The newest failure to reach the server of *asks* at all."""
        found = [self._troubles.get((ask, link.key_variable)) for ask in asks]
        return max((one for one in found if one and one.unreachable), key=lambda one: one.at, default=None)

    def _due(self, key: tuple[Ask, str | None]) -> bool:
        trouble = self._troubles.get(key)
        return trouble is None or self._now() - trouble.at >= AGAIN_AFTER_SECONDS

    async def _answer(self, key: tuple[Ask, str | None], link: Link, timeout: float) -> Any:
        ask = key[0]
        unreachable = True
        try:
            async with asyncio.timeout(timeout):
                status, body = await self._fetch(ask, link)
            unreachable = False
            if 200 <= status < 300:
                value = json.loads(body)
                self._troubles.pop(key, None)
                return value
            text = f"status {status}"
        except TimeoutError:
            text = f"no answer within {timeout:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            text = root_cause(error)
        except (ValueError, RecursionError):  # no JSON, or a key that no header can carry
            text = "no answer that can be read"
        where = _host(ask.url).rstrip("/") if unreachable else ask.shown
        self._troubles[key] = Trouble(f"{where}: {text}", self._now(), unreachable)
        return None

    async def _fetch(self, ask: Ask, link: Link) -> tuple[int, bytes]:
        headers = {**link.provider.headers, **self._auth(link), **dict(ask.headers), "accept": "application/json"}
        if ask.body is not None:
            headers["content-type"] = "application/json"
        body = b""
        # Redirects are not followed: a key goes to the address that was configured and nowhere else.
        async with self._client.stream(
            "GET" if ask.body is None else "POST",
            ask.url,
            content=ask.body,
            headers=headers,
            follow_redirects=False,
        ) as response:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise ValueError("too large")
            return response.status_code, body

    def _auth(self, link: Link) -> dict[str, str]:
        key = self._environ.get(link.key_variable or "", "").strip()
        if not key:
            return {}
        if link.provider.auth == "bearer":
            return {"authorization": f"Bearer {key}"}
        return {link.provider.auth: key}


def _host(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"
