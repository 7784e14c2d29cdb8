"""Shipped data: packed into the wheel under `agentx/data`, next to `pyproject.toml` in a checkout."""

from __future__ import annotations

from importlib.abc import Traversable
from importlib.resources import files
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def shipped(name: str) -> Traversable:
    """The shipped file or folder *name*, for example `windows.yaml` or `providers`.

    Raises FileNotFoundError when the installation lacks it. A folder that only happens to lie next to the
    package (`site-packages/providers`) is never taken: a checkout is known by its `pyproject.toml`.
    """
    packed = files("agentx") / "data" / name
    if packed.is_file() or packed.is_dir():
        return packed
    if (CHECKOUT / "pyproject.toml").is_file():
        return CHECKOUT / name
    raise FileNotFoundError(f"agentx was installed without its data file {name!r}")
