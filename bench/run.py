"""What the README's numbers come from: start-up of commands, memory of a running job, cost of a turn.

Medians over several runs, side by side in one go: this machine may be noisy, so ratios count. `make bench`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Slow, always
from agentx.testing.server import FaultServer

RUNS = 15
AGENTX = [sys.executable, "-m", "agentx"]


def median_seconds(commands: dict[str, Sequence[str]], environ: dict[str, str]) -> dict[str, float]:
    """The median of RUNS runs of each command, taken in turns so that noise meets all of them."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


def environment(folder: Path, server: FaultServer) -> dict[str, str]:
    config = folder / "home" / "config"
    config.mkdir(parents=True)
    settings = {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
    }
    (config / "agentx.yaml").write_text(yaml.safe_dump(settings))
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "AGENTX_HOME": str(folder / "home")}


def resident_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ValueError("no VmHWM")


def running_job(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Peak megabytes of a detached job near its end, and the median seconds between two of its turns."""
    work = folder / "work"
    work.mkdir()
    twelve_notes(work)
    started = subprocess.run(
        [*AGENTX, "run", "-d", TASK.format(last=12)],
        cwd=work,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    job = started.stdout.strip()
    peak = 0.0
    while True:
        shown = subprocess.run(
            [*AGENTX, "show", "--json", job], env=environ, capture_output=True, text=True, check=True
        )
        facts = json.loads(shown.stdout)
        if facts["state"] != "running":
            break
        try:
            peak = max(peak, resident_megabytes(facts["pid"]))
        except (OSError, ValueError):
            break
    lines = subprocess.run([*AGENTX, "events", job], env=environ, capture_output=True, text=True, check=True)
    replies = [e for e in map(json.loads, lines.stdout.splitlines()) if e["type"] == "reply"]
    return peak, statistics.median(reply["seconds"] for reply in replies)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        FaultServer(NoteReader(), models=["m"], schedule=always(Slow(0.1))) as server,
    ):
        folder = Path(name)
        environ = environment(folder, server)
        peak, reply = running_job(folder, environ)
        seconds = median_seconds(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "agentx --help": [*AGENTX, "--help"],
                "agentx ps -a": [*AGENTX, "ps", "-a"],
                "agentx windows": [*AGENTX, "windows"],
            },
            environ,
        )
    bare = seconds["python -c pass"]
    print(f"medians of {RUNS} runs on {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for name, value in seconds.items():
        print(f"{name:<16} {value * 1000:6.0f} ms   {value / bare:4.1f} x python")
    print(f"{'running job':<16} {peak:6.1f} MB   peak resident, one httpx wire, 12 notes")
    print(f"{'one reply':<16} {reply * 1000:6.0f} ms   of which the server sleeps 100")


if __name__ == "__main__":
    main()
