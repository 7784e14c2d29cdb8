"""Environments for the peers of the benches: made under `.cache/`, and anew when what is pinned changes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache"
NEWEST_MINOR = 15


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def python_with(pinned: Sequence[str], name: str, *, minor: int = 0) -> Path | None:
    """A Python that has the packages *pinned*, in the environment *name*; None where that cannot be made.

    It is of at least version 3.*minor*.
    """
    folder = CACHE / name
    python, mark = folder / "bin" / "python", folder / "pinned"
    if mark.is_file() and mark.read_text() == "\n".join(pinned):
        return python
    base = sys.executable if sys.version_info >= (3, minor) else _newer(minor)
    if base is None:
        say(f"{', '.join(pinned)}: there is no Python 3.{minor} or newer; left out")
        return None
    say(f"making {folder} with {', '.join(pinned)} ...")
    made = subprocess.run([base, "-m", "venv", "--clear", folder]).returncode == 0
    if not made or subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned]).returncode:
        say(f"{', '.join(pinned)} cannot be installed; left out")
        return None
    mark.write_text("\n".join(pinned))
    return python


def _newer(minor: int) -> str | None:
    """Python 3.*minor* or a newer one, on the path or where pyenv keeps them."""
    for number in range(minor, NEWEST_MINOR):
        kept = Path.home().glob(f".pyenv/versions/3.{number}.*/bin/python")
        for python in (shutil.which(f"python3.{number}"), *map(str, sorted(kept))):
            if python and subprocess.run([python, "-c", "pass"], capture_output=True).returncode == 0:
                return python  # one on the path may only stand for one that is not switched on
    return None
