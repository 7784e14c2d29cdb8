"""A toolbox in a workspace of its own, and a way to call it as a model does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentx.events import Event
from agentx.tools.find import find_ripgrep
from agentx.tools.tool import Limits
from agentx.tools.toolbox import Result, Toolbox
from agentx.wires.messages import ToolCall

SECRET = "sk-test-7f3a9c1e5b2d8046"
QUICK = Limits(grace=0.3, flood_bytes=2_000_000, head_chars=200, tail_chars=400)


@dataclass
class Bench:
    """A toolbox and what it was told. `call` runs one tool and closes the box; `calls` runs several in a loop."""

    workspace: Path
    output: Path
    limits: Limits
    environ: dict[str, str]
    rg: Path | None
    told: list[Event] = field(default_factory=list[Event])
    stored: dict[str, str] = field(default_factory=dict[str, str])

    def box(self) -> Toolbox:
        return Toolbox(
            self.workspace,
            self.output,
            environ=self.environ,
            secrets=lambda: [SECRET],
            restore=lambda id_, offset: self.stored[id_][offset:],
            restored_seq=lambda id_: int(id_[1:]),
            tell=self.told.append,
            rg=self.rg,
            limits=self.limits,
        )

    def call(self, name: str, **arguments: Any) -> Result:
        (result,) = self.calls((name, arguments))
        return result

    def raw(self, name: str, arguments: str) -> Result:
        return asyncio.run(self.box().run(ToolCall("c1_1", name, arguments)))

    def calls(self, *calls: tuple[str, dict[str, Any]]) -> list[Result]:
        async def all_of_them() -> list[Result]:
            box = self.box()
            try:
                return [
                    await box.run(ToolCall(f"c1_{number}", name, json.dumps(arguments)))
                    for number, (name, arguments) in enumerate(calls, 1)
                ]
            finally:
                await box.close()

        return asyncio.run(all_of_them())

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    workspace = tmp_path / "work"
    workspace.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENAI_API_KEY": SECRET, "LANG": "C.UTF-8"}
    return Bench(workspace, tmp_path / "output", QUICK, environ, find_ripgrep(os.environ, sys.executable))


@pytest.fixture
def secret() -> str:
    return SECRET
