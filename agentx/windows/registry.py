"""The windows of links, now: asks servers in time, keeps what endpoints prove, and answers without the network."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import httpx

from agentx.config.links import Link
from agentx.config.paths import Paths
from agentx.config.paths import paths as folders
from agentx.windows.asking import Asker, Trouble
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue, Price, catalogue_file
from agentx.windows.known import Heard, Known, Learned
from agentx.windows.probes import PROBES, Answers, Ask, Probe, probes_for, read_all
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
        self._cache = cache
        self._tables = tables
        self._catalogue = catalogue
        self._now = now
        self._heard: dict[str, Heard] = {}
        self._touched: dict[str, float] = {}
        self._num_ctx: dict[str, int] = {}
        self._succeeded: dict[str, float] = {}
        self._granted: dict[str, int] = {}
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
        fresh = [text for text in self.warnings(link) if (link.identity, text) not in self._told]
        self._told.update((link.identity, text) for text in fresh)
        return tuple(fresh)

    def recognised(self, link: Link) -> str | None:
        """The name of the probe that knew the server of *link*, now or the last time."""
        heard = self._heard.get(link.identity) or self._cache.get(link.identity).heard
        return heard and heard.probe

    def price(self, link: Link) -> Price | None:
        """What a token of *link* costs; None where it is not known, or the server is one's own."""
        return self._catalogue.price(link)

    def num_ctx(self, link: Link) -> int:
        """What to ask of an Ollama for *link*: decided once, and the same for the whole job.

        Another value on another call would reload the model each time.
        """
        known = self._num_ctx.get(link.identity) or choose_num_ctx(link, self._heard.get(link.identity))
        if known is None:
            return self.window(link).size
        self._num_ctx[link.identity] = known
        return known

    async def refresh(
        self, links: Iterable[Link], timeout: float = TIMEOUT_SECONDS, *, force: bool = False
    ) -> None:
        """Ask the servers of *links*, all at once and for at most *timeout* seconds. Never fails.

        Self-hosted ones always, hosted ones when the last answer is a day old, or with *force*.
        """
        due = [link for link in links if force or link.provider.self_hosted or self._stale(link)]
        await self._ask({link.identity: (link, probes_for(link)) for link in due}, timeout)

    async def touch(self, link: Link) -> None:
        """Ask a self-hosted server again, cheaply: only what it is known to be, and at most every ten seconds."""
        heard = self._heard.get(link.identity)
        if (
            not link.provider.self_hosted
            or self._now() - self._touched.get(link.identity, 0) < TOUCH_EVERY_SECONDS
        ):
            return
        probes = (PROBES[heard.probe],) if heard and heard.probe in PROBES else probes_for(link)
        await self._ask({link.identity: (link, probes)}, TOUCH_TIMEOUT_SECONDS)

    def learn(self, link: Link, limit: int, evidence: str) -> Window | None:
        """Remember that the endpoint holds no more than *limit* tokens; the new window if that made it smaller.

        Only ever lowers. *evidence* says how that was proved, for the user.
        """
        if believable(limit) is None:
            return None
        before = self.window(link).size
        heard = self._heard.get(link.identity)
        served = heard.reading.served if heard else None
        new = Learned(limit=limit, evidence=evidence, at=self._now(), served=served)

        def lowered(known: Known) -> Known:
            old = known.learned
            expired = old is not None and self._now() - old.at >= HOSTED_AGE_SECONDS
            return known if old and old.limit < limit and not expired else replace(known, learned=new)

        self._cache.update(link.identity, lowered)
        after = self.window(link)
        return after if after.size < before else None

    def succeeded(self, link: Link, total_tokens: int) -> None:
        """A reply came, for prompt and output of *total_tokens* together: a learned limit below that was wrong."""
        self._succeeded[link.identity] = self._now()
        self._asker.forget(link)
        learned = self._cache.get(link.identity).learned
        if learned and total_tokens > learned.limit:
            self._cache.update(link.identity, lambda known: replace(known, learned=None))

    def forget(self, link: Link) -> None:
        """Drop all that was learned and heard of *link*."""
        self._cache.update(link.identity, lambda _: Known())
        for store in (self._heard, self._num_ctx, self._touched, self._succeeded, self._granted):
            store.pop(link.identity, None)
        self._asker.forget(link)

    def _decide(self, link: Link) -> Resolution:
        known, heard = self._cache.get(link.identity), self._heard.get(link.identity)
        return decide(
            link,
            Facts(
                now=self._now(),
                heard=heard,
                cached=known.heard,
                learned=known.learned,
                table=self._tables.window(link),
                catalogue=self._catalogue.window(link),
                num_ctx=self._num_ctx.get(link.identity) or choose_num_ctx(link, heard),
                granted=self._granted.get(link.identity),
                silence=self._silence(link),
            ),
        )

    def _stale(self, link: Link) -> bool:
        heard = self._heard.get(link.identity) or self._cache.get(link.identity).heard
        return heard is None or self._now() - heard.at >= HOSTED_AGE_SECONDS

    async def _ask(self, wanted: Mapping[str, tuple[Link, tuple[Probe, ...]]], timeout: float) -> None:
        asks = [(link, ask) for link, probes in wanted.values() for ask in _asks(link, probes)]
        if not asks:
            return
        answers = await self._asker.ask(asks, timeout)
        now = self._now()
        for identity, (link, _) in wanted.items():
            self._touched[identity] = now
            self._hear(link, answers.get(identity, Answers({})), now)

    def _hear(self, link: Link, answers: Answers, now: float) -> None:
        found = read_all(link, answers)
        if found is None:
            return
        probe, reading = found
        before = self._heard.get(link.identity) or self._cache.get(link.identity).heard
        if before and before.probe == probe.name and not reading.trained:  # an answer of several did not come
            reading = replace(reading, trained=before.reading.trained)
        if reading.served and now - self._succeeded.get(link.identity, -math.inf) < JUST_NOW_SECONDS:
            self._granted[link.identity] = reading.served
        heard = Heard(reading=reading, probe=probe.name, at=now)
        self._heard[link.identity] = heard

        def newer(known: Known) -> Known:
            learned = known.learned
            if learned and learned.served and reading.served and learned.served != reading.served:
                learned = None  # the model was loaded anew since
            # That a local model is not loaded now is no reason to forget what it had when it was.
            keep = reading.found or not (known.heard and known.heard.reading.found)
            return Known(heard=heard if keep else known.heard, learned=learned)

        self._cache.update(link.identity, newer)

    def _silence(self, link: Link) -> str | None:
        """Why the server of *link* said nothing."""
        if not self._asker.has_key(link):
            return f"the provider was not asked: `{link.key_variable}` is not set"
        trouble = self._trouble(link)
        return trouble and f"the server does not answer: {trouble.text}, {self._now() - trouble.at:.0f} s ago"

    def _trouble(self, link: Link) -> Trouble | None:
        """Why nothing was heard lately; None when something was, whatever else failed."""
        trouble = self._asker.trouble(_asks(link, probes_for(link)), link)
        heard = self._heard.get(link.identity)
        return None if trouble and heard and heard.at >= trouble.at else trouble


def _asks(link: Link, probes: Iterable[Probe]) -> list[Ask]:
    """The questions of *probes*, each once. An embedded server has no address before it is started."""
    if link.provider.self_hosted and link.provider.base_url is None:
        return []
    return list(dict.fromkeys(ask for probe in probes for ask in probe.asks(link)))


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
        catalogue=Catalogue(catalogue_file()),
        now=now,
    )
