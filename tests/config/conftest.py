"""A home and a project in a fresh folder, and the two ways in: `load` and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agentx.cli.config import config as command
from agentx.cli.session import Session
from agentx.config.load import Config, load
from agentx.config.paths import Paths, paths


@dataclass(frozen=True)
class Place:
    """Writes files and loads what they say. The project is the workspace."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def paths(self) -> Paths:
        return paths(self.environ)

    @property
    def user_file(self) -> Path:
        return self.paths.user_file

    def user(self, text: str) -> None:
        write(self.user_file, text)

    def said_here(self, text: str) -> None:
        write(self.project / "agentx.yaml", text)

    def card(self, name: str, text: str) -> Path:
        file = self.paths.config / "providers" / f"{name}.yaml"
        write(file, text)
        return file

    def load(self, *overrides: str, environ: Mapping[str, str] | None = None) -> Config:
        return load(self.paths, self.project, self.environ | dict(environ or {}), overrides)

    def run(
        self, *arguments: str, overrides: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
    ) -> Result:
        """`agentx config ARGUMENTS`; an error of ours is in `result.exception`."""
        session = Session(self.environ | dict(environ or {}), self.project, overrides)
        return CliRunner().invoke(command, arguments, obj=session, env={"COLUMNS": "10000"})


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path, {"AGENTX_HOME": str(tmp_path / "home")})
    found.project.mkdir()
    return found
