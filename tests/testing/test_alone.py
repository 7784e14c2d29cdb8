from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import httpx
import pytest

from agentx.testing.named import NAMED


@contextmanager
def started(*options: str) -> Generator[str]:
    """The server as a process of its own: its address. Ctrl-C ends it, in silence."""
    command = [sys.executable, "-W", "error", "-m", "agentx.testing", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == ""


def test_the_server_runs_by_itself_and_ends_with_ctrl_c(client: httpx.Client) -> None:
    with started("--face", "llamacpp", "--window", "2304") as url:
        assert client.get(f"{url}/props").json()["default_generation_settings"]["n_ctx"] == 2_304


def test_it_fails_as_it_is_told(client: httpx.Client) -> None:
    """Here twice, then it is well."""
    ask = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}
    with started("--fault", "retry-after-130", "--times", "2") as url:
        answers = [client.post(f"{url}/v1/chat/completions", json=ask) for _ in range(3)]
    assert [(one.status_code, one.headers.get("retry-after")) for one in answers] == [
        (429, "130"), (429, "130"), (200, None),
    ]  # fmt: skip


def test_it_may_not_be_there_at_all(client: httpx.Client) -> None:
    with started("--fault", "refused") as url, pytest.raises(httpx.ConnectError):
        client.get(f"{url}/v1/models")


def test_its_help_names_every_fault() -> None:
    command = [sys.executable, "-m", "agentx.testing", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [name for name, named in NAMED.items() if f"\n  {name:<18} {named.says}\n" not in said] == []
