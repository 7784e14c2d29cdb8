"""The wheel as a user gets it: built, installed in a new environment, used in a folder that is not ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment that has the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=True)
    subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", str(wheel)], check=True, capture_output=True
    )
    return folder / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A user's folder with things of the same names as ours: none of them may be taken."""
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "__init__.py").write_text("raise SystemExit('the wrong providers')")
    (tmp_path / "providers" / "openai.yaml").write_text("nonsense: [")
    (tmp_path / "windows.yaml").write_text("nonsense: [")
    return tmp_path


def run(bin_folder: Path, folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    bare = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(folder), "AGENTX_HOME": str(folder / "home")}
    return subprocess.run(
        [bin_folder / "agentx", *arguments],
        cwd=folder,
        env=bare | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if name.startswith("agentx/")}
    cards = {f"agentx/data/providers/{card.name}" for card in (ROOT / "providers").glob("*.yaml")}
    sources = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "agentx").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert packed == cards | sources | {"agentx/data/windows.yaml"}
    assert {name.split("/")[0] for name in names} == {"agentx", "agentx-0.1.0.dist-info"}


def test_an_installed_agentx_says_its_windows(installed: Path, elsewhere: Path) -> None:
    done = run(installed, elsewhere, "windows", "--json", OPENAI_API_KEY="sk-none")
    assert done.returncode == 0, done.stderr
    links = json.loads(done.stdout)["links"]
    assert links[0]["provider"] == "openai"
    assert links[0]["window"] > 100_000


def test_an_installed_agentx_runs_the_demo(installed: Path, elsewhere: Path) -> None:
    done = run(installed, elsewhere, "demo")
    assert done.returncode == 0, done.stderr
    assert "scripted" in done.stderr


def test_an_installed_agentx_is_also_a_module(installed: Path, elsewhere: Path) -> None:
    (elsewhere / "providers" / "__init__.py").write_text("")
    done = subprocess.run(
        [installed / "python", "-m", "agentx", "--version"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "agentx 0.1.0\n")


def test_an_installed_chain_survives_every_fault(installed: Path, elsewhere: Path) -> None:
    done = run(installed, elsewhere, "doctor", "--fault", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"] is True
