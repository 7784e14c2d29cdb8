"""What a long job costs by itself: own time of a turn and memory, at 100 and at 10,000 entries of its journal.

`python bench/long.py [--json] [--entries N]`, or `make bench-long`. A whole job runs in a process of its own: its
journal on disk, its tools, its chain, its wire; a server in another process answers at once. Own time is what a
turn takes of the processor, so that neither the server nor others on the machine are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import selectors
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import yaml

WINDOWS = (32_000, 200_000, 1_000_000)
EARLY, LATE = 100, 10_000
AROUND = 60
"""Turns whose median is taken."""
LINES = 25
SUMMARY = "Goal: read the book.\nDone: many pages were read, all is well.\nNext: read on."


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds are medians of the processor's time for one turn; `worst_ms` is the longest turn, with a
    compaction in it."""

    window: int
    entries: int
    turns: int
    compactions: int
    early_ms: float
    late_ms: float
    worst_ms: float
    megabytes: float


class Answers(socketserver.StreamRequestHandler):
    """Speaks just enough HTTP to be a model that reads a book page by page, and summarises when it is asked to."""

    pages = 0
    lock = threading.Lock()

    def handle(self) -> None:
        while line := self.rfile.readline():
            length = 0
            while (header := self.rfile.readline().strip().lower()) != b"":
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            body = self.rfile.read(length)
            found = line.startswith(b"POST") and b"/chat/completions" in line
            said = self.stream(body) if found else b"{}"
            kind = b"text/event-stream" if found else b"application/json"
            status = b"200 OK" if found else b"404 Not Found"
            head = b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (status, kind, len(said))
            self.wfile.write(head + said)

    def stream(self, body: bytes) -> bytes:
        delta: dict[str, object] = {"content": SUMMARY}
        finish = "stop"
        if b'"tools"' in body:
            with self.lock:
                Answers.pages += 1
                offset = Answers.pages * LINES
            arguments = json.dumps({"path": "book.txt", "offset": offset, "limit": LINES})
            function = {"name": "read_file", "arguments": arguments}
            delta = {"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": function}]}
            finish = "tool_calls"
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": 30, "total_tokens": len(body) // 4 + 30}
        chunks: list[dict[str, object]] = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {"choices": [], "usage": usage},
        ]
        lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
        return b"".join(lines) + b"data: [DONE]\n\n"


def serve() -> None:
    """Answer until killed; the port is the only line on stdout."""
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


class Waiting(selectors.DefaultSelector):
    """Knows what waiting for the server took of the processor: on some machines that is not nothing."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.process_time()
        found = super().select(timeout)
        Waiting.seconds += time.process_time() - began
        return found


class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(Waiting())


def work(port: int, window: int, entries: int) -> Cost:
    """Run a job of about so many *entries* in this process."""
    from agentx.config.load import load
    from agentx.config.paths import paths
    from agentx.jobs.assemble import Surroundings
    from agentx.jobs.run import run_job
    from agentx.jobs.store import Order, Store
    from agentx.journal import Entry

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        book = folder / "work" / "book.txt"
        book.parent.mkdir()
        book.write_text(
            "".join(f"line {n}: the harbour crew wrote down the water\n" for n in range(entries * LINES))
        )
        places = paths({"AGENTX_HOME": str(folder / "home")})
        places.user_file.parent.mkdir(parents=True)
        provider = {"card": "openai-compatible", "base_url": f"http://127.0.0.1:{port}/v1"}
        chains = {"c": [{"model": "box/m", "window": window}]}
        settings = {"default_chain": "c", "chains": chains, "providers": {"box": provider}}
        places.user_file.write_text(yaml.safe_dump({**settings, "limits": {"turns": entries // 4 + 1}}))
        config = load(places, book.parent, {})
        marks: list[tuple[int, float]] = []
        compactions = 0

        def listen(entry: Entry) -> None:
            nonlocal compactions
            kind = type(entry.event).__name__
            compactions += kind == "Compacted"
            if kind == "Replied" and entry.event.fields()["purpose"] == "turn":
                marks.append((entry.seq, time.process_time() - Waiting.seconds))

        job = Store(places.jobs).create(Order(task="Read the whole book.", workspace=str(book.parent)))
        around = Surroundings(paths=places, environ={}, config=config, links=config.chain(), listener=listen)
        asyncio.set_event_loop_policy(Policy())  # pyright: ignore[reportDeprecated]  `run_job` makes its own loop
        run_job(job, around)
    taken = [(seq, (end - begin) * 1000) for (_, begin), (seq, end) in pairwise(marks)]
    return Cost(
        window=window,
        entries=marks[-1][0],
        turns=len(marks),
        compactions=compactions,
        early_ms=median([ms for seq, ms in taken if seq >= EARLY][:AROUND]),
        late_ms=median([ms for _, ms in taken][-AROUND:]),
        worst_ms=round(max(ms for seq, ms in taken if seq >= EARLY), 2),
        megabytes=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )


def median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2)


def measured(window: int, entries: int) -> Cost:
    """The cost of one job, in a process of its own."""
    here = [sys.executable, __file__]
    with subprocess.Popen([*here, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            port = server.stdout.readline().strip()
            command = [*here, "--work", port, str(window), "--entries", str(entries)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            server.kill()
    return Cost(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--entries", type=int, default=LATE)
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, nargs=2, metavar=("PORT", "WINDOW"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
    elif chosen.work:
        port, window = chosen.work
        print(json.dumps(asdict(work(port, window, chosen.entries))))
    else:
        costs = [measured(window, chosen.entries) for window in chosen.windows]
        if chosen.json:
            print(json.dumps([asdict(cost) for cost in costs]))
            return
        print("   window  entries  compactions   ms a turn at 100   at the end   longest     MB")
        for cost in costs:
            print(
                f"{cost.window:>9,}  {cost.entries:>7,}  {cost.compactions:>11}  {cost.early_ms:>17}"
                f"  {cost.late_ms:>11}  {cost.worst_ms:>8}  {cost.megabytes:>5}"
            )


if __name__ == "__main__":
    main()
