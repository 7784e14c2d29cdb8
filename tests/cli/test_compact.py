"""`agentx compact`: a job that has ended, runs, waits or died makes room at once or at its next turn."""

from __future__ import annotations

import re
import signal
import threading
from typing import Any

from agentx.jobs.store import Order, Store
from agentx.journal import Journal
from agentx.testing.brain import NoteReader
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Hang, always, at, rate_limited
from agentx.testing.server import FaultServer


def box(server: FaultServer, **more: Any) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
        **more,
    }


def letters(home: Any, job: str) -> list[Any]:
    """What was asked of *job* and not taken yet."""
    journal = Journal(home.folder / "home" / "state" / "jobs" / job / "journal.db", read_only=True)
    try:
        return journal.letters("compact")
    finally:
        journal.close()


def test_a_job_that_has_ended_is_compacted_at_once_and_stays_ended(home: Any) -> None:
    """Its journal tells the same ending again, and a resume goes on with the small view."""
    codes = twelve_notes(home.workspace)
    with FaultServer(NoteReader(), models=["m"], window=32_000) as server:
        home.configure(box(server))
        run = home.run("run", "--json", "--name", "n", TASK.format(last=12))
        assert run.of("compaction") == []
        done = home.run("compact", "--json", "n")
        told, shown = done.json, home.run("show", "--json", "n").json
        again = home.run("resume", "--json", "n", "Once more: which codes?")
    assert (done.code, told["applied"], told["target"]) == (0, True, shown["id"])
    assert told["after"] < told["before"]
    assert [tier["name"] for tier in told["tiers"] if tier["ok"]] == ["summary"]
    assert (shown["state"], shown["used"]) == ("ended", told["after"])
    assert shown["ending"] == {key: run.of("job.ended")[0][key] for key in shown["ending"]}
    made = home.run("events", "n").of("compaction")
    assert [(one["cause"], one["before"], one["after"]) for one in made] == [
        ("manual", told["before"], told["after"])
    ]
    assert again.of("request")[0]["view"] == made[0]["seq"]
    assert all(code in again.of("job.ended")[0]["answer"] for code in codes)


def test_a_job_at_work_is_compacted_at_its_next_turn(home: Any, until: Any) -> None:
    codes = twelve_notes(home.workspace)
    reached, asked, reader = threading.Event(), threading.Event(), NoteReader()

    def brain(messages: Any, tools: Any) -> Any:
        if len(server.chats) == 11:  # the turn goes on until somebody has asked
            reached.set()
            asked.wait(60)
        return reader(messages, tools)

    with FaultServer(brain, models=["m"], window=32_000) as server:
        home.configure(box(server))
        job = home.run("run", "-d", TASK.format(last=12)).out.strip()
        assert reached.wait(60)
        with home.started("compact", job) as process:
            until(lambda: letters(home, job))
            asked.set()
            out, _ = process.communicate(timeout=60)
        until(lambda: home.run("show", "--json", job).json["state"] == "ended")
    assert process.returncode == 0
    assert re.fullmatch(rf"{job}: compacted \S+ → \S+ \(manual; summary\)\n", out), out
    events = home.run("events", job)
    assert [one["cause"] for one in events.of("compaction")] == ["manual"]
    assert events.of("job.resumed") == []
    assert all(code in events.of("job.ended")[0]["answer"] for code in codes)


def test_where_there_is_nothing_to_leave_out_it_says_so_and_asks_no_model(home: Any) -> None:
    with FaultServer(models=["m"]) as server:
        home.configure(box(server))
        home.run("run", "--name", "n", "hello")
        asked = len(server.chats)
        done = home.run("compact", "n")
        assert len(server.chats) == asked
    assert done.code == 0
    assert "not compacted (manual; summary: nothing is older than the recent part" in done.out


def test_a_summary_that_fails_is_told_and_changes_nothing(home: Any) -> None:
    twelve_notes(home.workspace, words=900, count=6)
    with FaultServer(NoteReader(), models=["m"], window=32_000) as server:
        home.configure(box(server))
        home.run("run", "--name", "n", TASK.format(last=6))
    used = home.run("context", "--json", "n").json["used"]
    done = home.run("compact", "--json", "n")
    told, now = done.json, home.run("context", "--json", "n").json
    assert (done.code, told["applied"], told["before"]) == (1, False, told["after"])
    assert [tier["cause"] for tier in told["tiers"] if "cause" in tier] == ["network"]
    assert (now["used"], now["checkpoints"], now["state"]) == (used, [], "ended")


def test_a_job_that_died_is_compacted_and_can_be_resumed(home: Any, until: Any) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(NoteReader(), models=["m"], window=32_000, schedule=at({13: Hang()})) as server:
        home.configure(box(server))
        with home.started("run", "--name", "n", TASK.format(last=12)) as process:
            until(lambda: len(server.chats) >= 13)
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = home.run("compact", "--json", "n")
        state = home.run("show", "--json", "n").json["state"]
        resumed = home.run("resume", "--json", "n")
    assert (done.code, done.json["applied"], state) == (0, True, "interrupted")
    assert resumed.code == 0
    assert all(code in resumed.of("job.ended")[0]["answer"] for code in codes)


def test_a_job_that_waits_is_asked_and_nobody_waits_with_it(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], schedule=always(rate_limited(3_600))) as server:
        home.configure(box(server))
        job = home.run("run", "-d", "wait").out.strip()
        until(lambda: home.run("show", "--json", job).json["state"] == "waiting")
        done = home.run("compact", job)
        home.run("stop", "--now", job)
    assert done.code == 0
    assert re.match(rf"{job}: asked; the job waits until .+ and does it then", done.out), done.out


def test_a_job_that_never_began_has_nothing_to_compact(home: Any) -> None:
    Store(home.folder / "home" / "state" / "jobs").create(Order(task="x", workspace=str(home.workspace), name="n"))
    done = home.run("compact", "n")
    assert (done.code, done.out.partition(": ")[2]) == (0, "not compacted: it never began\n")
