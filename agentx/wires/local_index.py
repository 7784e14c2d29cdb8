"""One wheel from the package index, by pip with the user's own settings, into a folder that goes away again."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

LOOK_EVERY_SECONDS = 0.2


class SourceFailed(Exception):
    """A source did not give what it should; whoever asked knows what that means. Never shown as it is."""


@contextmanager
def fetch_wheel(
    package: str,
    version: str,
    near: Path,
    size: int,
    *,
    progress: Callable[[str, int, int], None],
    pip: Sequence[str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[Path]:
    """The wheel of *package* in a temporary folder beside *near*, gone afterwards. Raises SourceFailed.

    Nothing is installed, built or imported, and no dependency is looked at. *size* (bytes) is for *progress*,
    which sees the growth of the folder.
    """
    near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=near) as name:
        folder = Path(name)
        command = [*(pip or pip_command()), "download", "--quiet", "--no-deps", "--no-cache-dir", "--no-input"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder / "got")]
        said = folder / "said"
        # pip keeps what it downloads in TMPDIR until it is whole: that is how growth shows, and where it goes away
        environ = os.environ | {"TMPDIR": name, "PYTHONWARNINGS": "ignore"}
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*command, f"{package}=={version}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environ,
            )
        try:
            while process.poll() is None:
                progress("index", _bytes_in(folder), size)
                sleep(LOOK_EVERY_SECONDS)
        finally:  # Ctrl-C: no pip is left behind
            if process.poll() is None:
                process.kill()
            process.wait()
        wheels = sorted((folder / "got").glob("*.whl"))
        if process.returncode != 0 or not wheels:
            raise SourceFailed(f"the package index has no {package} {version} for us: {_last_error(said)}")
        yield wheels[0]


def pip_command() -> list[str]:
    """How pip is called. Raises SourceFailed where there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise SourceFailed("there is no pip to ask the package index with (`python -m ensurepip` makes one)")


def _bytes_in(folder: Path) -> int:
    """Bytes of all files below *folder*, while pip makes and removes some of them."""
    total = 0
    for where, _, names in os.walk(folder):  # passes over folders that vanish
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(where) / name).stat().st_size
    return total


def _last_error(said: Path) -> str:
    lines = [line.strip() for line in said.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["pip said nothing"])[-1][:300]
