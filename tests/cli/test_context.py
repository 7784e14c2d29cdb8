"""`agentx context`: the meter of a job that runs, waits, has ended, or has not begun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from agentx.events import BreakerChanged, utc
from agentx.jobs.store import Order, Store
from agentx.journal import Journal
from agentx.testing.brain import Call, NoteReader, Script
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Hang, after, always, rate_limited
from agentx.testing.server import FaultServer

PARTS = ["system", "tools", "task", "memory", "summaries", "results", "recent"]


def box(server: FaultServer, **more: Any) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
        **more,
    }


def turns_of(home: Any, job: str) -> list[Mapping[str, Any]]:
    return [event for event in home.run("events", job).of("reply") if event["purpose"] == "turn"]


def test_the_meter_adds_up_to_what_the_provider_counted(home: Any) -> None:
    """Where it ends in a reply nothing has to be estimated: prompt and reply are what the next request holds."""
    twelve_notes(home.workspace, count=3)
    with FaultServer(NoteReader(), models=["m"], window=32_000) as server:
        home.configure(box(server))
        job = home.run("run", "--json", TASK.format(last=3)).events[0]["job"]
    shown = home.run("context", "--json", job).json
    usage = turns_of(home, job)[-1]["usage"]
    assert (shown["used"], shown["counted"]) == (usage["input"] + usage["output"], True)
    assert list(shown["fills"]) == PARTS
    assert sum(shown["fills"].values()) == shown["used"]
    assert [part for part in PARTS if not shown["fills"][part]] == ["memory", "summaries"]
    assert (shown["window"], shown["window_source"], shown["threshold"]) == (32_000, "served", 16_000)
    assert (shown["state"], shown["link"], shown["left_out"]) == ("ended", "box/m", 0)
    assert (shown["checkpoints"], shown["breaker"]) == ([], None)


def test_a_large_result_is_what_fills_the_context(home: Any) -> None:
    (home.workspace / "large.txt").write_text("0123456789 lorem ipsum\n" * 700)
    with FaultServer(Script([Call("read_file", {"path": "large.txt"}), "x"]), models=["m"]) as server:
        home.configure(box(server))
        home.run("run", "--name", "n", "read it")
    fills = home.run("context", "--json", "n").json["fills"]
    assert max(fills, key=fills.__getitem__) == "results"
    table = home.run("context", "n").out
    assert re.search(rf"^tool results +{fills['results']} +\d+ %$", table, re.M), table


@pytest.fixture(scope="module")
def compacted(new_home: Any) -> tuple[Any, str]:
    """A home, and in it a job that has ended and was compacted on the way."""
    home = new_home()
    twelve_notes(home.workspace)
    with FaultServer(NoteReader(), models=["m"], window=8_192) as server:
        home.configure(box(server))
        done = home.run("run", "--json", "--name", "a-night-with-twelve-notes", TASK.format(last=12))
    assert done.of("compaction")
    return home, done.events[0]["job"]


def test_a_compaction_is_told_with_its_tier_and_sizes_and_what_it_left(compacted: tuple[Any, str]) -> None:
    home, job = compacted
    shown = home.run("context", "--json", job).json
    events = home.run("events", job).of("compaction")
    assert [(one["before"], one["after"], one["by"]) for one in shown["checkpoints"]] == [
        (one["before"], one["after"], [tier["name"] for tier in one["tiers"] if tier["ok"]]) for one in events
    ]
    assert [one["generation"] for one in shown["checkpoints"] if one["in_use"]] == [events[-1]["seq"]]
    assert shown["fills"]["summaries"] > 0
    assert shown["messages"] + shown["left_out"] == sum(row["messages"] for row in shown["journal"])
    text = home.run("context", job).out
    assert re.search(r"^> +\S+ +threshold +summary +\S+ → \S+$", text, re.M), text
    assert f"{shown['left_out']} of {shown['messages'] + shown['left_out']} messages are left out" in text


def test_a_request_names_the_view_that_it_was_made_with(compacted: tuple[Any, str]) -> None:
    home, job = compacted
    events = home.run("events", job)
    asked = [event for event in events.of("request") if event["purpose"] == "turn"]
    made = [event["seq"] for event in events.of("compaction")]
    assert [one["view"] for one in asked] == [
        max((seq for seq in made if seq < one["seq"]), default=0) for one in asked
    ]
    assert all(0 < one["system"] + one["tools"] < one["estimate"] for one in asked)


@pytest.mark.parametrize(
    "command", [["context", "a-night-with-twelve-notes"], ["ps", "-a"], ["chain"]], ids=["context", "ps", "chain"]
)
def test_nothing_is_wider_than_a_narrow_terminal(compacted: tuple[Any, str], command: list[str]) -> None:
    home, _ = compacted
    home.extra["COLUMNS"] = "50"
    shown = home.run(*command)
    del home.extra["COLUMNS"]
    assert shown.code == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 50, shown.out
    assert "box/m" in shown.out


def test_a_job_at_work_shows_what_its_next_request_holds(home: Any, until: Any) -> None:
    """What came after the last reply is estimated and is in the sum."""
    twelve_notes(home.workspace)
    with FaultServer(NoteReader(), models=["m"], window=32_000, schedule=after(3, Hang())) as server:
        home.configure(box(server))
        job = home.run("run", "-d", TASK.format(last=12)).out.strip()
        until(lambda: len(server.chats) >= 4)
        shown = home.run("context", "--json", job).json
        usage = turns_of(home, job)[-1]["usage"]
        home.run("stop", "--now", job)
    assert shown["state"] == "running"
    assert shown["used"] > usage["input"] + usage["output"]
    assert sum(shown["fills"].values()) == shown["used"]


def test_a_job_that_waits_for_its_first_answer_has_an_estimate(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], schedule=always(rate_limited(3_600))) as server:
        home.configure(box(server))
        job = home.run("run", "-d", "wait").out.strip()
        until(lambda: home.run("show", "--json", job).json["state"] == "waiting")
        shown = home.run("context", "--json", job).json
        text = home.run("context", job).out
        home.run("stop", "--now", job)
    assert (shown["state"], shown["counted"]) == ("waiting", False)
    assert shown["waiting_until"]
    assert sum(shown["fills"].values()) == shown["used"] > 0
    assert re.search(r", waiting until \S+", text), text
    assert "estimated" in text


def test_a_job_that_never_began_says_that_its_window_is_not_known(home: Any) -> None:
    jobs = home.folder / "home" / "state" / "jobs"
    Store(jobs).create(Order(task="x", workspace=str(home.workspace), name="n"))
    shown = home.run("context", "--json", "n").json
    assert (shown["state"], shown["window"], shown["used"], shown["checkpoints"]) == ("idle", None, 0, [])
    done = home.run("context", "n")
    assert (done.code, "not known yet: no request was made" in done.out) == (0, True)


def test_a_breaker_that_is_open_says_its_cause_and_until_when(home: Any) -> None:
    with FaultServer(models=["m"]) as server:
        home.configure(box(server))
        job = home.run("run", "--json", "hello").events[0]["job"]
    journal = Journal(home.folder / "home" / "state" / "jobs" / job / "journal.db")
    strikes = {"auth": [3, time.time(), 10**6], "empty": [1, None, 10]}
    journal.append(BreakerChanged(state="open", cause="auth"), {"breaker": strikes})
    journal.close()
    breaker = home.run("context", "--json", job).json["breaker"]
    assert (breaker["state"], breaker["cause"], len(breaker["causes"])) == ("open", "auth", 2)
    assert breaker["until"] > utc(time.time())
    text = home.run("context", job).out
    assert re.search(r"^breaker +open: auth, until \d", text, re.M), text
    assert re.search(r"^breaker +closed: empty failed once$", text, re.M), text


def test_the_meter_loads_no_configuration_and_nothing_heavy(home: Any) -> None:
    with FaultServer(models=["m"]) as server:
        home.configure(box(server))
        home.run("run", "--name", "n", "hello")
    code = (
        "import sys; from agentx.cli.main import cli; cli.main(['context', 'n'], standalone_mode=False);"
        "heavy = ('pydantic', 'yaml', 'httpx', 'litellm', 'rich', 'asyncio');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | home.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\n[]\n"), done.stdout
