"""The chain over real sockets and the real wire: every fault of a server ends with the next link's answer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from agentx.chain.health import Health
from agentx.chain.walk import Answer, Chain
from agentx.config.links import Link, Provider
from agentx.testing import faults
from agentx.testing.brain import Call, Script
from agentx.testing.server import FaultServer, says_hello
from agentx.wires.messages import Message, Request, Timers, Tool, Wire
from agentx.wires.openai import OpenAIWire


def link_to(name: str, url: str) -> Link:
    provider = Provider(name=name, card="openai-compatible", wire="openai", base_url=url, self_hosted=True)
    return Link(provider=provider, model="scripted", name=name)


async def prepare(link: Link, reason: str) -> Request:
    tool = Tool("look", "looks", {"type": "object", "properties": {}})
    hello = Message(role="user", text="hello")
    return Request(model=link.model, messages=[hello], tools=[tool], max_tokens=50, estimate=5)


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def ask(*links: Link, calls: int = 1, patience: float = 30) -> list[Answer]:
    timers = Timers(connect=20, first=patience, idle=patience, total=60)

    async def run() -> list[Answer]:
        async with httpx.AsyncClient(trust_env=False) as client:

            def wire(link: Link) -> Wire:
                return OpenAIWire(link.provider, client, lambda: None)

            chain = Chain(links, wires=wire, timers=timers, sleep=no_sleep, random=lambda: 0.0)
            return [await chain.ask(prepare) for _ in range(calls)]

    return asyncio.run(run())


SILENT = (faults.Hang, faults.KeepaliveForever, faults.Stall)


@pytest.mark.parametrize(
    ("fault", "hits"),
    [
        (faults.rate_limited(), 1),
        (faults.Status(500), 2),
        (faults.Status(429, {}, {"error": {"code": "insufficient_quota", "message": "no"}}), 1),
        (faults.Hang(), 1),
        (faults.Close(), 2),
        (faults.Html200(), 2),
        (faults.Garbage200(), 2),
        (faults.ErrorIn200(), 1),
        (faults.EmptyStream(), 2),
        (faults.EmptyChoices(), 2),
        (faults.NullContent(), 2),
        (faults.ReasoningOnly(), 2),
        (faults.HalfToolCall(), 2),
        (faults.CutStream(), 2),
        (faults.NoFinish(), 2),
        (faults.KeepaliveForever(), 1),
        (faults.KeepaliveForever(kind="empty"), 1),
        (faults.Stall(), 1),
        (faults.ErrorInStream(), 2),
        (faults.ErrorInStream(type="overloaded_error"), 1),
    ],
    ids=str,
)
def test_every_fault_ends_with_the_next_links_answer(fault: faults.Fault, hits: int) -> None:
    half = isinstance(fault, faults.HalfToolCall)
    brain = Script([Call("look", {"at": "it"})] * 2) if half else says_hello
    with FaultServer(brain, schedule=faults.always(fault)) as bad, FaultServer() as good:
        patience = 2 if isinstance(fault, SILENT) else 30
        (answer,) = ask(link_to("bad", bad.v1), link_to("good", good.v1), patience=patience)
        assert (answer.link.name, answer.reply.message.text) == ("good", "Hello.")
        assert len(bad.chats) == hits
        assert len(good.chats) == 1


def test_a_refused_port_is_passed_over() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with FaultServer() as good:
            answers = ask(link_to("bad", f"http://127.0.0.1:{port}/v1"), link_to("good", good.v1), calls=20)
            assert [answer.link.name for answer in answers] == ["good"] * 20


def test_the_primary_that_is_always_busy_is_asked_once_in_twenty_calls() -> None:
    busy = faults.always(faults.rate_limited(30))
    with FaultServer(schedule=busy) as bad, FaultServer() as good:
        ask(link_to("bad", bad.v1), link_to("good", good.v1), calls=20)
        assert (len(bad.chats), len(good.chats)) == (1, 20)


SCRIPT = """
import asyncio, sys
from pathlib import Path
import httpx
from agentx.chain.health import Health
from agentx.chain.walk import Chain
from agentx.config.links import Link, Provider
from agentx.errors import ChainExhausted
from agentx.wires.messages import Message, Request
from agentx.wires.openai import OpenAIWire

provider = Provider(name="busy", card="c", wire="openai", base_url=sys.argv[2], self_hosted=True)

async def prepare(link, reason):
    return Request(model="scripted", messages=[Message(role="user", text="hello")], max_tokens=50)

async def run():
    async with httpx.AsyncClient(trust_env=False) as client:
        health = Health(Path(sys.argv[1]), environ={})
        links = [Link(provider=provider, model="scripted", name="busy")]
        wire = OpenAIWire(provider, client, lambda: None)
        try:
            await Chain(links, wires=lambda link: wire, health=health, max_wait_seconds=0).ask(prepare)
        except ChainExhausted:
            pass
        health.close()

asyncio.run(run())
"""


def test_of_ten_processes_one_asks_when_a_rest_is_over(tmp_path: Path) -> None:
    """And what it hears is known to the others: they do not ask at all."""
    file = tmp_path / "health.db"
    with FaultServer(schedule=faults.always(faults.rate_limited(3600))) as busy:
        health = Health(file, environ={})
        health.rest(link_to("busy", busy.v1), time.time() - 1, "rate_limit", "an earlier rest, just over")
        health.close()
        started = [
            subprocess.Popen([sys.executable, "-c", SCRIPT, str(file), busy.v1], stderr=subprocess.PIPE, text=True)
            for _ in range(10)
        ]
        assert [process.communicate()[1] for process in started] == [""] * 10
        assert len(busy.chats) == 1
