"""Kills, signals and stops at every moment: the job can always be resumed, and nothing is done twice."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from agentx.testing.brain import Call, Said, Script
from agentx.testing.faults import Hang, Slow, always, healthy, rate_limited
from agentx.testing.server import FaultServer

LAST = 6


def counter(messages: Sequence[dict[str, Any]], tools: Any) -> Said:
    """Appends the numbers 1 to LAST to a file, each with one command; two commands in every second reply."""
    commands = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls", ())]
    number = max((int(found[1]) for text in commands if (found := re.search(r"echo (\d+)", text))), default=0) + 1
    if number > LAST:
        return Said("counted")
    numbers = [number, number + 1] if number % 3 == 2 else [number]
    return Said(
        calls=tuple(Call("shell", {"command": f"sleep 0.02; echo {n} >> log.txt; sleep 0.02"}) for n in numbers)
    )


@pytest.mark.parametrize("seed", range(5))
def test_kill_9_at_any_moment_loses_nothing_and_runs_nothing_twice(
    home: Any, chain_of_one: Any, seed: int
) -> None:
    chance = random.Random(seed)
    arguments = ["run", "--json", "--name", "n", "count"]
    with FaultServer(counter, models=["m"], window=32_000, schedule=always(Slow(0.02))) as server:
        home.configure(chain_of_one(server))
        for _ in range(3):
            with home.started(*arguments) as process:
                if process.stdout.readline():
                    arguments = ["resume", "--json", "n"]
                try:
                    process.wait(timeout=chance.uniform(0, 0.5))
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                process.wait()
        done = home.run("resume", "--json", "n")
    assert (done.code, done.events[-1]["answer"]) == (0, "counted")
    events = home.run("events", "n").events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    started = [event["id"] for event in events if event["type"] == "tool.started"]
    ended = [event for event in events if event["type"] == "tool.ended"]
    assert sorted(started) == sorted({event["id"] for event in ended})
    written = (home.workspace / "log.txt").read_text().split()
    unknown = sum(not event["ok"] for event in ended)
    assert len(written) == len(set(written)) >= LAST - unknown


def test_a_job_killed_after_its_last_reply_ends_without_asking_again(home: Any, chain_of_one: Any) -> None:
    """Also when it had ended: there is nothing to ask, and many providers refuse to be asked by themselves."""
    with FaultServer(Script(["the answer"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        assert home.run("run", "--name", "n", "ask").code == 0
        done = home.run("resume", "--json", "n")
    assert (done.code, done.events[-1]["answer"], len(server.chats)) == (0, "the answer", 1)


@pytest.mark.parametrize("storm", [[signal.SIGTERM] * 20, [signal.SIGINT] * 20, [signal.SIGHUP]])
def test_a_storm_of_signals_ends_the_job_once_and_nothing_stays_behind(
    home: Any, until: Any, chain_of_one: Any, storm: list[signal.Signals]
) -> None:
    stubborn = Call("shell", {"command": "trap '' TERM INT; echo $$ > pid; while true; do sleep 0.2; done"})
    with FaultServer(Script([stubborn]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        with home.started("run", "--json", "--name", "n", "x") as process:
            until(lambda: (home.workspace / "pid").exists() and (home.workspace / "pid").read_text())
            for number in storm:
                process.send_signal(number)
            process.communicate(timeout=30)
        assert process.returncode in (128 + storm[0], -storm[0])  # the same for a shell
    events = home.run("events", "n").events
    assert [event["type"] for event in events].count("job.ended") == 1
    assert (events[-1]["ending"], events[-1]["exit"]) == ("interrupted", 128 + storm[0])
    with pytest.raises(ProcessLookupError):
        os.kill(int((home.workspace / "pid").read_text()), 0)


def test_a_job_that_was_frozen_goes_on(home: Any, until: Any, chain_of_one: Any) -> None:
    with FaultServer(counter, models=["m"], schedule=always(Slow(0.1))) as server:
        home.configure(chain_of_one(server))
        home.run("run", "-d", "--name", "n", "x")
        pid = home.run("show", "n", "--json").json["pid"]
        os.kill(pid, signal.SIGSTOP)
        assert home.run("show", "n", "--json").json["state"] == "running"
        os.kill(pid, signal.SIGCONT)
        until(lambda: home.run("show", "n", "--json").json["state"] == "ended")
    assert (home.workspace / "log.txt").read_text().split() == [str(n) for n in range(1, LAST + 1)]


def test_stop_ends_a_job_that_waits_for_resting_links(home: Any, until: Any, chain_of_one: Any) -> None:
    with FaultServer(Script([]), models=["m"], schedule=always(rate_limited(60))) as server:
        home.configure(chain_of_one(server))
        home.run("run", "-d", "--name", "n", "x")
        until(lambda: home.run("show", "n", "--json").json["state"] == "waiting")
        home.run("stop", "n")
        until(lambda: home.run("show", "n", "--json").json["state"] == "stopped")
        assert home.run("show", "n", "--json").json["ending"]["exit"] == 9


def test_stop_does_not_wait_for_all_calls_of_a_reply(home: Any, until: Any, chain_of_one: Any) -> None:
    """The step is one call; those that were not started run after `resume`, in their order."""
    calls = tuple(
        Call("shell", {"command": f"echo {n} >> log.txt; until [ -e go ]; do sleep 0.02; done"}) for n in range(30)
    )
    with FaultServer(Script([Said(calls=calls), "done"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        home.run("run", "-d", "--name", "n", "x")
        until(lambda: (home.workspace / "log.txt").exists())
        home.run("stop", "n")
        (home.workspace / "go").touch()
        until(lambda: home.run("show", "n", "--json").json["state"] == "stopped")
        assert (home.workspace / "log.txt").read_text() == "0\n"
        done = home.run("resume", "--json", "n")
    assert done.code == 0
    assert (home.workspace / "log.txt").read_text().split() == [str(n) for n in range(30)]


def test_of_many_resumes_at_once_one_runs(home: Any, chain_of_one: Any) -> None:
    with FaultServer(Script(["one", "two", "three"]), models=["m"], schedule=always(Slow(0.5))) as server:
        home.configure(chain_of_one(server))
        home.run("run", "--name", "n", "x")
        again = ("resume", "n", "more")
        with home.started(*again) as a, home.started(*again) as b, home.started(*again) as c:
            ended = [(process, *process.communicate(timeout=30)) for process in (a, b, c)]
    assert sorted(process.returncode for process, *_ in ended).count(0) == 1
    assert all(process.returncode == 0 or "runs" in err for process, _, err in ended)
    seqs = [event["seq"] for event in home.run("events", "n").events]
    assert seqs == list(range(1, len(seqs) + 1))


def test_who_looks_at_jobs_never_keeps_one_from_starting(home: Any, chain_of_one: Any) -> None:
    """Looking whether a lock is held takes it for a moment."""
    with FaultServer(Script(["x"]), models=["m"], schedule=always(Hang())) as server:
        home.configure(chain_of_one(server))
        with home.started("run", "--name", "n", "x") as process:
            process.stderr.readline()
            process.kill()
        server.schedule = healthy
        looking = "from pathlib import Path\nimport sys\nfrom agentx.jobs.lock import held\nprint(flush=True)\n"
        looking += "while True: held(Path(sys.argv[1]))"
        (job,) = (home.folder / "home" / "state" / "jobs").iterdir()
        lookers = [
            subprocess.Popen(
                ["python", "-c", looking, str(job / "lock")], stdout=subprocess.PIPE, env=home.environ
            )
            for _ in range(2)
        ]
        try:
            for looker in lookers:
                assert looker.stdout
                looker.stdout.readline()
            (job / "lock").touch()
            done = home.run("resume", "n")
        finally:
            for looker in lookers:
                looker.kill()
                looker.communicate()
    assert (done.code, done.out) == (0, "x\n"), done.err
