"""Summaries have a budget of their own: a storm of them ends by itself, and work goes on without."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agentx.context.budget import budget_for
from agentx.context.summarise import Other
from agentx.context.thrift import MOST_CALLS, Spent, forbidden, spent_on_summaries
from agentx.events import LinkFailed, Replied

if TYPE_CHECKING:
    from tests.context.conftest import Bench


def replied(bench: Bench, purpose: str, cost: float | None = 0.0) -> None:
    fields = {"link": "box/m", "model": "m", "finish": "stop", "usage": None, "seconds": 0.1}
    bench.journal.append(Replied(**fields, purpose=purpose, cost=cost))  # pyright: ignore[reportArgumentType]  fields are Any


def failed(bench: Bench) -> None:
    bench.journal.append(
        LinkFailed(link="box/m", class_="server", status=500, message="no", purpose="summary", cost=None)
    )


def grow(bench: Bench) -> None:
    for n in range(16):
        bench.reads(f"{n}.md", "word " * 800)


def whys(bench: Bench) -> list[str]:
    return [tier["why"] for event in bench.events("compaction") for tier in event.tiers if tier["tier"] == 0]


def test_twenty_four_requests_in_ten_minutes_are_enough_for_ten_minutes(bench: Bench) -> None:
    bench.start()
    for _ in range(MOST_CALLS // 2):
        replied(bench, "summary")
        failed(bench)
    grow(bench)
    ask = bench.scripted("Goal: read all")
    view = bench.view(32_000, ask)
    assert (ask.seen, view.fits) == ([], True)
    assert whys(bench) == ["24 requests for summaries in 10 minutes are enough"]
    bench.clock += 601
    grow(bench)
    bench.view(32_000, ask)
    assert ask.seen


def test_summaries_take_no_more_than_half_of_what_the_job_costs(bench: Bench) -> None:
    bench.start()
    replied(bench, "turn", 1.0)
    for _ in range(6):
        replied(bench, "summary", 0.2)
    grow(bench)
    ask = bench.scripted("Goal: read all")
    bench.view(32_000, ask)
    assert ask.seen == []
    assert whys(bench) == ["summaries have cost $1.2 of the job's $2.2"]
    replied(bench, "turn", 1.0)
    grow(bench)
    bench.view(32_000, ask)
    assert ask.seen


def test_money_never_forbids_a_model_that_costs_nothing(bench: Bench) -> None:
    """Where the turns are free, all that the job costs is what another model's summaries cost."""
    bench.start()
    for _ in range(6):
        replied(bench, "summary", 1.0)
    grow(bench)
    ask = bench.scripted("Goal: read all")
    own = Other(link=bench.link().identity, name="box/m", ask=ask, window=32_000, free=True)
    view = bench.context.view(
        bench.link(), budget_for(32_000), system=bench.system, tools=bench.tools, ask=ask, others=lambda: [own]
    )
    assert "Goal: read all" in bench.text(asyncio.run(view))


def test_what_is_spent_is_counted_with_failures_and_what_nobody_knows_costs_nothing(bench: Bench) -> None:
    bench.start()
    replied(bench, "summary", 0.25)
    failed(bench)
    bench.clock += 700
    replied(bench, "turn", None)
    replied(bench, "summary", 0.5)
    assert spent_on_summaries(bench.journal, bench.clock) == Spent(lately=1, calls=3, cost=0.75, job=0.75)


@pytest.mark.parametrize(
    ("spent", "allowed"),
    [
        (Spent(), True),
        (Spent(lately=22, calls=22), True),
        (Spent(lately=23, calls=23), False),
        (Spent(calls=5, cost=1.0, job=1.0), True),
        (Spent(calls=6, cost=1.0, job=1.9), False),
        (Spent(calls=600, cost=1.0, job=2.0), True),
        (Spent(calls=600, cost=0.5, job=0.5), True),
        (Spent(calls=600, cost=0.51, job=0.51), False),
    ],
)
def test_a_summary_may_be_asked_for_until_one_of_the_two_is_used_up(spent: Spent, allowed: bool) -> None:
    assert (forbidden(spent) is None) == allowed
