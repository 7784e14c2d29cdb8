"""The windows of links, now: asks servers in time, keeps what endpoints prove, and answers without the network."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import httpx

from agentx.config.links import Link
from agentx.config.paths import Paths
from agentx.config.paths import paths as folders
from agentx.windows.asking import Asker, Trouble, asked_as
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue, Price, catalogue_file
from agentx.windows.known import Heard, Held, Known, Learned
from agentx.windows.probes import Answers, Ask, Reading, questions, read_all
from agentx.windows.record import Window, believable
from agentx.windows.resolve import HOSTED_AGE_SECONDS, Facts, Resolution, choose_num_ctx, decide
from agentx.windows.tables import Tables, load_tables

TIMEOUT_SECONDS = 2.0
TOUCH_TIMEOUT_SECONDS = 1.0
TOUCH_EVERY_SECONDS = 10.0
JUST_NOW_SECONDS = 5.0
"""So soon after a request of ours, what is loaded is what was loaded for it."""


class WindowRegistry:
    """Windows by exact endpoint and exact model. One for each process; the cache is shared by all.

    `window` never asks the network: `refresh` and `touch` do.
    """

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        environ: Mapping[str, str],
        cache: Cache,
        tables: Tables,
        catalogue: Catalogue,
        now: Callable[[], float],
    ) -> None:
        self._asker = Asker(client, environ, now)
        self._environ = environ
        self._cache = cache
        self._tables = tables
        self._catalogue = catalogue
        self._now = now
        self._heard: dict[str, Heard] = {}
        self._touched: dict[str, float] = {}
        self._num_ctx: dict[str, int] = {}
        self._succeeded: dict[str, float] = {}
        self._granted: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        self._told: set[tuple[str, str]] = set()

    def window(self, link: Link) -> Window:
        """What *link* holds, by all that is known at this moment."""
        return self._decide(link).window

    def explain(self, link: Link) -> Resolution:
        """The window of *link* with every place where it may come from, and why it won or lost."""
        return self._decide(link)

    def warnings(self, link: Link) -> tuple[str, ...]:
        """What a user should know about the window of *link*, with what can be done about it."""
        return (*self._decide(link).warnings, *self.troubles(link))

    def troubles(self, link: Link) -> tuple[str, ...]:
        """What went wrong with asking the server of *link* and with the file of windows."""
        trouble = self._trouble(link)
        said = [f"the server does not answer: {trouble.text}"] if trouble else []
        return (*said, *self._cache.warnings)

    def untold(self, link: Link) -> tuple[str, ...]:
        """The warnings that this registry has not given out yet."""
        fresh = [text for text in self.warnings(link) if (self._record(link), text) not in self._told]
        self._told.update((self._record(link), text) for text in fresh)
        return tuple(fresh)

    def recognised(self, link: Link) -> str | None:
        """The name of the probe that knew the server of *link*, now or the last time."""
        heard = self._heard.get(self._record(link)) or self._cache.get(self._record(link)).heard
        return heard and heard.probe

    def price(self, link: Link) -> Price | None:
        """What a token of *link* costs; None where it is not known, or the server is one's own."""
        return self._catalogue.price(link)

    def sees_images(self, link: Link) -> bool | None:
        """Whether the model of *link* sees images; None where it is not known."""
        return self._catalogue.sees_images(link)

    def num_ctx(self, link: Link) -> int:
        """What to ask of an Ollama for *link*: decided once, and the same for the whole job.

        Another value on another call would reload the model each time.
        """
        known = self._num_ctx.get(self._record(link)) or choose_num_ctx(link, self._heard.get(self._record(link)))
        if known is None:
            return self.window(link).size
        self._num_ctx[self._record(link)] = known
        return known

    async def refresh(
        self, links: Iterable[Link], timeout: float = TIMEOUT_SECONDS, *, force: bool = False
    ) -> None:
        """Ask the servers of *links*, all at once and for at most *timeout* seconds. Never fails.

        Self-hosted ones always, hosted ones when the last answer is a day old, or with *force*.
        """
        due = [link for link in links if force or link.provider.self_hosted or self._stale(link)]
        await self._ask(due, timeout, sure=False)

    async def touch(self, link: Link) -> None:
        """Ask a self-hosted server again, cheaply: only what it is known to be, and at most every ten seconds.
        What came late is taken from any server."""
        since = abs(self._now() - self._touched.get(self._record(link), -math.inf))
        if (link.provider.self_hosted and since >= TOUCH_EVERY_SECONDS) or self._asker.came_late(link):
            await self._ask([link], TOUCH_TIMEOUT_SECONDS, sure=True)

    def learn(self, link: Link, limit: int, evidence: str, *, guessed: bool = False) -> Window | None:
        """Remember that the endpoint holds no more than *limit* tokens; the new window if that made it smaller.

        Only ever lowers, what it was seen to hold before too. *evidence* says how that was proved, for the user.
        *guessed*: it is only probable. It goes never below what a whole reply showed, and counts for an hour.
        """
        if guessed:
            limit = max(limit, self._largest.get(self._record(link), 0))
        if believable(limit) is None:
            return None
        before = self.window(link).size
        heard = self._heard.get(self._record(link))
        served = heard.reading.served if heard else None
        new = Learned(limit=limit, evidence=evidence, at=self._now(), served=served)

        def lowered(known: Known) -> Known:
            if guessed:
                return replace(known, guess=new)
            old = known.learned
            expired = old is not None and self._now() - old.at >= HOSTED_AGE_SECONDS
            held = known.held and replace(known.held, tokens=min(known.held.tokens, limit))
            learned = old if old and old.limit < limit and not expired else new
            return replace(known, learned=learned, held=held)

        self._cache.update(self._record(link), lowered)
        after = self.window(link)
        return after if after.size < before else None

    def succeeded(self, link: Link, total_tokens: int, prompt_tokens: int | None = None) -> Window | None:
        """A whole reply came, for prompt and output of *total_tokens* together; the new window if that raised it.

        A learned limit below that was wrong, and so was a window that was only believed. What the server itself
        says of the loaded model stays the truth. Not to be called for a request that was cut. *prompt_tokens*
        alone count where the prompt has a budget of its own, and where a server may drop its beginning while it
        writes on (Ollama, llama.cpp with context shift).
        """
        if self._record(link) in self._succeeded:
            self._asker.reached(link)
        else:  # local servers load a model, and change what they say, with the first request
            self._asker.forget(link)
        self._succeeded[self._record(link)] = self._now()
        before = self.window(link)
        alone = link.provider.may_truncate or before.prompt is not None or not before.shared
        tokens = prompt_tokens if alone and prompt_tokens is not None else total_tokens
        if believable(tokens) is None:
            return None
        self._largest[self._record(link)] = max(tokens, self._largest.get(self._record(link), 0))
        known = self._cache.get(self._record(link))
        limits = [one.limit for one in (known.learned, known.guess) if one]
        if tokens <= before.size and not (limits and tokens > min(limits)):
            return None
        what = "prompt" if tokens == prompt_tokens else "prompt and reply"
        held = Held(tokens=tokens, evidence=f"a {what} of {tokens:,} tokens fitted", at=self._now())

        def raised(known: Known) -> Known:
            limit = known.learned if known.learned and known.learned.limit >= tokens else None
            guess = known.guess if known.guess and known.guess.limit >= tokens else None
            return replace(known, learned=limit, guess=guess, held=held)

        self._cache.update(self._record(link), raised)
        after = self.window(link)
        return after if after.size > before.size else None

    def forget(self, link: Link) -> None:
        """Drop all that was learned and heard of *link*."""
        self._cache.update(self._record(link), lambda _: Known())
        for store in (self._heard, self._num_ctx, self._touched, self._succeeded, self._granted, self._largest):
            store.pop(self._record(link), None)
        self._asker.forget(link)

    def _record(self, link: Link) -> str:
        """What all that is known of *link* stands under: at a hosted provider each account has its own windows.

        The account is told apart by its key, of which too little stands there to find it.
        """
        key = "" if link.provider.self_hosted else self._environ.get(link.key_variable or "", "").strip()
        if not key:
            return link.identity
        return f"{link.identity} account {hashlib.sha256(f'{link.endpoint} {key}'.encode()).hexdigest()[:8]}"

    def _decide(self, link: Link) -> Resolution:
        known, heard = self._cache.get(self._record(link)), self._heard.get(self._record(link))
        return decide(
            link,
            Facts(
                now=self._now(),
                heard=heard,
                cached=known.heard,
                learned=known.learned,
                guess=known.guess,
                held=known.held,
                table=self._tables.window(link),
                catalogue=self._catalogue.window(link),
                num_ctx=self._num_ctx.get(self._record(link)) or choose_num_ctx(link, heard),
                granted=self._granted.get(self._record(link)),
                silence=self._silence(link),
            ),
        )

    def _stale(self, link: Link) -> bool:
        heard = self._heard.get(self._record(link)) or self._cache.get(self._record(link)).heard
        return heard is None or self._now() - heard.at >= HOSTED_AGE_SECONDS

    async def _ask(self, links: Sequence[Link], timeout: float, *, sure: bool) -> None:
        links = [link for link in links if _has_address(link)]

        def more(link: Link, answers: Answers, asked: Iterable[Ask]) -> tuple[Ask, ...]:
            heard = self._heard.get(self._record(link))
            return questions(link, answers, asked, self._guess(link), sure=sure and heard is not None)

        answers = await self._asker.ask(links, more, timeout)
        now = self._now()
        for link in links:
            self._touched[self._record(link)] = now
            if asked_as(link) in answers:
                self._hear(link, answers[asked_as(link)], now)

    def _guess(self, link: Link) -> str | None:
        """What kind of server answers *link*: what it last was, else the one that its card speaks of."""
        heard = self._heard.get(self._record(link)) or self._cache.get(self._record(link)).heard
        if heard:
            return heard.probe
        named = [name for name in link.provider.probes if name != "openai_list"]
        return named[0] if len(named) == 1 else None

    def _hear(self, link: Link, answers: Answers, now: float) -> None:
        found = read_all(link, answers)
        before = self._heard.get(self._record(link)) or self._cache.get(self._record(link)).heard
        if found is None:
            if link.provider.self_hosted or not self._asker.says_no(link, answers):
                return
            name, reading = "", Reading(kind="listed", detail="the provider names no window")
        else:
            name, reading = found[0].name, found[1]
        if before and before.probe == name and not reading.trained:  # an answer of several did not come
            reading = replace(reading, trained=before.reading.trained)
        if reading.served and now - self._succeeded.get(self._record(link), -math.inf) < JUST_NOW_SECONDS:
            self._granted[self._record(link)] = reading.served
        heard = Heard(reading=reading, probe=name, at=now)
        self._heard[self._record(link)] = heard

        def newer(known: Known) -> Known:
            learned, guess = (
                None if one and one.served and reading.served and one.served != reading.served else one
                for one in (known.learned, known.guess)  # none after the model was loaded anew
            )
            held = known.held
            if held and reading.kind == "served" and reading.found and _size(reading) < held.tokens:
                held = None  # it holds less now
            # That a local model is not loaded now is no reason to forget what it had when it was.
            had = link.provider.self_hosted and known.heard is not None and known.heard.reading.found
            said = known.heard if had and not reading.found else heard
            return Known(heard=said, learned=learned, guess=guess, held=held)

        self._cache.update(self._record(link), newer)

    def _silence(self, link: Link) -> str | None:
        """Why the server of *link* said nothing."""
        if not self._asker.has_key(link):
            return f"the provider was not asked: `{link.key_variable}` is not set"
        trouble = self._trouble(link)
        return trouble and f"the server does not answer: {trouble.text}, {self._now() - trouble.at:.0f} s ago"

    def _trouble(self, link: Link) -> Trouble | None:
        """Why nothing was heard lately; None when something was, whatever else failed."""
        trouble = self._asker.trouble(link) if _has_address(link) else None
        heard = self._heard.get(self._record(link))
        return None if trouble and heard and heard.at >= trouble.at else trouble


def _has_address(link: Link) -> bool:
    """An embedded server has none before it is started."""
    return not link.provider.self_hosted or link.provider.base_url is not None


def _size(reading: Reading) -> int:
    return min(limit for limit in (reading.served, reading.prompt) if limit)


def open_registry(
    *,
    client: httpx.AsyncClient,
    paths: Paths | None = None,
    environ: Mapping[str, str] = os.environ,
    now: Callable[[], float] = time.time,
) -> WindowRegistry:
    """The registry over the user's files, by default those of *environ*.

    Raises ConfigError when a windows.yaml is wrong.
    """
    paths = paths or folders(environ)
    return WindowRegistry(
        client=client,
        environ=environ,
        cache=Cache(paths.windows),
        tables=load_tables(paths),
        catalogue=Catalogue(catalogue_file(), paths.catalogue_index),
        now=now,
    )
