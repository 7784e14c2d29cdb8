"""The windows alone, as a program uses them: async, with its own HTTP client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import httpx
import pytest

import agentx.windows
from agentx.config.links import Link, Provider
from agentx.errors import UsageError
from agentx.testing.server import FaultServer
from agentx.windows import Window, WindowRegistry, link_to, open_registry


def test_the_example_in_the_documentation_runs(home: Any) -> None:
    assert agentx.windows.__doc__ is not None
    code = "\n".join(line for line in agentx.windows.__doc__.splitlines() if line.startswith("    ") or not line)
    with FaultServer(face="ollama", models=["qwen3:14b"], window=16_384, loaded=True) as server:
        environ = home.environ | {"OLLAMA_HOST": server.url}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=environ,
            cwd=home.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("16384 served GET /api/ps models[].context_length\n", "")


def test_a_registry_needs_a_client_and_nothing_else(tmp_path: Path) -> None:
    """The client is the caller's: it is not closed, and no other is made."""

    async def go(url: str) -> tuple[Window, Window]:
        provider = Provider(name="mine", card="openai-compatible", wire="openai", base_url=url, self_hosted=True)
        link = Link(provider=provider, model="m", name="mine/m")
        async with httpx.AsyncClient() as client:
            registry: WindowRegistry = open_registry(client=client, environ={"AGENTX_HOME": str(tmp_path)})
            before = registry.window(link)
            await registry.refresh([link])
            assert not client.is_closed
            return before, registry.window(link)

    with FaultServer(face="vllm", models=["m"], window=20_000) as server:
        before, after = asyncio.run(go(server.v1))
    assert (before.source, after.source, after.size) == ("assumed", "served", 20_000)


def test_a_name_means_what_it_means_to_the_command(home: Any) -> None:
    home.configure({"providers": {"box": {"card": "vllm", "base_url": "http://127.0.0.1:1/v1"}}})
    link = link_to("box/m", window=9_000, environ=home.environ, folder=home.workspace)
    assert (link.name, link.window, link.provider.base_url) == ("box/m", 9_000, "http://127.0.0.1:1/v1")
    with pytest.raises(UsageError):
        link_to("nobody/m", environ=home.environ, folder=home.workspace)


def test_importing_it_loads_nothing() -> None:
    program = (
        "import sys\nimport agentx.windows\n"
        "heavy = {'litellm', 'pydantic', 'httpx', 'asyncio', 'yaml', 'json'} & set(sys.modules)\n"
        "assert not heavy, heavy\nassert sorted(agentx.windows.__all__) == sorted(agentx.windows.ROOMS)\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(AttributeError):
        _ = getattr(agentx.windows, "nothing")  # noqa: B009
