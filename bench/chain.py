"""What the chain costs, next to other fallback chains and to bare httpx: one run, one server, medians.

`python bench/chain.py [--json] [--rounds N]`, or `make bench-chain`. The peers live in an environment that this
program makes under `.cache/`; one that is not there is said and left out. All clients take their turns batch by
batch, so that the noise of the machine meets all of them: ratios count.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from environments import python_with, say

FOLDER = Path(__file__).resolve().parent
PEERS = "bench-peers"
PINNED = (
    "litellm==1.110.2",
    "pydantic-ai-slim[openai]==2.68.0",
    "langchain-core==1.8.3",
    "langchain-openai==1.7.4",
    "openai==3.57.0",
)
OURS = ("httpx", "agentx")
IMPORTS = {
    "httpx": "import httpx",
    "agentx": "from agentx.chain import Chain",
    "litellm": "from litellm import Router",
    "pydantic-ai": "import pydantic_ai.models.fallback, pydantic_ai.models.openai",
    "langchain": "from langchain_openai import ChatOpenAI",
}
IMPORT = """
import sys, time, resource
start = time.perf_counter()
{}
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
SHORT, LONG = 5, 602
IMPORT_RUNS = 7
QUIET = {"PATH": os.environ["PATH"], "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "CRITICAL"}


@dataclass
class Worker:
    """A client in its own process."""

    name: str
    process: subprocess.Popen[str]
    taken: dict[str, list[tuple[float, float]]] = field(default_factory=dict[str, list[tuple[float, float]]])

    def measure(self, case: str, messages: int, times: int) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"case": case, "messages": messages, "times": times}) + "\n")
        self.process.stdin.flush()
        taken = json.loads(self.process.stdout.readline() or "[]")
        self.taken.setdefault(f"{case} {messages}", []).extend(taken)

    def median(self, case: str, messages: int = SHORT, *, work: bool = False) -> float | None:
        """Milliseconds of a call by the clock, or of the client's own *work* in it."""
        taken = self.taken.get(f"{case} {messages}")
        return statistics.median(pair[work] for pair in taken) if taken else None


@contextmanager
def server() -> Generator[str]:
    with subprocess.Popen(
        [sys.executable, FOLDER / "peers" / "server.py"], stdout=subprocess.PIPE, text=True
    ) as p:
        assert p.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(p.stdout.readline())}"
        finally:
            p.kill()


@contextmanager
def refusing() -> Generator[str]:
    """An address where nobody listens, and nobody else can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


@contextmanager
def worker(python: Path, name: str, url: str, refused: str) -> Generator[Worker | None]:
    """The client, ready; None where it does not start."""
    command = [python, FOLDER / "peers" / "worker.py", name, url, refused]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=QUIET
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            if process.stdout.readline() == "ready\n":
                yield Worker(name, process)
            else:
                lines = process.stderr.read().splitlines()
                say(f"{name} does not start and is left out: {lines[-1] if lines else 'no reason was given'}")
                yield None
        finally:
            process.kill()


def measure(workers: list[Worker], rounds: int) -> None:
    """All cases of all clients, in small batches in turn. What sleeps for seconds by default is asked twice."""
    for turn in range(rounds):
        say(f"round {turn + 1} of {rounds}")
        for one in workers:
            plain = "off" not in one.name
            if one.name != "httpx" and (turn < 2 or not plain or one.name in OURS):
                for case in ("429", "refused"):
                    one.measure(case, SHORT, 1 if plain and one.name not in OURS else 4)
        for messages, times in ((SHORT, 8), (LONG, 4)):
            for case in ("healthy", "json", "direct", "resting"):
                for one in workers:
                    only = {"json": ["httpx"], "direct": ["agentx"], "resting": ["agentx"]}.get(case)
                    if one.name in only if only else "off" not in one.name:
                        one.measure(case, messages, times)


def imported(python: Path, statement: str, runs: int) -> tuple[float, float] | None:
    """Median seconds and peak megabytes of a process that does *statement* and no more."""
    found: list[tuple[float, float]] = []
    for _ in range(runs):
        done = subprocess.run(
            [python, "-c", IMPORT.format(statement)], capture_output=True, text=True, env=QUIET, cwd=FOLDER.parent
        )
        if done.returncode:
            return None
        seconds, megabytes = map(float, done.stdout.split())
        found.append((seconds, megabytes))
    return statistics.median(s for s, _ in found), statistics.median(m for _, m in found)


def results(workers: list[Worker], pythons: dict[str, Path], runs: int) -> dict[str, dict[str, float | None]]:
    """All numbers by client: milliseconds, ratios to bare httpx, seconds and megabytes of the import."""
    by_name = {one.name: one for one in workers}
    bare = by_name["httpx"]
    found: dict[str, dict[str, float | None]] = {}
    for name, one in by_name.items():
        row = {"after_429_ms": one.median("429"), "after_refused_ms": one.median("refused")}
        for messages in (SHORT, LONG):
            healthy, least = one.median("healthy", messages), bare.median("healthy", messages)
            row[f"call_{messages}_ms"] = healthy
            row[f"call_{messages}_ratio"] = ratio(healthy, least)
            work = one.median("healthy", messages, work=True)
            row[f"call_{messages}_work_ms"] = work
            row[f"call_{messages}_work_ratio"] = ratio(work, bare.median("healthy", messages, work=True))
            direct, resting = one.median("direct", messages), one.median("resting", messages)
            row[f"resting_{messages}_above_direct_ms"] = resting - direct if resting and direct else None
        if "off" not in name:
            seconds, megabytes = imported(pythons[name], IMPORTS[name], runs) or (None, None)
            row |= {"import_seconds": seconds, "import_megabytes": megabytes}
        found[name] = row
    rendered = {f"call_{n}_ms": bare.median("json", n) for n in (SHORT, LONG)}
    ratios = {f"call_{n}_ratio": ratio(bare.median("json", n), bare.median("healthy", n)) for n in (SHORT, LONG)}
    found["httpx, rendering JSON"] = rendered | ratios
    return found


def ratio(value: float | None, least: float | None) -> float | None:
    return value / least if value and least else None


COLUMNS = {
    "after 429, ms": ("after_429_ms", "{:.1f}"),
    "refused port, ms": ("after_refused_ms", "{:.1f}"),
    "call, 5 messages, ms": ("call_5_ms", "{:.2f}"),
    "x httpx": ("call_5_ratio", "{:.2f}"),
    "602 messages, ms": ("call_602_ms", "{:.2f}"),
    "x httpx ": ("call_602_ratio", "{:.2f}"),
    "import, s": ("import_seconds", "{:.2f}"),
    "MB": ("import_megabytes", "{:.0f}"),
}
TARGETS = {
    "after_429_ms": 10.0,
    "after_refused_ms": 10.0,
    "resting_5_above_direct_ms": 1.0,
    "resting_602_above_direct_ms": 1.0,
    "call_5_ratio": 1.5,
    "call_602_ratio": 1.5,
    "import_seconds": 0.2,
    "import_megabytes": 40.0,
}


def table(found: dict[str, dict[str, float | None]]) -> str:
    """As the README has it."""
    lines = ["| client | " + " | ".join(map(str.strip, COLUMNS)) + " |", "|---|" + "---:|" * len(COLUMNS)]
    for name, row in found.items():
        values = (row.get(key) for key, _ in COLUMNS.values())
        cells = (
            "" if v is None else form.format(v) for v, (_, form) in zip(values, COLUMNS.values(), strict=True)
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-peers", action="store_true", help="httpx and agentx alone")
    asked = parser.parse_args()
    ours, theirs = Path(sys.executable), None if asked.no_peers else python_with(PINNED, PEERS)
    names = [*OURS]
    if theirs is not None:
        names += [
            f"{peer}{off}" for peer in ("litellm", "pydantic-ai", "langchain") for off in ("", ", retries off")
        ]
    pythons = {name: ours if name in OURS or theirs is None else theirs for name in names}
    with ExitStack() as stack:
        url, refused = stack.enter_context(server()), stack.enter_context(refusing())
        started = [stack.enter_context(worker(pythons[name], name, url, refused)) for name in names]
        workers = [one for one in started if one is not None]
        if [one.name for one in workers[:2]] != [*OURS]:
            sys.exit("error: the chain or httpx could not be measured")
        measure(workers, asked.rounds)
    found = results(workers, pythons, IMPORT_RUNS)
    about = {"cores": os.cpu_count(), "python": sys.version.split()[0], "peers": PINNED, "rounds": asked.rounds}
    if asked.json:
        print(json.dumps({"about": about, "targets": TARGETS, "clients": found}, indent=2))
        return
    print(
        f"medians of {asked.rounds} rounds on {os.cpu_count()} cores, Python {about['python']}; "
        f"{', '.join(PINNED)}\n"
    )
    print(table(found))
    print("\nagentx:")
    for key, most in TARGETS.items():
        value = found["agentx"].get(key)
        if value is not None:
            print(f"{key:<28} {value:7.2f}   at most {most:g}{'' if value <= most else '   missed'}")
    for messages in (SHORT, LONG):
        print(f"own work, {messages:>3} messages: {found['agentx'][f'call_{messages}_work_ratio']:.2f} x httpx")


if __name__ == "__main__":
    main()
