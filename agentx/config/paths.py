"""Where agentx keeps things: config, state and cache, moved at once by `AGENTX_HOME`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    """Folders; none is made before something is written to it."""

    config: Path
    state: Path
    cache: Path

    @property
    def user_file(self) -> Path:
        return self.config / "agentx.yaml"

    @property
    def jobs(self) -> Path:
        return self.state / "jobs"

    @property
    def health(self) -> Path:
        return self.state / "health.db"

    @property
    def windows(self) -> Path:
        return self.state / "windows.json"

    @property
    def catalogue_index(self) -> Path:
        """Where the entries stand in LiteLLM's catalogue."""
        return self.cache / "catalogue.index"

    @property
    def models(self) -> Path:
        """Model files of the embedded server."""
        return self.cache / "models"


def paths(environ: Mapping[str, str]) -> Paths:
    """`AGENTX_HOME` when it is set, else the platform's own folders."""
    if home := environ.get("AGENTX_HOME"):
        root = Path(home).expanduser().absolute()
        return Paths(root / "config", root / "state", root / "cache")
    from platformdirs import PlatformDirs  # 30 ms that `AGENTX_HOME` spares

    dirs = PlatformDirs("agentx", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_state_path, dirs.user_cache_path)
