"""The wire that starts its own server: on real sockets, against a program that answers like `llama-server`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from agentx.config.links import Link
from agentx.errors import RequestFailed
from agentx.wires.local import LocalWire
from agentx.wires.make import client, wire_for
from agentx.wires.messages import Message, Request, Timers

T = TypeVar("T")
ASKED = Request(model="tiny", messages=(Message(role="user", text="hello"),), max_tokens=16)
TIMERS = Timers(connect=5, first=20, idle=20, total=60)


def value_of(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


class Machine:
    """A home for the server's log, and a way to drive wires to their end."""

    def __init__(self, folder: Path) -> None:
        self.environ = {
            "PATH": os.environ["PATH"],
            "AGENTX_HOME": str(folder / "home"),
            "OPENAI_API_KEY": "must not be passed on",
        }
        self.logs = folder / "home" / "cache" / "logs"

    def run(self, links: list[Link], act: Callable[..., Awaitable[T]]) -> T:
        async def story() -> T:
            async with client() as http:
                wires = [LocalWire(link, http, self.environ) for link in links]
                try:
                    return await act(*wires)
                finally:
                    for wire in wires:
                        await wire.close()

        return asyncio.run(story())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def arguments_told(wire: LocalWire) -> list[str]:
    """The fake answers with its own arguments."""
    reply = await wire.ask(ASKED, TIMERS)
    arguments: list[str] = json.loads(reply.message.text)
    return arguments


def test_the_first_request_starts_the_server_with_the_window_of_the_link(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link]
) -> None:
    link = local_link(2304, server=str(fake_server()), threads=3, arguments="--mlock")

    async def act(wire: LocalWire) -> list[str]:
        assert wire.served_address is None
        assert await wire.count(ASKED) is None
        told = await arguments_told(wire)
        assert wire.served_address == f"http://127.0.0.1:{value_of(told, '--port')}"
        return told

    arguments = machine.run([link], act)
    assert value_of(arguments, "-c") == "2304"
    assert value_of(arguments, "--parallel") == "1"
    assert value_of(arguments, "-t") == "3"
    assert value_of(arguments, "--host") == "127.0.0.1"
    assert "--mlock" in arguments


def test_two_windows_are_two_servers_and_both_end_with_the_job(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link]
) -> None:
    program = str(fake_server())
    links = [local_link(2304, server=program), local_link(None, server=program)]

    async def act(*wires: LocalWire) -> list[str | None]:
        told = await asyncio.gather(*(arguments_told(wire) for wire in wires))
        assert [value_of(arguments, "-c") for arguments in told] == ["2304", "4096"]
        return [wire.served_address for wire in wires]

    addresses = machine.run(links, act)
    assert len(set(addresses)) == 2
    for address in addresses:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/health")
    assert list(machine.logs.iterdir()) == []


def test_requests_at_once_share_one_server(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link]
) -> None:
    async def act(wire: LocalWire) -> set[str]:
        told = await asyncio.gather(*(arguments_told(wire) for _ in range(3)))
        return {value_of(arguments, "--port") for arguments in told}

    assert len(machine.run([local_link(server=str(fake_server()))], act)) == 1


def test_the_server_gets_no_key_of_a_provider(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link], tmp_path: Path
) -> None:
    program = fake_server(before=f"open({str(tmp_path / 'environ')!r}, 'w').write(json.dumps(dict(os.environ)))")
    machine.run([local_link(server=str(program))], arguments_told)
    environ = json.loads((tmp_path / "environ").read_text())
    assert "OPENAI_API_KEY" not in environ
    assert environ["PATH"] == os.environ["PATH"]
    assert len(environ["LLAMA_API_KEY"]) >= 24


def test_a_server_that_dies_in_the_middle_is_a_failure_and_is_started_again(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link], tmp_path: Path
) -> None:
    mark = tmp_path / "died"
    at_chat = (
        f"if not os.path.exists({str(mark)!r}):\n"
        f"            open({str(mark)!r}, 'w').close(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    link = local_link(server=str(fake_server(at_chat=at_chat)))

    async def act(wire: LocalWire) -> list[str]:
        with pytest.raises(RequestFailed) as caught:
            await wire.ask(ASKED, TIMERS)
        assert "`llama-server` died: it was killed" in caught.value.message
        assert caught.value.phase in ("headers", "connect")
        assert caught.value.error_class is None
        assert wire.served_address is None
        return await arguments_told(wire)

    assert machine.run([link], act)


@pytest.mark.parametrize(
    ("before", "said", "error_class"),
    [
        ("os.kill(os.getpid(), signal.SIGILL)", "this processor cannot run it", "not_found"),
        (
            "print('error loading model: tensor data is not within the file bounds'); sys.exit(1)",
            "it cannot load",
            "not_found",
        ),
        ("print('ggml: failed to allocate buffer of size 9999'); sys.exit(1)", "not enough memory", "overloaded"),
        ("print('error: invalid argument: --parallel'); sys.exit(1)", "it does not know an argument", "not_found"),
        ("print('something else'); sys.exit(3)", "it ended with exit code 3: something else", None),
    ],
    ids=["SIGILL", "model", "memory", "argument", "else"],
)
def test_a_server_that_cannot_start_says_why(
    before: str,
    said: str,
    error_class: str | None,
    machine: Machine,
    fake_server: Callable[..., Path],
    local_link: Callable[..., Link],
) -> None:
    async def act(wire: LocalWire) -> RequestFailed:
        with pytest.raises(RequestFailed) as caught:
            await wire.ask(ASKED, TIMERS)
        return caught.value

    error = machine.run([local_link(server=str(fake_server(before)))], act)
    assert f"local/tiny: `llama-server` died: {said}" in error.message
    assert (error.phase, error.error_class) == ("connect", error_class)
    assert error.hint


def test_a_port_that_was_taken_meanwhile_is_tried_again_elsewhere(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link], tmp_path: Path
) -> None:
    mark = tmp_path / "once"
    before = (
        f"if not os.path.exists({str(mark)!r}):\n"
        f"    open({str(mark)!r}, 'w').close(); print(\"couldn't bind HTTP server socket\"); sys.exit(1)"
    )
    assert machine.run([local_link(server=str(fake_server(before)))], arguments_told)


def test_a_server_that_never_answers_is_a_time_out_with_its_log_named(
    machine: Machine, fake_server: Callable[..., Path], local_link: Callable[..., Link]
) -> None:
    link = local_link(server=str(fake_server("import time; time.sleep(60)")), start_seconds=0.2)

    async def act(wire: LocalWire) -> RequestFailed:
        with pytest.raises(RequestFailed) as caught:
            await wire.ask(ASKED, TIMERS)
        return caught.value

    error = machine.run([link], act)
    assert (error.phase, error.timed_out) == ("connect", True)
    assert str(machine.logs) in (error.hint or "")


def test_the_card_local_gets_this_wire(local_link: Callable[..., Link]) -> None:
    async def made() -> object:
        async with client() as http:
            return wire_for(local_link(), http, {})

    assert isinstance(asyncio.run(made()), LocalWire)
