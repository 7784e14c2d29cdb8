"""What each way to manage context keeps of a long job, and what it costs: one run, one model, one server.

`python bench/context.py [--json] [--turns N] [--window N] [--only NAME] [--no-peers]`, or `make bench-context`.
The peers live in environments that this program makes under `.cache/`; what cannot be made is said and left out.
Nothing of it is timed but the processor time of each system's own process, so a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx.context.policies import POLICIES
from agentx.testing.server import FaultServer
from longjob.job import GROUPS, TURNS, LongJob, long_job
from longjob.measure import Measured, measured
from longjob.model import model

FOLDER = Path(__file__).resolve().parent
WINDOW = 32_768
MOST_SECONDS = 3_600
"""One system may take so long for one job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A way to manage context. `python` has what it needs."""

    name: str
    python: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of one job by one system. `seconds` of its own processor time; None: it did not live to tell."""

    system: str
    seen: Measured
    seconds: float | None
    troubles: Sequence[str]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ours() -> list[System]:
    """agentx with each of its policies; the default first."""
    return [System(name=f"agentx {name}", python=Path(sys.executable)) for name in POLICIES]


def run(system: System, job: LongJob, windows: Sequence[int]) -> Run:
    """*job* by *system* on a chain of servers with these *windows*."""
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        job.lay_out(workspace)
        servers = [stack.enter_context(FaultServer(model, models=["m"], window=size)) for size in windows]
        links = [{"url": server.v1, "window": server.window} for server in servers]
        told = worked(system, {"workspace": str(workspace), "links": links, "said": job.said})
        return Run(
            system=system.name,
            seen=measured(servers, job),
            seconds=told.get("seconds"),
            troubles=told["troubles"],
        )


def worked(system: System, order: dict[str, Any]) -> dict[str, Any]:
    """What the process of *system* said of *order*."""
    environ = {"PATH": os.environ["PATH"], "HOME": order["workspace"]}
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [system.python, FOLDER / "peers" / "agents.py", system.name],
            input=json.dumps(order) + "\n",
            capture_output=True,
            text=True,
            env=environ,
            cwd=name,
            timeout=MOST_SECONDS,
        )
    if done.returncode or not done.stdout:
        return {"troubles": done.stderr.splitlines()[-1:] or ["no reason was given"]}
    return json.loads(done.stdout)


def row(one: Run) -> list[str]:
    seen = one.seen
    kept = [str(seen.kept[group]) for group in GROUPS]
    seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
    numbers = [seen.overflows, seen.sent, seen.resent, seen.summaries, seen.largest]
    return [one.system, str(seen.turns), str(seen.facts), *kept, *(f"{number:,}" for number in numbers), seconds]


def table(runs: Sequence[Run], job: LongJob) -> str:
    """As the README has it."""
    of = {group: sum(fact.group == group for fact in job.facts) for group in GROUPS}
    columns = ["turns", f"facts of {len(job.facts)}", *(f"{group} {of[group]}" for group in GROUPS)]
    columns += ["overflows", "tokens sent", "resent", "summaries", "largest", "own s"]
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += ["| " + " | ".join(row(one)) + " |" for one in runs]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--window", type=int, default=WINDOW, help="of the model, in tokens")
    parser.add_argument("--only", action="append", help="a system's name; may be given more than once")
    parser.add_argument("--no-peers", action="store_true", help="agentx alone")
    asked = parser.parse_args()
    job = long_job(asked.turns)
    runs: list[Run] = []
    for system in ours():
        if asked.only and system.name not in asked.only:
            continue
        say(f"{system.name} ...")
        runs.append(run(system, job, [asked.window]))
        for trouble in runs[-1].troubles[:3]:
            say(f"  {trouble}")
    if asked.json:
        print(json.dumps({"turns": asked.turns, "window": asked.window, "runs": [asdict(r) for r in runs]}))
        return
    print(f"{asked.turns} turns, a window of {asked.window:,}; {os.cpu_count()} cores\n")
    print(table(runs, job))


if __name__ == "__main__":
    main()
