"""A job's journal on a real file, filled by hand, and a context over it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentx.config.links import Link, Provider
from agentx.context.budget import Budget, budget_for
from agentx.context.engine import Context
from agentx.context.summarise import Ask
from agentx.context.view import View
from agentx.events import (
    JobStarted,
    NotesUpdated,
    Nudged,
    PlanUpdated,
    Replied,
    ToolEnded,
    UserMessage,
)
from agentx.journal import Journal
from agentx.wires.messages import Finish, Image, Message, Reply, Tool, ToolCall, Usage

SYSTEM = "You are a careful agent."
TOOLS = (Tool("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
TASK = "Read all notes and answer with the code of each."


def link_to(model: str, *, cuts: bool = True) -> Link:
    provider = Provider(
        name="box", card="openai-compatible", wire="openai", base_url="http://box/v1", may_truncate=cuts
    )
    return Link(provider=provider, model=model, name=f"box/{model}")


def reply_of(text: str = "", **more: Any) -> Reply:
    """A reply with *text*; *more* is of Reply, or `reasoning` and `tool_calls` of its message."""
    message = Message(
        role="assistant", text=text, reasoning=more.pop("reasoning", ""), tool_calls=more.pop("tool_calls", ())
    )
    settings: dict[str, Any] = {"finish": "stop", "usage": None, "model": "m", "seconds": 0.1}
    return Reply(message=message, **(settings | more))


class Scripted:
    """Answers summary requests, the last answer again and again, and keeps what it was sent."""

    def __init__(self, *answers: Reply | BaseException | str) -> None:
        self.answers = list(answers) or ["Goal: go on."]
        self.seen: list[Sequence[Message]] = []
        self.max_tokens: list[int] = []

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> Reply:
        self.seen.append(messages)
        self.max_tokens.append(max_tokens)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return reply_of(answer) if isinstance(answer, str) else answer


@dataclass
class Bench:
    """A job: say things in it, ask for views, reply to them."""

    folder: Path
    clock: float = 1_000_000.0
    files: dict[str, str] = field(default_factory=dict[str, str])
    background: str = ""
    counter: Callable[[str], int | None] = lambda text: None
    calls: int = 0
    system: str = SYSTEM
    task: str = TASK
    tools: tuple[Tool, ...] = TOOLS

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.db", now=lambda: self.clock)
        self.context = self.open()

    def open(self, **more: Any) -> Context:
        """A context as a new process would make it."""
        settings: dict[str, Any] = {
            "policy": "half-window",
            "now": lambda: self.clock,
            "read_file": lambda path: self.files.get(path),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
            "background": lambda: self.background,
            "output": self.folder / "output",
            "counter": lambda text: self.counter(text),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        }
        return Context(self.journal, **(settings | more))

    def start(self, task: str = TASK, images: tuple[Image, ...] = ()) -> int:
        event = JobStarted(task=task, chain=["box/m"], workspace="/w", limits={}, version="0")
        return self._message(event, Message(role="user", text=task, images=images))

    def says(self, text: str) -> int:
        return self._message(UserMessage(text=text), Message(role="user", text=text))

    def nudge(self, text: str) -> int:
        return self._message(Nudged(text=text), Message(role="user", text=text))

    def answers(
        self,
        text: str = "",
        *calls: tuple[str, Mapping[str, Any]],
        view: View | None = None,
        usage: Usage | None = None,
        link: str = "box/m",
        reasoning: str = "",
        finish: Finish = "stop",
    ) -> list[str]:
        """A committed reply with *calls* (name, arguments); gives the ids of the calls."""
        made: list[ToolCall] = []
        for name, arguments in calls:
            self.calls += 1
            made.append(ToolCall(f"c{self.calls}", name, json.dumps(arguments)))
        message = Message(role="assistant", text=text, tool_calls=tuple(made), link=link, reasoning=reasoning)
        payload: dict[str, Any] = {"message": message.to_json()}
        if view is not None:
            payload["view"] = view.to_json()
        event = Replied(link=link, model="m", finish=finish, usage=usage.to_json() if usage else None, seconds=0.1)
        self.journal.append(event, payload)
        return [call.id for call in made]

    def result(
        self,
        call: str,
        text: str,
        *,
        name: str = "read_file",
        ok: bool = True,
        images: tuple[Image, ...] = (),
        **more: Any,
    ) -> int:
        event = ToolEnded(id=call, name=name, ok=ok, seconds=0.1, bytes=len(text))
        message = Message(role="tool", text=text, tool_call_id=call, name=name, images=images)
        return self.journal.append(event, {"message": message.to_json(), **more}).seq

    def reads(self, path: str, text: str, **more: Any) -> int:
        """A reply that reads *path*, and the result."""
        (id_,) = self.answers("", ("read_file", {"path": path}), **more)
        return self.result(id_, text)

    def plan(self, *items: tuple[str, bool]) -> None:
        self.journal.append(PlanUpdated(items=[{"text": text, "done": done} for text, done in items]))

    def notes(self, text: str) -> None:
        self.journal.append(NotesUpdated(text=text))

    def view(
        self,
        budget: Budget | int,
        ask: Ask | None = None,
        *,
        model: str = "m",
        context: Context | None = None,
        system: str = SYSTEM,
        tools: tuple[Tool, ...] = TOOLS,
        count: Any = None,
    ) -> View:
        if isinstance(budget, int):
            budget = budget_for(budget)
        return asyncio.run(
            (context or self.context).view(
                link_to(model), budget, system=system, tools=tools, ask=ask, count=count
            )
        )

    def turn(self, view: View, text: str = "ok", *, model: str = "m", reported: int | None = None) -> None:
        """A reply to *view* whose provider reports *reported* tokens (as estimated, if nothing is said)."""
        usage = Usage(input=view.estimate if reported is None else reported, output=10)
        self.answers(text, view=view, usage=usage, link=f"box/{model}")
        self.context.replied(link_to(model), view, usage)

    def events(self, kind: str) -> list[Any]:
        return [entry.event for entry in self.journal.read(types=(kind,))]

    def scripted(self, *answers: Reply | BaseException | str) -> Scripted:
        return Scripted(*answers)

    def reply(self, text: str = "", **more: Any) -> Reply:
        return reply_of(text, **more)

    def link(self, model: str = "m", *, cuts: bool = True) -> Link:
        return link_to(model, cuts=cuts)

    def text(self, view: View) -> str:
        return "\n".join(message.text for message in view.messages)

    def _message(self, event: Any, message: Message) -> int:
        return self.journal.append(event, {"message": message.to_json()}).seq


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def new_bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Bench]:
    """For properties, which need a fresh one for each example."""
    return lambda: Bench(tmp_path_factory.mktemp("job"))
