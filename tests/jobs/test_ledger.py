"""The ledger through the outermost door: what links that failed took, in seconds, tokens and money."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentx.errors import StateError
from agentx.jobs.meter import SEEN
from agentx.journal import Journal
from agentx.testing.brain import Said
from agentx.testing.counting import Json
from agentx.testing.faults import NullContent, Status, always, at, first, rate_limited
from agentx.testing.server import FaultServer

PRICED = {"card": "openai-compatible", "catalogue": ["openai"], "self_hosted": False}
"""A server whose models have the prices of OpenAI's."""
INPUT, OUTPUT = 2.5e-06, 1e-05
"""Dollars for one token of gpt-4o."""


def chain(servers: dict[str, FaultServer], *, model: str = "gpt-4o", **provider: Any) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": f"{name}/{model}"} for name in servers]},
        "providers": {name: PRICED | {"base_url": f"{s.url}/v1"} | provider for name, s in servers.items()},
    }


def one(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
    """A model that always says the same."""
    return Said("one")


def summed(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The sums of *events* of one run, made the way a reader of the events would make them."""
    replies = [e for e in events if e["type"] == "reply"]
    failed = [e for e in events if e["type"] == "link.failed"]
    switching = sum(e["seconds_lost"] for e in events if e["type"] == "link.switched")
    failing = sum(e["seconds"] + e["pause"] for e in failed)
    counted = [e["usage"] for e in replies if e["usage"]] + [e["tokens"] for e in failed if e["tokens"]]
    costs = [e["cost"] for e in (*replies, *failed)]
    return {
        "turns": len(replies),
        "input": sum(u["input"] for u in counted),
        "output": sum(u["output"] for u in counted),
        "cost": pytest.approx(sum(cost or 0 for cost in costs), abs=1e-5),
        "switching": pytest.approx(switching, abs=0.002),
        "retrying": pytest.approx(failing - switching, abs=0.002),
        "attempts": dict(Counter(e["class"] for e in failed)),
    }


def test_show_tells_the_sums_of_the_events(home: Any) -> None:
    """A link that is busy, one that breaks off twice and answers nothing once, and one that is well."""
    with (
        FaultServer(one, models=["gpt-4o"], window=32_000, schedule=always(rate_limited(60))) as busy,
        FaultServer(one, models=["gpt-4o"], window=32_000, schedule=first(1, NullContent())) as well,
    ):
        home.configure(chain({"busy": busy, "well": well}))
        done = home.run("run", "--json", "say one")
        totals = home.run("show", done.events[0]["job"], "--json").json["totals"]
        shown = home.run("show", done.events[0]["job"]).out
    assert done.code == 0, done.err
    expected = summed(done.events)
    lost, failed = totals["lost"], totals["failed"]
    told = totals | {"switching": lost["switching"], "retrying": lost["retrying"], "attempts": failed["attempts"]}
    assert {key: told[key] for key in expected} == expected
    assert expected["attempts"] == {"rate_limit": 1, "empty_reply": 1}
    assert totals["lost"]["waiting"] == 0
    assert done.events[-1]["totals"] | {"seconds": 0} == totals | {"seconds": 0}
    assert "failed    2 failed attempts (1 empty_reply, 1 rate_limit)" in shown


def test_a_reply_that_was_thrown_away_is_paid_for(home: Any) -> None:
    with FaultServer(one, models=["gpt-4o"], window=32_000, schedule=first(1, NullContent())) as server:
        home.configure(chain({"box": server}))
        done = home.run("run", "--json", "say one")
    (failed,) = done.of("link.failed")
    (reply,) = done.of("reply")
    tokens, totals = failed["tokens"], done.events[-1]["totals"]
    assert tokens["input"] == server.chats[0].prompt_tokens
    assert failed["cost"] == pytest.approx(tokens["input"] * INPUT + tokens["output"] * OUTPUT, abs=1e-6)
    assert failed["seconds"] > 0
    assert totals["failed"]["cost"] == failed["cost"] > 0
    assert totals["cost"] == pytest.approx(failed["cost"] + reply["cost"], abs=1e-6)


def test_failed_attempts_use_up_the_limit_of_cost(home: Any) -> None:
    """Two thrown away replies cost more than the limit: the job ends with the next check, after its first turn."""
    with FaultServer(one, models=["gpt-4o"], window=32_000, schedule=first(1, NullContent())) as server:
        home.configure(chain({"box": server}))
        once = home.run("run", "--json", "--until", "test -f never", "say one")
        both = once.of("link.failed")[0]["cost"] + once.of("reply")[0]["cost"]
        limit = (both + once.of("reply")[0]["cost"]) / 2  # more than the reply alone, less than both
        server.schedule = at({len(server.chats) + 1: NullContent()})
        done = home.run("run", "--json", "--max-cost", str(limit), "--until", "test -f never", "say one")
    assert (done.code, done.events[-1]["ending"]) == (6, "limit_reached"), done.events[-1]
    assert len(done.of("reply")) == 1
    assert "limit of cost" in done.events[-1]["message"]


def test_a_refusal_costs_nothing_and_a_broken_attempt_is_called_unknown(home: Any) -> None:
    with (
        FaultServer(one, models=["gpt-4o"], window=32_000, schedule=always(Status(401))) as refusing,
        FaultServer(one, models=["gpt-4o"], window=32_000, schedule=always(Status(500))) as failing,
        FaultServer(one, models=["gpt-4o"], window=32_000) as well,
    ):
        home.configure(chain({"refusing": refusing, "failing": failing, "well": well}))
        done = home.run("run", "--json", "say one")
        shown = home.run("show", done.events[0]["job"]).out
    costs = {event["class"]: event["cost"] for event in done.of("link.failed")}
    assert costs == {"auth": 0.0, "server": None}
    unknown = sum(event["cost"] is None for event in done.of("link.failed"))
    assert done.events[-1]["totals"]["failed"]["unpriced"] == unknown
    assert f"what {unknown} of them cost is unknown" in shown


def test_the_story_ends_with_what_was_lost(home: Any) -> None:
    with FaultServer(one, models=["gpt-4o"], window=32_000, schedule=first(1, rate_limited(2))) as server:
        home.configure(chain({"box": server}))
        done = home.run("run", "say one")
        shown = home.run("show", "--json", done.err.split()[1]).json
    assert done.code == 0, done.err
    last = done.err.strip().splitlines()[-1]
    assert "waiting" in last
    assert "1 failed attempt (1 rate_limit)" in last
    assert 1 <= shown["totals"]["lost"]["waiting"] <= shown["totals"]["seconds"]


def waiting(jobs: Path) -> Journal | None:
    """The journal of the only job, once it waits."""
    for file in jobs.glob("*/journal.db"):
        try:
            journal = Journal(file, read_only=True)
            if journal.last("waiting"):
                return journal
        except StateError:  # it is just being made
            pass
    return None


def test_a_wait_that_was_killed_is_counted_as_far_as_it_went(home: Any, until: Any) -> None:
    """Killed in the wait and resumed: the time in which nobody waited is not counted, the time before is."""
    with FaultServer(one, models=["gpt-4o"], window=32_000, schedule=first(1, rate_limited(3600))) as server:
        home.configure(chain({"box": server}))
        with home.started("run", "say one") as process:
            journal: Journal = until(lambda: waiting(home.folder / "home/state/jobs"))
            folder = journal.file.parent
            (began,) = [entry.time for entry in journal.read(types=("waiting",))]
            until(lambda: journal.meta(SEEN))
            process.kill()
            process.wait()
            most = time.time() - began
        waited = home.run("show", folder.name, "--json").json["totals"]["lost"]["waiting"]
        assert home.run("chain", "--reset", "box/gpt-4o").code == 0
        done = home.run("resume", "--json", folder.name)
    assert done.code == 0, done.err
    assert 1.5 <= waited <= most
    assert done.of("job.resumed")[0]["seen"]
    assert done.events[-1]["totals"]["lost"]["waiting"] == pytest.approx(waited, abs=0.01)
