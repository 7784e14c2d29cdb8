# pyright: basic, reportMissingImports=false, reportArgumentType=false
# (the peers live in environments of the bench's own, where no type checker looks)
"""One agent of `bench/context.py`, in a process of its own: does the long job, and says what that took.

`agents.py NAME` reads one line of stdin: `{"workspace", "links": [{"url", "window"}], "said": [text, ...]}`, and
writes one line: `{"seconds", "troubles": [text, ...]}`. Seconds are the processor time of this process and its
children from the first text on, imports not counted. The user says each text when the agent has answered the one
before; a text that ends in an error is followed by the agent's own way to go on, at most `TRIES` times in a row.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEY = "key-of-the-bench"
MODEL = "m"
TRIES = 20
SECONDS_OF_A_REPLY = 20.0
"""How long a reply takes by the clock that agentx is given: what rests for a minute rests for some turns."""

Order = dict[str, Any]
Say = Callable[[str | None], None]
"""Says one text (None: go on after an error), and returns when it is answered. Raises what the agent raises."""


def agentx(order: Order, policy: str) -> Say:
    """A job as `agentx run` and `agentx resume` run it, all settings but the policy as they come."""
    from dataclasses import replace

    from agentx.cli.foreground import surroundings
    from agentx.cli.session import Session
    from agentx.events import Replied
    from agentx.jobs.run import run_job
    from agentx.jobs.store import Job, Store
    from agentx.jobs.store import Order as Asked

    home = Path("home").resolve()
    providers = {
        f"s{number}": {"card": "openai-compatible", "base_url": link["url"]}
        for number, link in enumerate(order["links"])
    }
    chain = [
        {"model": f"s{number}/{MODEL}", "window": link["window"]} for number, link in enumerate(order["links"])
    ]
    settings = {"default_chain": "c", "chains": {"c": chain}, "providers": providers}
    settings["compaction"] = {"policy": policy}
    (home / "config").mkdir(parents=True)
    (home / "config" / "agentx.yaml").write_text(json.dumps(settings))
    workspace = order["workspace"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENTX_HOME": str(home)}
    session = Session(environ, Path(workspace))
    clock = [time.time()]

    def listen(entry: Any) -> None:
        clock[0] += SECONDS_OF_A_REPLY * isinstance(entry.event, Replied)

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    jobs: list[Job] = []

    def say(text: str | None) -> None:
        asked = Asked(task=text or "", workspace=workspace)
        around = replace(
            surroundings(session, asked), listener=listen, now=lambda: clock[0], sleep=sleep, watched=False
        )
        first = not jobs
        if first:
            jobs.append(Store(session.paths().jobs).create(asked))
        ending = run_job(jobs[0], around, said=None if first else text)
        if ending.name != "done":
            raise RuntimeError(f"{ending.name}: {ending.message}")

    return say


AGENTS: dict[str, Callable[[Order], Say]] = {}


def agent(name: str, order: Order) -> Say:
    kind, _, policy = name.partition(" ")
    return agentx(order, policy) if kind == "agentx" else AGENTS[name](order)


def processor_seconds() -> float:
    took = os.times()
    return took.user + took.system + took.children_user + took.children_system


def main() -> None:
    order = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what agents print is not the answer
    say = agent(sys.argv[1], order)
    before = processor_seconds()
    troubles: list[str] = []
    for text in order["said"]:
        said: str | None = text
        for _ in range(TRIES):
            try:
                say(said)
                break
            except Exception as error:  # noqa: BLE001  whatever an agent raises, the user tries again
                troubles.append(f"{type(error).__name__}: {str(error)[:300]}")
                said = None
        else:
            break
    took = processor_seconds() - before
    answers.write(json.dumps({"seconds": took, "troubles": troubles}) + "\n")
    answers.flush()
    os._exit(0)  # threads and tasks that an agent leaves behind are no matter of the bench


if __name__ == "__main__":
    main()
