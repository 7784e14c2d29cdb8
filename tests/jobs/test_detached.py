"""Detached jobs: started, watched, killed, resumed, stopped; always through real processes."""

from __future__ import annotations

import os
import signal
from typing import Any

from agentx.testing.brain import Call, NoteReader, Said, Script
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Hang, Slow, after, always, healthy
from agentx.testing.server import FaultServer


def one_link(server: FaultServer) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": f"{server.url}/v1"}},
    }


def only_job(home: Any) -> dict[str, Any]:
    (job,) = home.run("ps", "-a", "--json").json["jobs"]
    return job


def test_a_killed_job_is_interrupted_and_resume_ends_it(home: Any, until: Any) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=after(6, Hang())) as server:
        home.configure(one_link(server))
        started = home.run("run", "-d", TASK.format(last=12))
        job = started.out.strip()
        assert started.code == 0
        assert started.out == f"{job}\n"
        assert f"agentx stop {job}" in started.err
        until(lambda: len(server.chats) >= 7)
        shown = only_job(home)
        assert (shown["id"], shown["state"]) == (job, "running")
        assert "asking box/m" in shown["doing"]
        os.kill(shown["pid"], signal.SIGKILL)
        until(lambda: only_job(home)["state"] == "interrupted")
        assert only_job(home)["pid"] is None
        server.schedule = healthy
        done = home.run("resume", "--json", job)
    assert (done.code, done.events[-1]["ending"]) == (0, "done")
    assert all(code in done.events[-1]["answer"] for code in codes)
    assert only_job(home)["state"] == "ended"
    seqs = [event["seq"] for event in home.run("events", job).events]
    assert seqs == list(range(1, len(seqs) + 1))


def test_stop_finishes_the_step_and_resume_goes_on(home: Any, until: Any) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=always(Slow(0.3))) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "--name", "notes", TASK.format(last=12)).out.strip()
        until(lambda: len(server.chats) >= 3)
        assert home.run("stop", "notes").code == 0
        until(lambda: only_job(home)["state"] == "stopped")
        ended = home.run("events", job).events[-1]
        assert (ended["ending"], ended["exit"]) == ("stopped", 9)
        assert home.run("stop", "notes").code == 0
        done = home.run("resume", "--json", "notes")
    assert done.code == 0
    assert all(code in done.events[-1]["answer"] for code in codes)


def test_stop_now_ends_a_hanging_job(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"]), schedule=always(Hang())) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "hang").out.strip()
        until(lambda: server.chats)
        assert home.run("stop", "--now", job).code == 0
        assert only_job(home)["state"] == "interrupted"


def test_a_child_that_dies_first_gives_its_error(home: Any) -> None:
    home.configure({"limits": {"turns": "many"}})
    done = home.run("run", "-d", "hello")
    assert (done.code, done.out) == (3, "")
    assert "agentx.yaml:" in done.err


def test_a_call_whose_process_died_is_not_repeated(home: Any, until: Any) -> None:
    """The shell command was started; after kill -9 its outcome is unknown, and the model is told so."""
    seen: list[list[dict[str, Any]]] = []

    def brain(messages: Any, tools: Any) -> Said:
        seen.append(list(messages))
        if not any(message["role"] == "tool" for message in messages):
            return Said(calls=(Call("shell", {"command": "echo once >> count.txt; sleep 60"}),))
        return Said("finished")

    with FaultServer(models=["m"], brain=brain, window=32_000) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "count").out.strip()
        until(lambda: (home.workspace / "count.txt").exists())
        shown = only_job(home)
        assert shown["doing"].startswith("shell echo once")
        os.kill(shown["pid"], signal.SIGKILL)
        until(lambda: only_job(home)["state"] == "interrupted")
        done = home.run("resume", "--json", job)
    assert done.code == 0
    assert (home.workspace / "count.txt").read_text() == "once\n"
    result = seen[-1][-1]["content"]
    assert "outcome is unknown" in result
    assert "count.txt" in result


def test_a_message_is_delivered_at_the_next_turn(home: Any, until: Any) -> None:
    twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=always(Slow(0.2))) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", TASK.format(last=12)).out.strip()
        until(lambda: len(server.chats) >= 2)
        assert home.run("send", job, "please be quick").code == 0
        until(lambda: only_job(home)["state"] == "ended")
    told = [event for event in home.run("events", job).events if event["type"] == "message"]
    assert [event["text"] for event in told] == ["please be quick"]
    assert any("please be quick" in str(message) for message in server.chats[-1].body["messages"])


def test_logs_follow_until_the_end(home: Any) -> None:
    twelve_notes(home.workspace, count=3)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=always(Slow(0.1))) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", TASK.format(last=3)).out.strip()
        followed = home.run("logs", "-f", job)
    assert followed.code == 0
    assert "done: the task is finished" in followed.out.splitlines()[-1]


def test_two_processes_never_run_one_job(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"]), schedule=always(Hang())) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "hang").out.strip()
        until(lambda: server.chats)
        again = home.run("resume", job)
        assert again.code == 2
        assert "runs already" in again.err
        home.run("stop", "--now", job)
