"""What summaries may cost: so many requests in ten minutes, and a share of the job's money.

Without it a compaction that is asked for at every turn would burn what a night may cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentx.journal import Journal

MOST_CALLS = 24
WITHIN_SECONDS = 600.0
AT_ONCE = 2
"""Requests that one call may take: it is repeated after a blip."""
MOST_SHARE = 0.5
"""Of what the job has cost. A long job whose provider caches its prompts spends up to a third on summaries."""
FREE_COST = 0.5
"""US dollars that summaries may always cost: where the turns cost nothing, all that is spent is theirs."""
FREE_CALLS = 6
"""So many calls, as many as one summary may take, are made before its share of the cost is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Requests for summaries, failed ones too: `lately` within ten minutes, `calls` in all. `cost` is theirs and
    `job` that of everything, in US dollars, as far as it is known."""

    lately: int = 0
    calls: int = 0
    cost: float = 0.0
    job: float = 0.0


def forbidden(spent: Spent, *, free: bool = False) -> str | None:
    """Why a model is not asked for a summary now, for people; None when it may be. Money never forbids one that is
    *free*."""
    if spent.lately + AT_ONCE > MOST_CALLS:
        return f"{spent.lately} requests for summaries in {WITHIN_SECONDS / 60:g} minutes are enough"
    if not free and spent.calls >= FREE_CALLS and spent.cost > max(FREE_COST, MOST_SHARE * spent.job):
        return f"summaries have cost ${spent.cost:.2g} of the job's ${spent.job:.2g}"
    return None


def spent_on_summaries(journal: Journal, now: float) -> Spent:
    """What the job of *journal* has spent on summaries until *now* (epoch seconds)."""
    ((lately, calls, cost, job),) = journal.query(
        "select total(summary and time > ?), total(summary), total(summary * cost), total(cost) from"
        " (select time, json_extract(data, '$.purpose') = 'summary' as summary,"
        " coalesce(json_extract(data, '$.cost'), 0) as cost from entries where type in ('reply', 'link.failed'))",
        (now - WITHIN_SECONDS,),
    )
    return Spent(lately=int(lately), calls=int(calls), cost=cost, job=job)
