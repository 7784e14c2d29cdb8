"""Real llama.cpp servers and a real Ollama, with a real model: windows, refusals, cuts in silence, tool calls.

Answers of the model are looked at only where it gives them every time (temperature 0).
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentx.chain.classify import classify
from agentx.config.links import Link
from agentx.config.load import load
from agentx.config.paths import paths
from agentx.context.truncation import suspicion
from agentx.errors import RequestFailed
from agentx.windows.registry import WindowRegistry, open_registry
from agentx.wires.local import LocalWire
from agentx.wires.make import client, wire_for
from agentx.wires.messages import Message, Request, Timers, Tool, Wire

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

T = TypeVar("T")
TIMERS = Timers(connect=10, first=600, idle=300, total=800)
WORDS = "the harbour crew checked the north gate and wrote down the level of the water before lunch "
WEATHER = Tool(
    "get_weather",
    "Get the current weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class Real:
    """Links to the real servers as a user would write them, and a way to drive a wire."""

    def __init__(self, home: Any, small: Any, large: Any, ollama: Any) -> None:
        home.configure(
            {
                "providers": {
                    "small": {"card": "llamacpp", "base_url": f"{small.url}/v1"},
                    "large": {"card": "llamacpp", "base_url": f"{large.url}/v1"},
                    "cut": {"card": "ollama", "base_url": ollama.url},
                },
                "chains": {"real": [f"small/{small.model}", f"large/{large.model}", f"cut/{ollama.model}"]},
                "default_chain": "real",
            }
        )
        self.home = home
        self.environ: dict[str, str] = home.environ
        config = load(paths(self.environ), home.workspace, self.environ, ())
        self.small, self.large, self.cut = config.chain("real")

    def run(self, link: Link, act: Callable[[Wire, WindowRegistry], Awaitable[T]]) -> T:
        async def story() -> T:
            async with client() as http:
                registry = open_registry(client=http, environ=self.environ)
                return await act(wire_for(link, http, self.environ), registry)

        return asyncio.run(story())


@pytest.fixture
def real(home: Any, small: Any, large: Any, ollama: Any) -> Real:
    return Real(home, small, large, ollama)


def asked(link: Link, *texts: str, tools: tuple[Tool, ...] = (), num_ctx: int | None = None) -> Request:
    messages = [
        Message(role="user" if number % 2 == 0 else "assistant", text=text) for number, text in enumerate(texts)
    ]
    return Request(
        model=link.model, messages=messages, tools=tools, max_tokens=48, temperature=0.0, num_ctx=num_ctx
    )


def test_windows_are_found_as_they_are_served(real: Real) -> None:
    shown = real.home.run("windows", "--json").json["links"]
    found = {link["link"]: (link["window"], link["trained"]) for link in shown}
    assert found == {
        real.small.name: (2304, 32768),
        real.large.name: (4096, 32768),
        real.cut.name: (2304, 32768),
    }


def test_an_overflow_is_refused_with_its_numbers_and_the_larger_window_takes_it(real: Real) -> None:
    async def refused(wire: Wire, _: WindowRegistry) -> RequestFailed:
        with pytest.raises(RequestFailed) as caught:
            await wire.ask(asked(real.small, WORDS * 150 + "Say yes."), TIMERS)
        return caught.value

    failure = classify(real.run(real.small, refused), real.small.provider, time.time())
    assert (failure.error_class, failure.limit) == ("overflow", 2304)
    assert failure.actual is not None
    assert failure.actual > 2304

    async def taken(wire: Wire, _: WindowRegistry) -> int:
        reply = await wire.ask(asked(real.large, WORDS * 150 + "Say yes."), TIMERS)
        assert reply.usage is not None
        return reply.usage.input

    assert real.run(real.large, taken) == failure.actual


def test_the_servers_own_count_is_what_it_reports_afterwards(real: Real) -> None:
    async def act(wire: Wire, _: WindowRegistry) -> tuple[int | None, int]:
        request = asked(real.small, WORDS * 5 + "What is the weather in Paris?", tools=(WEATHER,))
        counted = await wire.count(request)
        usage = (await wire.ask(request, TIMERS)).usage
        assert usage is not None
        return counted, usage.input

    counted, reported = real.run(real.small, act)
    assert counted == reported


@pytest.mark.parametrize("which", ["small", "cut"])
def test_a_tool_is_called_and_its_result_answered(which: str, real: Real) -> None:
    link: Link = getattr(real, which)

    async def act(wire: Wire, _: WindowRegistry) -> str:
        question = "What is the weather in Paris right now? Use the get_weather tool."
        request = asked(link, question, tools=(WEATHER,), num_ctx=2304)
        reply = await wire.ask(request, TIMERS)
        (call,) = reply.message.tool_calls
        assert reply.finish == "tool_calls"
        assert (call.name, call.parsed()) == ("get_weather", {"city": "Paris"})
        result = Message(role="tool", text="18 C, light rain", tool_call_id=call.id, name=call.name)
        messages = (*request.messages, reply.message, result)
        answer = await wire.ask(
            Request(
                model=link.model, messages=messages, tools=(WEATHER,), max_tokens=48, temperature=0.0, num_ctx=2304
            ),
            TIMERS,
        )
        return answer.message.text

    assert "18" in real.run(link, act)


def test_an_ollama_that_cuts_in_silence_is_seen_in_what_it_reports(real: Real) -> None:
    """200, `stop`, and an answer: only the count says that most of the conversation was not read."""
    notes = [text for number in range(14) for text in (f"Note {number}: {WORDS * 14}", "Understood.")]
    texts = ("My key is BRAVO-2846.", "Understood.", *notes, "What is my key?")
    estimate = sum(map(len, texts)) // 4

    async def act(wire: Wire, _: WindowRegistry) -> int:
        reply = await wire.ask(asked(real.cut, *texts, num_ctx=2304), TIMERS)
        assert "BRAVO-2846" not in reply.message.text
        assert reply.usage is not None
        return reply.usage.input

    reported = real.run(real.cut, act)
    assert reported < 2304 < estimate
    assert suspicion(reported, estimate) is not None


class Embedded:
    """The embedded model with real files, in a home of its own."""

    def __init__(self, home: Any, program: Path, model: Path) -> None:
        home.extra = {"AGENTX_LOCAL_SERVER": str(program), "AGENTX_LOCAL_MODEL": str(model)}
        self.environ: dict[str, str] = home.environ
        self.link = load(paths(self.environ), home.workspace, self.environ, ()).link("local/qwen2.5-coder-0.5b")


@pytest.fixture
def embedded(home: Any, llama_server: Path, model_file: Path) -> Embedded:
    return Embedded(home, llama_server, model_file)


def test_the_embedded_model_answers_and_comes_back_after_a_kill(embedded: Embedded) -> None:
    async def story() -> None:
        async with client() as http:
            wire = LocalWire(embedded.link, http, embedded.environ)
            try:
                question = asked(embedded.link, "What is 2+2? Answer with the number only.")
                assert "4" in (await wire.ask(question, TIMERS)).message.text
                counts = [await wire.count(question) for _ in range(5)]  # it has two seconds, on a busy machine
                assert any(counts)
                address = wire.served_address
                for pid in children():
                    os.kill(pid, signal.SIGKILL)
                with pytest.raises(RequestFailed, match="it was killed"):
                    await wire.ask(question, TIMERS)
                assert "4" in (await wire.ask(question, TIMERS)).message.text
                assert wire.served_address not in (None, address)
            finally:
                await wire.close()

    asyncio.run(story())


def children() -> list[int]:
    """The embedded servers that this very process started."""
    mine: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"llama-server" in command and b"-a\0qwen" not in command:
            mine.append(int(folder.name))
    return mine
