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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx.context.policies import POLICIES
from agentx.testing.faults import Fault, Schedule, Status
from agentx.testing.server import FaultServer
from environments import python_with, say
from longjob.job import GROUPS, TURNS, Group, LongJob, long_job
from longjob.measure import Measured, answered, measured
from longjob.model import model

FOLDER = Path(__file__).resolve().parent
WINDOW = 32_768
CHAIN = (200_000, 32_768)
DOWN_FROM, DOWN_FOR = 75 / TURNS, 40 / TURNS
"""Shares of the turns: when the first link of the chain goes down, and for how long."""
GIVES_UP = 12
"""After so many refusals of the second link the first one is well again: no system waits for ever."""
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1", "LANGSMITH_TRACING": "false"}
"""What keeps libraries from asking the network for what they have with them."""
MOST_SECONDS = 3_600
"""One system may take so long for one job."""
LANGCHAIN = ("langchain==1.5.2", "langchain-core==1.8.3", "langchain-openai==1.7.4", "deepagents==0.7.32")
OPENHANDS = ("openhands-sdk==1.58.2",)


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


def ours() -> list[System]:
    """agentx with each of its policies; the default first."""
    return [System(name=f"agentx {name}", python=Path(sys.executable)) for name in POLICIES]


def peers() -> list[System]:
    """Those that can be installed here."""
    langchain = python_with(LANGCHAIN, "bench-context-langchain")
    openhands = python_with(OPENHANDS, "bench-context-openhands", minor=12)
    there = {"langchain": langchain, "deepagents": langchain, "openhands": openhands}
    return [System(name=name, python=python) for name, python in there.items() if python is not None]


def run(system: System, job: LongJob, windows: Sequence[int]) -> Run:
    """*job* by *system* on a chain of servers with these *windows*. Where there are two, the first is down for a
    while."""
    with ExitStack() as stack:
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        job.lay_out(workspace)
        servers = [stack.enter_context(FaultServer(model, models=["m"], window=size)) for size in windows]
        if servers[1:]:
            servers[0].schedule = outage(servers[0], servers[1], job.turns)
        links = [{"url": server.v1, "window": server.window} for server in servers]
        told = worked(system, {"workspace": str(workspace), "links": links, "said": job.said})
        return Run(
            system=system.name,
            seen=measured(servers, job),
            seconds=told.get("seconds"),
            troubles=told["troubles"],
        )


def outage(first: FaultServer, second: FaultServer, turns: int) -> Schedule:
    """*first* is overloaded once it has answered its share of *turns*, until *second* has answered enough of them,
    or has refused enough."""
    begins, most = int(turns * DOWN_FROM), int(turns * DOWN_FOR)

    def schedule(_number: int) -> Fault | None:
        over = answered(second) >= most or sum(seen.kept is None for seen in second.chats) >= GIVES_UP
        return Status(503) if answered(first) >= begins and not over else None

    return schedule


def worked(system: System, order: dict[str, Any]) -> dict[str, Any]:
    """What the process of *system* said of *order*."""
    environ = QUIET | {"PATH": os.environ["PATH"], "HOME": order["workspace"]}
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


COLUMNS = ("turns", "overflows", "tokens sent", "resent", "summaries", "own s")
RESULTS = GROUPS[2:5]


def by_group(counts: Mapping[Group, int]) -> list[str]:
    """The groups in four cells; early, middle and late results stand in one."""
    results = " + ".join(str(counts[group]) for group in RESULTS)
    return [str(counts["task"]), str(counts["corrections"]), results, str(counts["decisions"])]


def row(one: Run) -> list[str]:
    seen = one.seen
    turns = " + ".join(map(str, seen.by_link))
    numbers = [f"{number:,}" for number in (seen.overflows, seen.sent, seen.resent, seen.summaries)]
    seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
    return [one.system, str(seen.facts), *by_group(seen.kept), turns, *numbers, seconds]


def table(runs: Sequence[Run], job: LongJob) -> str:
    """As the README has it."""
    of = by_group({group: sum(fact.group == group for fact in job.facts) for group in GROUPS})
    groups = [
        f"{name}, {count}" for name, count in zip(("task", "corrections", "results", "decisions"), of, strict=True)
    ]
    columns = [f"facts, {len(job.facts)}", *groups, *COLUMNS]
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += ["| " + " | ".join(row(one)) + " |" for one in runs]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--window", type=int, default=WINDOW, help="of the one model, in tokens")
    parser.add_argument("--only", action="append", help="a system's name; may be given more than once")
    parser.add_argument("--no-peers", action="store_true", help="agentx alone")
    parser.add_argument("--no-chain", action="store_true", help="without the job on a chain of two models")
    asked = parser.parse_args()
    job = long_job(asked.turns)
    systems = [*ours(), *([] if asked.no_peers else peers())]
    cases = {"one model": (asked.window,)} | ({} if asked.no_chain else {"chain": CHAIN})
    found: dict[str, list[Run]] = {}
    for name, windows in cases.items():
        for system in systems:
            if asked.only and system.name not in asked.only:
                continue
            say(f"{name}: {system.name} ...")
            one = run(system, job, windows)
            found.setdefault(name, []).append(one)
            for trouble in one.troubles[:3]:
                say(f"  {trouble}")
    if asked.json:
        about = {"turns": asked.turns, "cores": os.cpu_count(), "peers": [*LANGCHAIN, *OPENHANDS]}
        runs = {name: [asdict(one) for one in found[name]] for name in found}
        print(json.dumps({"about": about, "windows": cases, "cases": runs}, indent=2))
        return
    print(f"{asked.turns} turns; {os.cpu_count()} cores; {', '.join((*LANGCHAIN, *OPENHANDS))}")
    for name, runs in found.items():
        print(f"\n{name}: {' and '.join(f'{window:,}' for window in cases[name])} tokens\n\n{table(runs, job)}")


if __name__ == "__main__":
    main()
