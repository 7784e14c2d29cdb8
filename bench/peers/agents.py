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


def langchain(order: Order) -> Say:
    """`create_agent` with SummarizationMiddleware. That has no trigger of its own: it gets the share that its
    documentation shows; all the rest is as it comes. A chain is ModelFallbackMiddleware."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langgraph.checkpoint.memory import InMemorySaver

    models, fallback = chat_models(order)
    summarises = SummarizationMiddleware(model=models[0], trigger=("fraction", 0.8))
    return graph(
        create_agent(
            models[0],
            tools=plain_tools(Path(order["workspace"])),
            middleware=[summarises, *fallback],
            checkpointer=InMemorySaver(),
        )
    )


def deepagents(order: Order) -> Say:
    """`create_deep_agent` on the workspace, all settings as they come. A chain is ModelFallbackMiddleware."""
    from deepagents import create_deep_agent
    from deepagents.backends import FilesystemBackend
    from langgraph.checkpoint.memory import InMemorySaver

    models, fallback = chat_models(order)
    backend = FilesystemBackend(root_dir=order["workspace"], virtual_mode=True)
    return graph(create_deep_agent(models[0], middleware=fallback, backend=backend, checkpointer=InMemorySaver()))


def chat_models(order: Order) -> tuple[list[Any], list[Any]]:
    """A model for each link, which knows its window, and the middleware that falls back to the later ones."""
    from langchain.agents.middleware import ModelFallbackMiddleware
    from langchain_openai import ChatOpenAI

    models = [
        ChatOpenAI(model=MODEL, base_url=link["url"], api_key=KEY, profile={"max_input_tokens": link["window"]})
        for link in order["links"]
    ]
    return models, [ModelFallbackMiddleware(*models[1:])] if models[1:] else []


def plain_tools(workspace: Path) -> list[Callable[..., str]]:
    def read_file(path: str) -> str:
        """Read a file of the workspace."""
        return (workspace / path).read_text()

    def write_file(path: str, content: str) -> str:
        """Write a file of the workspace."""
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_text(content)
        return f"wrote {path}"

    return [read_file, write_file]


def graph(made: Any) -> Say:
    settings = {"configurable": {"thread_id": "1"}, "recursion_limit": 100_000}

    def say(text: str | None) -> None:
        made.invoke(None if text is None else {"messages": [("user", text)]}, settings)

    return say


def openhands(order: Order) -> Say:
    """A conversation with the condenser of the default agent. A chain is a FallbackStrategy."""
    from with_openhands import conversation

    made = conversation(Path(order["workspace"]), order["links"], model=MODEL, key=KEY)

    def say(text: str | None) -> None:
        if text is not None:
            made.send_message(text)
        made.run()

    return say


AGENTS: dict[str, Callable[[Order], Say]] = {
    "langchain": langchain,
    "deepagents": deepagents,
    "openhands": openhands,
}


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
