"""What links may spend: one marked `paid` or with a `max_cost` is only used within its cap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agentx.config.links import Link
from agentx.errors import CapReached
from agentx.events import Event, Warned
from agentx.journal import Journal
from agentx.windows.catalogue import Price

LEAST_REPLY = 1_024
"""Tokens: a link that can no longer pay for a reply of this size is not asked."""
MARGIN = 1.05
"""What the measure of a prompt may be wrong by."""
OWN = Price(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0)
HINT = "set `max_cost` of the link (dollars in one job), or `--max-cost`"


@dataclass(frozen=True, slots=True)
class Used:
    """What a job spent on one link so far, in dollars; `unreported` replies came without a count."""

    cost: float = 0.0
    unreported: int = 0


def dollars(amount: float) -> str:
    """`$1.20`; small amounts with two digits that say something: `$0.0034`."""
    return f"${amount:.2f}" if amount >= 0.1 or amount <= 0 else f"${amount:.2g}"


def refusal(link: Link, used: Used, *, job: float, limit: float | None, priced: bool) -> str | None:
    """Why *link* may not be asked, for people; None when it may. *job* is what the whole job spent, *limit* its
    limit of cost.

    A mark without a number is no consent, and what cannot be counted cannot be kept within a cap.
    """
    if not link.on_consent:
        return None
    if link.max_cost is None and limit is None:
        return "it is marked `paid`, and nothing says how much it may cost"
    if not priced:
        return "its price is unknown, so nothing can keep it within its cap"
    if used.unreported:
        return "it does not report what it uses, so nothing can keep it within its cap"
    if link.max_cost is not None and used.cost >= link.max_cost:
        return f"{dollars(used.cost)} of its {dollars(link.max_cost)} are spent"
    if limit is not None and job >= limit:
        return f"{dollars(job)} of the job's {dollars(limit)} are spent"
    return None


def affordable(price: Price, left: float, prompt: int, asked: int) -> int | None:
    """How long a reply of at most *asked* tokens may be, if *prompt* and reply must not cost more than *left*
    dollars; None when it would be too short to be worth it."""
    room = left - prompt * MARGIN * max(price.input, price.cache_write)
    most = asked if price.output <= 0 and room >= 0 else int(room / price.output) if price.output > 0 else 0
    return None if most < min(asked, LEAST_REPLY) else min(most, asked)


def standing(link: Link, price: Price | None, limit: float | None) -> str | None:
    """Why *link* may not be asked in any job as things are set; None when it may."""
    return refusal(link, Used(), job=0.0, limit=limit, priced=price is not None or link.free)


class Purse:
    """The money of one job, by link, as its journal tells it: a resume goes on with what was spent."""

    def __init__(
        self,
        journal: Journal,
        *,
        price: Callable[[Link], Price | None],
        limit: float | None,
        tell: Callable[[Event], object],
    ) -> None:
        self._journal = journal
        self._price = price
        self._limit = limit
        self._tell = tell
        self._seen = 0
        self._used: dict[str, Used] = {}
        self._over: dict[str, str] = {}
        self._told: set[str] = set()

    def price(self, link: Link) -> Price | None:
        return OWN if link.free else self._price(link)

    def refusal(self, link: Link) -> str | None:
        """Why *link* may not be asked now; None when it may. That it may not is told once."""
        if not link.on_consent:
            return None
        if link.name in self._over:
            return self._over[link.name]
        self._read()
        used, job = self._used.get(link.name, Used()), sum(one.cost for one in self._used.values())
        why = refusal(link, used, job=job, limit=self._limit, priced=self.price(link) is not None)
        if why is not None:
            self._say(link, why)
        return why

    def afford(self, link: Link, prompt: int, asked: int) -> int:
        """The `max_tokens` that *link* can be asked for with *prompt* tokens. Raises CapReached, and then the link
        is not asked again."""
        price = self.price(link)
        if not link.on_consent or price is None:
            return asked
        self._read()
        used, job = self._used.get(link.name, Used()), sum(one.cost for one in self._used.values())
        left = [cap - spent for cap, spent in ((link.max_cost, used.cost), (self._limit, job)) if cap is not None]
        most = affordable(price, min(left), prompt, asked) if left else asked
        if most is None:
            rest = dollars(max(0.0, min(left)))
            why = f"a request of {prompt:,} tokens may cost more than the {rest} that are left for it"
            self._over[link.name] = why
            self._say(link, why)
            raise CapReached("cost", why, hint=HINT)
        return most

    def _say(self, link: Link, why: str) -> None:
        if link.name not in self._told:
            self._told.add(link.name)
            self._tell(Warned(message=f"{link.name} is not asked: {why}", hint=HINT))

    def _read(self) -> None:
        """What was spent since the last look."""
        ((newest,),) = self._journal.query("select coalesce(max(seq), 0) from entries")
        for link, cost, unreported in self._journal.query(
            "select json_extract(data, '$.link'), total(json_extract(data, '$.cost')),"
            " total(type = 'reply' and json_extract(data, '$.usage') is null) from entries"
            " where type in ('reply', 'link.failed') and seq > ? and seq <= ? group by 1",
            (self._seen, newest),
        ):
            before = self._used.get(link, Used())
            self._used[link] = replace(
                before, cost=before.cost + cost, unreported=before.unreported + int(unreported)
            )
        self._seen = newest
