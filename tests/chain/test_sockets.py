"""The chain over real sockets and the real wire: every fault of a server ends with the next link's answer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from agentx.chain.health import Health
from agentx.chain.walk import Answer, Chain
from agentx.config.links import Link, Provider
from agentx.testing import faults
from agentx.testing.server import FaultServer
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


def test_a_refused_port_is_passed_over() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with FaultServer() as good:
            answers = ask(link_to("bad", f"http://127.0.0.1:{port}/v1"), link_to("good", good.v1), calls=20)
            assert [answer.link.name for answer in answers] == ["good"] * 20


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

async def nap(seconds):
    await asyncio.sleep(min(seconds, 0.2))  # so it looks often whether another one found out more

async def run():
    async with httpx.AsyncClient(trust_env=False) as client:
        health = Health(Path(sys.argv[1]), environ={})
        links = [Link(provider=provider, model="scripted", name="busy")]
        wire = OpenAIWire(provider, client, lambda: None)
        most = float(sys.argv[3])
        chain = Chain(links, wires=lambda link: wire, health=health, sleep=nap, max_wait_seconds=most)
        try:
            print((await chain.ask(prepare)).reply.message.text)
        except ChainExhausted as error:
            print(error.kind)
        health.close()

asyncio.run(run())
"""


def ten_processes(file: Path, url: str, max_wait_seconds: int) -> list[str]:
    """What ten processes say that ask the link at *url*, all at once, just when it has rested."""
    health = Health(file, environ={})
    health.rest(link_to("busy", url), time.time() - 1, "rate_limit", "an earlier rest, just over")
    health.close()
    command = [sys.executable, "-c", SCRIPT, str(file), url, str(max_wait_seconds)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(10)
    ]
    said = [process.communicate() for process in started]
    assert [errors for _, errors in said] == [""] * 10
    return [out.strip() for out, _ in said]


def test_of_ten_processes_one_asks_when_a_rest_is_over(tmp_path: Path) -> None:
    """And what it hears is known to the others: they do not ask at all."""
    with FaultServer(schedule=faults.always(faults.rate_limited(3600))) as busy:
        assert ten_processes(tmp_path / "health.db", busy.v1, 0) == ["chain_exhausted"] * 10
        assert len(busy.chats) == 1


def test_ten_processes_that_wait_ask_once_for_each_rest(tmp_path: Path) -> None:
    """The first rest ends with another refusal, which one of them hears; after the second all get their answer."""
    with FaultServer(schedule=faults.first(1, faults.rate_limited(1))) as busy:
        assert ten_processes(tmp_path / "health.db", busy.v1, 600) == ["Hello."] * 10
        assert [seen.fault is not None for seen in busy.chats] == [True] + [False] * 10
