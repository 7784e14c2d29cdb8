"""From a model's name to its link, for programs that use the windows alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentx.config.links import Link
from agentx.config.load import load
from agentx.config.paths import Paths
from agentx.config.paths import paths as folders


def link_to(
    model: str,
    *,
    window: int | None = None,
    paths: Paths | None = None,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Link:
    """The link that `provider/model` means to `agentx windows` when it is started in *folder* (here).

    *window* is a setting of the caller's own. A link can also be made by hand, of `agentx.config.links`.
    Raises UsageError when there is no such provider, ConfigError when a file is wrong.
    """
    link = load(paths or folders(environ), folder or Path.cwd(), environ, ()).link(model)
    return replace(link, window=window) if window else link
