"""Jobs that wait for links, as real processes: until when, killed in the middle, and what people see of it."""

from __future__ import annotations

import os
import re
import signal
from datetime import datetime
from typing import Any

from agentx.testing.brain import Script
from agentx.testing.faults import Hang, always, first, rate_limited
from agentx.testing.server import FaultServer


def chain_of(*servers: FaultServer, **more: Any) -> dict[str, Any]:
    names = "ab"[: len(servers)]
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": f"{name}/m"} for name in names]},
        "providers": {
            name: {"card": "openai-compatible", "base_url": server.v1}
            for name, server in zip(names, servers, strict=True)
        },
        **more,
    }


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def events(home: Any, kind: str) -> list[dict[str, Any]]:
    return home.run("events", "n").of(kind)


def test_of_two_resting_links_the_first_that_is_back_serves_at_its_time(home: Any) -> None:
    """A says 4 s and B says 2: one earlier hit each, and B answers 2.0 to 2.2 s after it said so."""
    a = FaultServer(Script(["a"]), models=["m"], schedule=first(1, rate_limited(4)))
    b = FaultServer(Script(["b"]), models=["m"], schedule=first(1, rate_limited(2)))
    with a, b:
        home.configure(chain_of(a, b))
        done = home.run("run", "--json", "x")
    assert (done.code, done.events[-1]["answer"], len(a.chats), len(b.chats)) == (0, "b", 1, 2)
    (waiting,) = done.of("waiting")
    failed = {event["link"]: event for event in done.of("link.failed")}
    assert failed["a/m"]["retry_at"] > failed["b/m"]["retry_at"]
    planned = seconds(waiting["until"])
    assert 0 <= planned - seconds(failed["b/m"]["retry_at"]) <= 0.201
    assert seconds(done.of("reply")[0]["time"]) >= planned


def test_who_is_killed_in_the_wait_wakes_at_the_same_time(home: Any, until: Any) -> None:
    a = FaultServer(Script([]), models=["m"], schedule=always(rate_limited(1_200)))
    b = FaultServer(Script([]), models=["m"], schedule=always(rate_limited(600)))
    with a, b:
        home.configure(chain_of(a, b))
        home.run("run", "-d", "--name", "n", "x")
        for times in (1, 2, 3):
            until(lambda times=times: len(events(home, "waiting")) == times)
            shown = home.run("show", "n", "--json").json
            assert shown["state"] == "waiting"
            if times < 3:
                os.kill(shown["pid"], signal.SIGKILL)
                until(lambda: home.run("show", "n", "--json").json["state"] == "interrupted")
                assert home.run("resume", "-d", "n").code == 0
        home.run("stop", "--now", "n")
        told = events(home, "waiting")
    assert len({(event["until"], event["reason"]) for event in told}) == 1
    assert (len(a.chats), len(b.chats)) == (1, 1)


def test_a_waiting_job_says_until_when_and_why(home: Any, until: Any) -> None:
    with FaultServer(Script([]), models=["m"], schedule=always(rate_limited(3_600))) as server:
        home.configure(chain_of(server))
        home.run("run", "-d", "--name", "n", "x")
        until(lambda: home.run("show", "n", "--json").json["state"] == "waiting")
        (one,) = home.run("ps", "--json").json["jobs"]
        listed, shown, logged = (home.run(*words).out for words in (("ps",), ("show", "n"), ("logs", "n")))
        (waiting,) = events(home, "waiting")
        home.run("stop", "n")
    assert one["waiting_until"] == waiting["until"]
    assert "a/m is back first (rate_limit: Rate limit reached for requests)" in waiting["reason"]
    for text in (listed, shown, logged):
        assert re.search(r"waiting until \S+, because every link rests; a/m is back first", " ".join(text.split()))


def test_a_detached_job_waits_for_a_server_that_is_not_there_yet(home: Any, until: Any) -> None:
    """In the foreground it would have ended before it said for the third time that nobody answers."""
    with FaultServer(models=["m"]) as gone:
        pass
    home.configure(chain_of(gone))
    home.run("run", "-d", "--name", "n", "x")
    until(lambda: len(events(home, "waiting")) >= 3)
    assert home.run("show", "n", "--json").json["state"] == "waiting"
    assert all("offline" in event["reason"] for event in events(home, "waiting"))
    with FaultServer(Script(["here"]), models=["m"], port=gone.port):
        until(lambda: home.run("show", "n", "--json").json["state"] == "ended", seconds=80)
    assert [event["answer"] for event in events(home, "job.ended")] == ["here"]
    assert [event["reason"] for event in events(home, "woken")] == ["a/m can be connected to"]


def test_a_request_never_outlasts_the_hours_of_its_job(home: Any) -> None:
    """The server hangs; the job ends when its hours are over, and the link is not blamed for that."""
    with FaultServer(models=["m"], schedule=always(Hang())) as server:
        home.configure(chain_of(server))
        done = home.run("run", "--json", "--max-hours", "0.001", "x", seconds=60)
    assert (done.code, done.events[-1]["ending"]) == (6, "limit_reached")
    assert done.of("link.failed") == []
