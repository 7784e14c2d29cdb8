"""The chain alone, as a program uses it: by its public names, without an agent and without a configuration."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import agentx.chain
from agentx.chain import Answer, Chain, Link, Message, Request, link_at, open_wires
from agentx.testing import FaultServer

ROOT = Path(__file__).parents[2]
MOST_MEGABYTES = 40


def python(program: str, environ: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, env=dict(environ), cwd=folder, capture_output=True, text=True, check=False)


def test_the_example_in_the_documentation_runs(home: Any) -> None:
    assert agentx.chain.__doc__ is not None
    code = "\n".join(line for line in agentx.chain.__doc__.splitlines() if line.startswith("    ") or not line)
    with FaultServer(face="ollama", models=["qwen3:14b"]) as server:
        environ = home.environ | {"OLLAMA_HOST": server.url}
        done = python(textwrap.dedent(code), environ, home.workspace)
    assert (done.stdout, done.stderr) == ("ollama/qwen3:14b Hello.\n", "")


async def prepare(link: Link, reason: str) -> Request:
    return Request(model=link.model, messages=[Message(role="user", text="hello")])


def test_a_key_is_read_from_the_given_environment_at_each_request() -> None:
    environ: dict[str, str] = {}

    async def go(url: str) -> Answer:
        link = link_at(url, "scripted", api_key_env="MY_KEY")
        async with open_wires(environ) as wires:
            chain = Chain([link], wires=wires)
            environ["MY_KEY"] = "open-sesame"
            return await chain.ask(prepare)

    with FaultServer(key="open-sesame") as server:
        answer = asyncio.run(go(server.v1 + "/"))
        assert answer.link.name == f"127.0.0.1:{server.port}/scripted"
        assert answer.reply.message.text == "Hello."


def test_a_link_that_is_out_is_asked_again_when_its_key_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a `Health` of one's own, too."""
    monkeypatch.setenv("MY_KEY", "an-old-one")

    async def go(bad: str, good: str) -> list[str]:
        async with open_wires() as wires:
            links = [link_at(bad, "scripted", name="a", api_key_env="MY_KEY"), link_at(good, "scripted", name="b")]
            chain = Chain(links, wires=wires)
            before = await chain.ask(prepare)
            monkeypatch.setenv("MY_KEY", "open-sesame")
            return [before.link.name, (await chain.ask(prepare)).link.name]

    with FaultServer(key="open-sesame") as locked, FaultServer() as other:
        assert asyncio.run(go(locked.v1, other.v1)) == ["b", "a"]


def test_importing_it_loads_nothing() -> None:
    program = (
        "import sys\nimport agentx.chain\n"
        "heavy = {'litellm', 'pydantic', 'httpx', 'asyncio', 'yaml', 'json'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert sorted(agentx.chain.__all__) == sorted(sum(agentx.chain.ROOMS.values(), ()))\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(AttributeError):
        _ = getattr(agentx.chain, "nothing")  # noqa: B009


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", ["agentx.chain import Chain", "agentx.testing import FaultServer"])
def test_its_names_are_light(name: str, home: Any) -> None:
    """No HTTP client, no settings, nothing for a terminal; and no more than 40 MB of memory."""
    program = (
        f"from {name}\nimport sys\n"
        "heavy = {'litellm', 'pydantic', 'httpx', 'yaml', 'rich', 'click'} & set(sys.modules)\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]\n"
        "print(','.join(sorted(heavy)), int(peak) // 1024)\n"
    )
    done = python(program, home.environ | {"PYTHONWARNINGS": "ignore"}, home.workspace)
    assert done.returncode == 0, done.stderr
    heavy, peak = done.stdout.split(" ")
    assert (heavy, int(peak) <= MOST_MEGABYTES) == ("", True), done.stdout
