"""Arrows between rooms point one way (DESIGN.md section 10), and what is slow to load stays behind its door."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "agentx"
LEVELS = {
    "cli": 0, "jobs": 1, "agent": 2, "chain": 3, "context": 3, "tools": 3, "windows": 4, "wires": 5, "config": 6,
    "journal": 7, "events": 7, "errors": 7,
}  # fmt: skip
PEERS = {"chain", "context", "tools"}


def imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def room(module: str) -> str:
    return module.split(".")[1] if module.startswith("agentx.") else ""


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_point_downward() -> None:
    wrong: list[str] = []
    for file in files():
        own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for line, module in imports(file):
            other = room(module)
            if own not in LEVELS or other not in LEVELS or own == other:
                continue
            if LEVELS[other] < LEVELS[own] or (own in PEERS and other in PEERS):
                wrong.append(f"{file.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


def test_the_test_kit_is_used_by_the_command_line_only() -> None:
    users = {
        file.relative_to(PACKAGE).parts[0]
        for file in files()
        for _, module in imports(file)
        if room(module) == "testing"
    }
    assert users <= {"cli", "testing"}


def test_litellm_is_imported_in_one_file() -> None:
    users = [
        str(file.relative_to(PACKAGE))
        for file in files()
        if any(module.split(".")[0] == "litellm" for _, module in imports(file))
        or 'import_module("litellm' in file.read_text()
    ]
    assert users == ["wires/litellm.py"]


def test_broad_excepts_stand_at_five_doors() -> None:
    doors: set[str] = set()
    for file in files():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or ast.unparse(node.type) == "Exception"
            ):
                doors.add(str(file.relative_to(PACKAGE)))
    assert doors == {"chain/single.py", "chain/visit.py", "cli/main.py", "jobs/run.py", "tools/toolbox.py"}


@pytest.mark.parametrize("arguments", [["--help"], ["ps"], ["run", "--help"], ["--version"]])
def test_light_commands_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    program = (
        "import sys\nfrom agentx.cli.main import _run\n"
        f"code = _run({arguments!r})\n"
        "heavy = {'litellm', 'rich', 'pydantic', 'httpx', 'asyncio', 'yaml'} & set(sys.modules)\n"
        "sys.stderr.write('heavy:' + ','.join(sorted(heavy)))\nsys.exit(code)\n"
    )
    environ = {"PATH": os.environ["PATH"], "AGENTX_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "heavy:")


def test_importing_any_module_does_nothing() -> None:
    """No prints, no files, no network: each module is imported in a fresh process with all of that forbidden."""
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in files()
        if file.name != "__main__.py"
    ]
    program = (
        "import importlib, socket, sys\n"
        "def refuse(*a, **k): raise SystemExit('network at import')\n"
        "socket.socket.connect = refuse\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "sys.exit('litellm loaded' if 'litellm' in sys.modules else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
