"""What a waiting job notices of the world around it: its settings or cards were changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agentx.chain.vigil import News
from agentx.config.links import Link
from agentx.config.load import Config, project_file
from agentx.config.paths import Paths
from agentx.errors import ConfigError, UsageError
from agentx.events import Event, Warned

Stamp = tuple[tuple[str, int, int], ...]


class Watch:
    """Looks at the files that links are made of. `config` and `links` are those that count now."""

    def __init__(
        self,
        config: Config,
        links: Sequence[Link],
        *,
        read: Callable[[], Config],
        chain: str | None,
        files: Callable[[], Sequence[Path]],
        tell: Callable[[Event], object],
        changed: Callable[[], object],
    ) -> None:
        """*read* loads the configuration anew, *chain* is the one that was asked for. *changed* is called when
        other links count from now on."""
        self.config = config
        self.links = tuple(links)
        self._read = read
        self._chain = chain
        self._files = files
        self._tell = tell
        self._changed = changed
        self._seen = self._stamp()

    def look(self) -> News | None:
        """The links as they are now, when a file was changed since the last look. One that is wrong is said, and
        changes nothing."""
        stamp = self._stamp()
        before, self._seen = self._seen, stamp
        if stamp == before:
            return None
        name = Path(next(iter({*stamp} ^ {*before}))[0]).name
        try:
            config = self._read()
            links = config.chain(self._chain)
        except (ConfigError, UsageError) as error:
            self._tell(
                Warned(message=f"what was changed in {name} does not count: {error.message}", hint=error.hint)
            )
            return None
        if not links:  # the chain was made of what was there when the job began
            return None
        self.config, self.links = config, links
        self._changed()
        return News(f"{name} was changed", links)

    def _stamp(self) -> Stamp:
        found: list[tuple[str, int, int]] = []
        for file in self._files():
            try:
                known = file.stat()
            except OSError:
                continue
            found.append((str(file), known.st_mtime_ns, known.st_size))
        return tuple(found)


def config_files(paths: Paths, workspace: Path) -> list[Path]:
    """The files that say which links there are and how they are reached."""
    try:
        project = project_file(workspace, paths.user_file)
    except ConfigError:
        project = None
    cards = sorted((paths.config / "providers").glob("*.yaml"))
    return [paths.user_file, *([project] if project else []), *cards]
