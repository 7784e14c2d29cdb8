"""Nothing outside the workspace is reached by any path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.tools.conftest import Bench


TOOLS: list[tuple[str, dict[str, str]]] = [
    ("read_file", {}),
    ("write_file", {"content": "evil"}),
    ("edit_file", {"old": "a", "new": "b"}),
    ("list_files", {"pattern": "*"}),
    ("search", {"pattern": "a"}),
]


@pytest.mark.parametrize(("name", "more"), TOOLS)
@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "a/../../outside.txt", "link", "link/x", "root/etc"]
)
def test_a_path_that_leads_out_is_refused(bench: Bench, name: str, more: dict[str, str], path: str) -> None:
    outside = bench.workspace.parent / "outside.txt"
    outside.write_text("a")
    (bench.workspace / "link").symlink_to(outside)
    (bench.workspace / "root").symlink_to("/proc/self/root")
    result = bench.call(name, path=path, **more)
    assert not result.ok
    assert result.text.startswith(f"`{path}` leads outside the workspace: refused")
    assert outside.read_text() == "a"


@pytest.mark.parametrize("path", ["", "  ", "a\nb", "a\0b", "loop", "x" * 5000])
def test_an_odd_path_is_refused_in_words(bench: Bench, path: str) -> None:
    (bench.workspace / "loop").symlink_to("loop")
    result = bench.call("read_file", path=path)
    assert not result.ok
    assert "Error" not in result.text


def test_an_absolute_path_into_the_workspace_is_understood(bench: Bench) -> None:
    path = bench.file("a.txt", "x")
    assert bench.call("read_file", path=str(path)).text == "1\tx"


def test_a_slash_too_many_brings_the_right_path(bench: Bench) -> None:
    bench.file("notes/a.txt", "x")
    text = bench.call("read_file", path="/notes/a.txt").text
    assert text.endswith("did you mean `notes/a.txt`? paths are relative to the workspace")


def test_a_workspace_behind_a_link_is_itself_inside(bench: Bench, tmp_path: Path) -> None:
    bench.file("a.txt", "x")
    (tmp_path / "alias").symlink_to(bench.workspace)
    bench.workspace = tmp_path / "alias"
    assert bench.call("read_file", path="a.txt").ok
