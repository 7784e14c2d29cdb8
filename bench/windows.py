"""What `agentx windows` costs: resolution, catalogue look-ups, and the command with ten links to dead servers.

Measured in one run, medians. `python bench/windows.py`, or as a part of `make bench`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import yaml

from agentx.testing.server import FaultServer
from agentx.windows import link_to, open_registry
from agentx.windows.catalogue import Catalogue, catalogue_file

RUNS = 5
DEAD = 10
HOSTED = (
    "openai/gpt-5",
    "openai/gpt-4o",
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-pro",
    "groq/llama-3.1-8b-instant",
)


def median_ms(work: Callable[[], object], times: int = 200) -> float:
    taken: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


async def resolution(folder: Path) -> tuple[float, float]:
    """Milliseconds for one link with a warm cache: one that a server told, and the hosted ones."""
    environ = {"AGENTX_HOME": str(folder / "home")}
    with FaultServer(face="llamacpp", models=["m"]) as server:
        async with httpx.AsyncClient() as client:
            told = link_to("llamacpp/m", environ=environ, folder=folder)
            told = replace(told, provider=replace(told.provider, base_url=server.v1))
            hosted = [link_to(name, environ=environ, folder=folder) for name in HOSTED]
            first = open_registry(client=client, environ=environ)
            await first.refresh([told])
            warm = open_registry(client=client, environ=environ)  # another process: it knows the file alone
            for link in (told, *hosted):
                warm.window(link)
            assert warm.window(told).source == "cache"
            local = median_ms(lambda: warm.window(told))
            listed = median_ms(lambda: [warm.window(link) for link in hosted]) / len(hosted)
    return local, listed


def catalogue_ms(folder: Path) -> tuple[float, float, float]:
    """Milliseconds of the very first look-up, of the first one of a later process, and of later ones in a process,
    each for a model that was not asked for before."""
    links = [link_to(name, environ={"AGENTX_HOME": str(folder)}, folder=folder) for name in HOSTED]
    made: list[float] = []
    first: list[float] = []
    later: list[float] = []
    kept = folder / "catalogue.index"
    for number in range(2 * RUNS):
        if number < RUNS:
            kept.unlink(missing_ok=True)
        catalogue = Catalogue(catalogue_file(), kept)
        taken: list[float] = []
        for link in links:
            start = time.perf_counter()
            catalogue.window(link)
            taken.append((time.perf_counter() - start) * 1000)
        (made if number < RUNS else first).append(taken[0])
        later += taken[1:]
    return statistics.median(made), statistics.median(first), statistics.median(later)


def command_seconds(folder: Path, ports: list[int]) -> float:
    """Seconds of `agentx windows` with one link to each of *ports*."""
    home = folder / f"home{ports[0]}"
    (home / "config").mkdir(parents=True)
    providers = {
        f"p{n}": {"card": "openai-compatible", "base_url": f"http://127.0.0.1:{port}/v1"}
        for n, port in enumerate(ports)
    }
    settings = {
        "default_chain": "c",
        "chains": {"c": [{"model": f"p{n}/m"} for n in range(len(ports))]},
        "providers": providers,
    }
    (home / "config" / "agentx.yaml").write_text(yaml.safe_dump(settings))
    taken: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "agentx", "windows"],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "AGENTX_HOME": str(home)},
            capture_output=True,
            check=True,
            cwd=folder,
        )
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def silent_and_closed() -> tuple[list[socket.socket], list[int], list[int]]:
    """Sockets that take a connection and never answer, their ports, and ports where nobody listens."""
    silent: list[socket.socket] = []
    for _ in range(DEAD):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        one.listen(64)
        silent.append(one)
    closed: list[int] = []
    for _ in range(DEAD):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            closed.append(one.getsockname()[1])
    return silent, [one.getsockname()[1] for one in silent], closed


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local, hosted = asyncio.run(resolution(folder))
        made, first, later = catalogue_ms(folder)
        silent, hanging, closed = silent_and_closed()
        refused = command_seconds(folder, closed)
        never = command_seconds(folder, hanging)
        for one in silent:
            one.close()
    print(f"{'resolution':<34} {local:8.3f} ms  a link of one's own server, from the file; below 1")
    print(f"{'':<34} {hosted:8.3f} ms  a hosted link, from tables and catalogue; below 1")
    print(f"{'catalogue, index made':<34} {made:8.1f} ms  once after an update of LiteLLM")
    print(f"{'catalogue, first look-up':<34} {first:8.3f} ms  of a process")
    print(f"{'catalogue, another model':<34} {later:8.3f} ms  below 1")
    print(f"{f'agentx windows, {DEAD} refused links':<34} {refused:8.2f} s   below 2.5")
    print(f"{f'agentx windows, {DEAD} silent links':<34} {never:8.2f} s   below 2.5")


if __name__ == "__main__":
    main()
