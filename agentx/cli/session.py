"""What every command is given: where it stands, what was said on the command line, and how to load the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentx.config.paths import Paths, paths

if TYPE_CHECKING:  # pydantic loads only for commands that read the configuration
    from agentx.config.load import Config


@dataclass(frozen=True, slots=True)
class Session:
    """`overrides` are the `-c KEY=VALUE` of the command line, in order."""

    environ: Mapping[str, str]
    cwd: Path
    overrides: tuple[str, ...] = ()

    def paths(self) -> Paths:
        return paths(self.environ)

    def config(self, workspace: Path | None = None) -> Config:
        """The configuration as seen from *workspace* (the current folder by default). Raises ConfigError."""
        from agentx.config.load import load

        return load(self.paths(), workspace or self.cwd, self.environ, self.overrides)
