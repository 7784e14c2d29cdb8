"""A person at a terminal sees a reply while it comes, and when it is dropped. Programs see whole replies only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from agentx.testing.brain import Script
from agentx.testing.faults import CutStream, Fault, Stall, always
from agentx.testing.server import FaultServer

HALF = "Nobody may act\non this half of an answer,\nwhich never came whole."


@contextmanager
def two_links(home: Any, fault: Fault) -> Generator[None]:
    """The first is broken by *fault* in the middle of each reply, the second answers."""
    with (
        FaultServer(models=["m"], brain=Script([HALF] * 9), schedule=always(fault)) as first,
        FaultServer(models=["m"], brain=Script(["All is well.\nYes.", "x"])) as second,
    ):
        links = [{"model": "first/m", "timers": {"idle": 2}}, {"model": "second/m"}]
        servers = {"first": first, "second": second}
        home.configure(
            {
                "default_chain": "c",
                "chains": {"c": links},
                "providers": {
                    name: {"card": "openai-compatible", "base_url": server.v1} for name, server in servers.items()
                },
            }
        )
        yield


def watched(home: Any, *arguments: str) -> tuple[str, str]:
    """What a terminal was shown, and what went to stdout."""
    terminal, end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "agentx", *arguments],
        cwd=home.workspace,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=end,
    ) as process:
        os.close(end)
        shown = bytearray()
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # Linux says so that the other end is closed
                break
            if not data:
                break
            shown += data
        os.close(terminal)
        assert process.stdout is not None
        out = process.stdout.read().decode()
    return shown.decode().replace("\r\n", "\n"), out


def test_a_reply_is_shown_while_it_comes_and_called_dropped_when_it_is(home: Any) -> None:
    """The first link stalls in the middle: what it said could only be shown before anybody knew how it ends."""
    with two_links(home, Stall(after=8)):
        shown, out = watched(home, "run", "say")
    lines = [line.rpartition("\r\x1b[K")[2] for line in shown.split("\n")]
    marked = [line for line in lines if line.startswith("  ┊ ")]
    assert "counts only when its turn is told" in marked[0]
    assert marked[1] == "  ┊ Nobody may act"
    dropped = next(place for place, line in enumerate(marked) if "dropped" in line)
    assert marked[dropped + 1 :] == ["  ┊ All is well.", "  ┊ Yes."]
    assert lines.index(marked[dropped]) < next(n for n, line in enumerate(lines) if line.startswith("  ! first/m"))
    assert out == "All is well.\nYes.\n"


def test_nothing_of_a_dropped_reply_reaches_a_program(home: Any) -> None:
    with two_links(home, CutStream(after=8)):
        done = home.run("run", "--json", "say")
        job = done.events[0]["job"]
        events = home.run("events", job).out
        plain = home.run("run", "say again")
    for text in (done.out, done.err, events, plain.out, plain.err):
        assert "Nobody may act" not in text
    assert "┊" not in plain.err
    journal = b"".join(file.read_bytes() for file in home.folder.rglob("journal.db*"))
    assert b"Nobody may act" not in journal
    assert json.loads(events.splitlines()[-1])["answer"] == "All is well.\nYes."
