"""Whole jobs in this very process: real sockets, real files, real journals; only waiting takes no time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentx.agent.ending import Ending
from agentx.config.load import load
from agentx.config.paths import Paths, paths
from agentx.jobs.assemble import Surroundings
from agentx.jobs.run import run_job
from agentx.jobs.store import Job, Order, Store
from agentx.journal import Entry
from agentx.testing.brain import Brain, Call, Said, Script, asks_for_summary
from agentx.testing.conversations import note_task, twelve_notes
from agentx.testing.counting import Json
from agentx.testing.faults import Fault, Schedule
from agentx.testing.server import FaultServer, Seen

PROBE = "word word word word"
"""What agentx pads a request with to see whether a server cuts it."""


@dataclass
class Skipping:
    """The real clock, set forward by whoever sleeps."""

    skipped: float = 0.0

    def now(self) -> float:
        return time.time() + self.skipped

    asleep: Callable[[], object] = lambda: None
    """Called at each sleep: what happens meanwhile."""

    async def sleep(self, seconds: float) -> None:
        self.skipped += seconds
        self.asleep()


@dataclass(frozen=True)
class Ran:
    """What a job said, and how it ended."""

    job: Job
    ending: Ending
    events: Sequence[Mapping[str, Any]]
    seconds: float
    waited: float

    def of(self, kind: str, **fields: Any) -> list[Mapping[str, Any]]:
        """The events of *kind* in which all *fields* are as given."""
        return [
            event
            for event in self.events
            if event["type"] == kind and all(event[name] == value for name, value in fields.items())
        ]

    def tiers(self, number: int) -> list[Mapping[str, Any]]:
        """What the tier with this *number* did in each compaction in which it ran."""
        return [tier for event in self.of("compaction") for tier in event["tiers"] if tier["tier"] == number]

    @property
    def answer(self) -> str:
        return self.ending.answer or str(self.events[-1].get("answer") or "")

    @property
    def story(self) -> str:
        """For a failed assertion: what happened, in short."""
        left_out = ("job", "time", "seq", "arguments", "totals", "limits")
        lines = [json.dumps({k: v for k, v in e.items() if k not in left_out})[:300] for e in self.events]
        return "\n".join(lines[-60:])


@dataclass
class Night:
    """A home, a workspace with notes, and jobs over links to servers: `night.run([one, two])`."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])
    clock: Skipping = field(default_factory=Skipping)
    providers: dict[str, Any] = field(default_factory=dict[str, Any])
    """More of them, for models outside the chain."""
    patience: float = 30
    """Real seconds without content until a link is given up; short only where a server hangs on purpose."""

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def paths(self) -> Paths:
        return paths({"AGENTX_HOME": str(self.folder / "home")})

    def rests(self) -> list[dict[str, Any]]:
        """What the job left behind for others: every link that is not well, as `health.db` has it."""
        db = sqlite3.connect(self.paths.health)
        try:
            rows = db.execute("select key, class, failures from rests").fetchall()
        finally:
            db.close()
        return [dict(zip(("key", "class", "failures"), row, strict=True)) for row in rows]

    def notes(self, count: int = 12, words: int = 240) -> tuple[str, ...]:
        """Notes on disk; their codes."""
        return twelve_notes(self.workspace, count=count, words=words)

    def say(self, text: str) -> None:
        """What a person says to the job that runs now, from another process."""
        (job,) = Store(self.paths.jobs).all()
        journal = job.journal()
        journal.post("message", text)
        journal.close()

    @staticmethod
    def working(steps: Sequence[Said | Call | str], summary: str = "Goal: go on with the task.") -> Brain:
        """A model that takes *steps* in its turns, whatever it is shown, and tells *summary* when asked."""
        script = Script(steps)

        def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
            if asks_for_summary(messages, tools):
                return Said(summary)
            return Said("yes") if PROBE in messages[-1]["content"] else script(messages, tools)

        return brain

    @staticmethod
    def turns(server: FaultServer) -> list[Seen]:
        """The requests for turns that came to *server*: neither summaries nor probes."""
        asked = [seen for seen in server.chats if seen.body.get("tools")]
        return [seen for seen in asked if PROBE not in str(seen.body["messages"][-1]["content"])]

    @staticmethod
    def summaries(server: FaultServer) -> list[Seen]:
        """The requests for summaries that came to *server*."""
        return [seen for seen in server.chats if not seen.body.get("tools")]

    @staticmethod
    def failing_summaries(server: FaultServer, fault: Fault | None) -> Schedule:
        """A schedule that breaks what *server* is asked for summaries, and nothing else."""

        def schedule(_number: int) -> Fault | None:
            return None if server.requests[-1].body.get("tools") else fault

        return schedule

    def configure(self, links: Sequence[FaultServer | Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
        """One link for each of *links*: a server, or `{"server": ..., "card": ..., and what a link takes}`."""
        chain: list[dict[str, Any]] = []
        providers: dict[str, Any] = {}
        for number, one in enumerate(links, 1):
            given: dict[str, Any] = dict(one) if isinstance(one, Mapping) else {"server": one}
            server: FaultServer = given.pop("server")
            card = given.pop("card", "openai-compatible")
            base = server.url if card == "ollama" else server.v1
            providers[f"s{number}"] = {"card": card, "base_url": base, **given.pop("provider", {})}
            chain.append({"model": f"s{number}/{server.models[0]}", **given})
        timers = {"connect": 20, "first": self.patience, "idle": self.patience, "total": 60}
        providers |= self.providers
        whole = {"chains": {"night": chain}, "default_chain": "night", "providers": providers, "timers": timers}
        file = self.paths.user_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(whole | dict(settings)))

    def run(
        self,
        links: Sequence[FaultServer | Mapping[str, Any]],
        task: str | None = None,
        *,
        job: Job | None = None,
        said: str | None = None,
        watched: bool = True,
        **settings: Any,
    ) -> Ran:
        """The job for *task* (by default, to read the twelve notes), run to its end; or *job* again."""
        self.configure(links, settings)
        config = load(self.paths, self.workspace, self.environ)
        order = Order(task=task or note_task(), workspace=str(self.workspace))
        job = job or Store(self.paths.jobs).create(order)
        events: list[Mapping[str, Any]] = []

        def listen(entry: Entry) -> None:
            events.append(json.loads(entry.line("j")))

        around = Surroundings(
            paths=self.paths,
            environ=self.environ,
            config=config,
            links=config.chain(),
            listener=listen,
            now=self.clock.now,
            sleep=self.clock.sleep,
            read_config=lambda: load(self.paths, self.workspace, self.environ),
            watched=watched,
        )
        began, skipped = time.monotonic(), self.clock.skipped
        ending = run_job(job, around, said=said)
        return Ran(job, ending, events, time.monotonic() - began, self.clock.skipped - skipped)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    made = Night(tmp_path)
    made.workspace.mkdir()
    return made
