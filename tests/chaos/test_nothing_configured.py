"""No settings at all: keys in the environment, then local servers on their usual ports."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from agentx.testing.brain import NoteReader, Script
from agentx.testing.conversations import note_task, twelve_notes
from agentx.testing.faces import Face
from agentx.testing.server import FaultServer

pytestmark = pytest.mark.usefixtures("usual_ports")

USUAL: tuple[tuple[Face, int], ...] = (
    ("ollama", 11_434),
    ("lmstudio", 1_234),
    ("llamacpp", 8_080),
    ("vllm", 8_000),
)


def usual(stack: ExitStack, face: Face, port: int, brain: Any = None, **more: Any) -> FaultServer:
    try:
        return stack.enter_context(FaultServer(brain or Script(["done"] * 9), face=face, port=port, **more))
    except OSError:
        pytest.skip(f"port {port} is taken")


def test_every_local_server_that_answers_is_in_the_chain(home: Any) -> None:
    with ExitStack() as stack:
        for face, port in USUAL:
            usual(stack, face, port, models=[f"{face}-model"], window=16_384, loaded=True)
        done = home.run("run", "--dry-run", "--json", "hello")
    assert done.code == 0, done.err
    rows = {row["link"]: row["window"] for row in done.json["links"]}
    names = ("ollama/ollama-model:latest", "lmstudio/lmstudio-model", "llamacpp/llamacpp-model", "vllm/vllm-model")
    assert list(rows) == list(names)
    assert set(rows.values()) == {16_384}


def test_a_key_comes_first_and_the_local_server_takes_over(home: Any) -> None:
    """The provider of the key cannot be reached: nothing leaves this machine, and the night goes on."""
    codes = twelve_notes(home.workspace, count=3, words=60)
    home.extra = {
        "OPENAI_API_KEY": "sk-none",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    with ExitStack() as stack:
        server = usual(stack, *USUAL[0], NoteReader(), models=["small"], window=8_192, loaded=True)
        done = home.run("run", "--json", note_task(3))
    assert done.code == 0, done.err
    assert all(code in done.events[-1]["answer"] for code in codes)
    started, (switched,) = done.of("job.started")[0], done.of("link.switched")
    assert started["chain"][0].startswith("openai/")
    assert (started["chain"][1:], switched["to"]) == (["ollama/small:latest"], "ollama/small:latest")
    assert len(server.loads) == 1
