"""A running job is light: what it loads, and what it takes of the machine's memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Hang, after
from agentx.testing.server import FaultServer

MOST_MEGABYTES = 80


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_job_on_an_httpx_wire_takes_less_than_80_megabytes_and_never_loads_litellm(
    home: Any, until: Any
) -> None:
    twelve_notes(home.workspace)
    with FaultServer(NoteReader(), models=["m"], window=32_000, schedule=after(11, Hang())) as server:
        home.configure(
            {
                "chains": {"c": [{"model": "box/m"}]},
                "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
            }
        )
        job = home.run("run", "-d", TASK.format(last=12)).out.strip()
        until(lambda: len(server.chats) >= 12)
        process = Path("/proc") / str(home.run("show", "--json", job).json["pid"])
        peak = next(line for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM"))
        loaded = (process / "maps").read_text()
        home.run("stop", "--now", job)
    assert int(peak.split()[1]) / 1024 < MOST_MEGABYTES
    assert "tiktoken" not in loaded
    assert "tokenizers" not in loaded
