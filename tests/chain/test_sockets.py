"""The chain over real sockets and the real wire: every fault of a server ends with the next link's answer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx

from agentx.chain.health import Health
from agentx.chain.walk import Answer, Chain
from agentx.config.links import Link, Provider
from agentx.events import Event, LinkFailed
from agentx.testing import Call, Script, faults
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


def failures(*links: Link, patience: float = 30) -> list[LinkFailed]:
    """The failures that were told while *links* were asked once; the last of them answered."""
    events: list[Event] = []
    (answer,) = ask(*links, patience=patience, tell=events.append)
    assert answer.link.name == links[-1].name
    return [event for event in events if isinstance(event, LinkFailed)]


def ask(
    *links: Link, calls: int = 1, patience: float = 30, tell: Callable[[Event], object] | None = None
) -> list[Answer]:
    timers = Timers(connect=20, first=patience, idle=patience, total=60)

    async def run() -> list[Answer]:
        async with httpx.AsyncClient(trust_env=False) as client:

            def wire(link: Link) -> Wire:
                return OpenAIWire(link.provider, client, lambda: None)

            chain = Chain(links, wires=wire, timers=timers, sleep=no_sleep, random=lambda: 0.0, tell=tell)
            return [await chain.ask(prepare) for _ in range(calls)]

    return asyncio.run(run())


def test_a_refused_port_is_passed_over() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with FaultServer() as good:
            answers = ask(link_to("bad", f"http://127.0.0.1:{port}/v1"), link_to("good", good.v1), calls=20)
            assert [answer.link.name for answer in answers] == ["good"] * 20


def test_a_call_of_a_tool_that_was_not_offered_is_a_broken_reply() -> None:
    with FaultServer(Script([Call("browse")] * 2)) as bad, FaultServer() as good:
        (answer,) = ask(link_to("bad", bad.v1), link_to("good", good.v1))
        assert (answer.link.name, answer.reply.message.tool_calls, len(bad.chats)) == ("good", (), 2)


def test_with_nobody_else_to_ask_a_model_that_insists_on_an_unknown_tool_is_heard() -> None:
    """Whoever runs the tools can tell it which there are."""
    with FaultServer(Script([Call("browse")] * 2)) as lone:
        (answer,) = ask(link_to("lone", lone.v1))
        assert ([call.name for call in answer.reply.message.tool_calls], len(lone.chats)) == (["browse"], 2)


def test_half_a_call_is_told_in_words_and_not_in_its_own() -> None:
    with FaultServer(Script([Call("look", '{"a')] * 2)) as bad, FaultServer() as good:
        told = failures(link_to("bad", bad.v1), link_to("good", good.v1))
        assert [failed.message for failed in told] == [
            "scripted: the arguments of `look` are not one JSON object"
        ] * 2


@contextmanager
def half_a_refusal() -> Generator[tuple[str, list[bytes]]]:
    """A server that answers 429 and never sends the words it announced: its address, and what it was asked."""
    asked: list[bytes] = []
    open_ones: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                open_ones.append(connection)
                asked.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 429 Too Many\r\nretry-after: 90\r\ncontent-length: 99\r\n\r\n{")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in open_ones:
                connection.close()


def test_a_refusal_whose_words_never_come_is_what_its_status_says() -> None:
    """Whether the timers of the attempt end before the patience with those words, or after."""
    for patience in (0.5, 30.0):
        with half_a_refusal() as (url, asked), FaultServer() as good:
            (told,) = failures(link_to("bad", url), link_to("good", good.v1), patience=patience)
            assert (told.class_, told.status, told.retry_at is not None) == ("rate_limit", 429, True)
            assert len(asked) == 1


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
