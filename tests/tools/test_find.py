"""`list_files` and `search`: sorted, bounded, and blind for what .gitignore names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.tools.find import find_ripgrep
from agentx.tools.glob import glob_pattern

if TYPE_CHECKING:
    from tests.tools.conftest import Bench


def project(bench: Bench) -> None:
    bench.file(".gitignore", "*.log\nbuild/\n")
    bench.file("src/main.py", "import os\nprint('needle')\n")
    bench.file("src/deep/util.py", "needle = 1\n")
    bench.file("src/page.ts", "// needle\n")
    bench.file(".github/ci.yml", "on: push\n")
    bench.file("run.log", "needle\n")
    bench.file("build/out.py", "needle\n")
    bench.file(".git/config", "needle\n")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.py", ["src/deep/util.py", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("src/**/*.py", ["src/deep/util.py", "src/main.py"]),
        ("*.{ts,yml}", [".github/ci.yml", "src/page.ts"]),
        ("src", ["src/deep/util.py", "src/main.py", "src/page.ts"]),
        ("src/", ["src/deep/util.py", "src/main.py", "src/page.ts"]),
        ("main.py", ["src/main.py"]),
        ("*", [".github/ci.yml", ".gitignore", "src/deep/util.py", "src/main.py", "src/page.ts"]),
    ],
)
def test_files_are_listed_by_glob(bench: Bench, pattern: str, files: list[str]) -> None:
    project(bench)
    result = bench.call("list_files", pattern=pattern)
    assert (result.ok, result.text.split("\n")) == (True, files)


def test_a_folder_narrows_the_list_and_names_stay_relative_to_the_workspace(bench: Bench) -> None:
    project(bench)
    assert bench.call("list_files", pattern="*.py", path="src/deep").text == "src/deep/util.py"


def test_ignored_files_are_not_listed_even_when_named(bench: Bench) -> None:
    project(bench)
    text = bench.call("list_files", pattern="*.log").text
    assert text == "no file in `.` fits `*.log` (5 other files are there)"


def test_a_long_list_is_cut_and_says_so(bench: Bench) -> None:
    bench.limits = replace(bench.limits, listed=3)
    for number in range(9):
        bench.file(f"{number}.txt", "")
    lines = bench.call("list_files", pattern="*").text.split("\n")
    assert lines == ["0.txt", "1.txt", "2.txt", "[6 more files; narrow the pattern or the path]"]


def test_matches_come_with_path_and_line(bench: Bench) -> None:
    project(bench)
    result = bench.call("search", pattern="needle")
    assert result.text.split("\n") == [
        "src/deep/util.py:1:needle = 1",
        "src/main.py:2:print('needle')",
        "src/page.ts:1:// needle",
    ]
    assert result.read_only


@pytest.mark.parametrize(
    ("more", "files"),
    [
        ({"glob": "*.py"}, ["src/deep/util.py", "src/main.py"]),
        ({"glob": "**/*.ts"}, ["src/page.ts"]),
        ({"glob": "src/*.py"}, ["src/main.py"]),
        ({"glob": "*.py", "path": "src/deep"}, ["src/deep/util.py"]),
        ({"path": "src/main.py"}, ["src/main.py"]),
    ],
)
def test_a_search_is_narrowed(bench: Bench, more: dict[str, str], files: list[str]) -> None:
    project(bench)
    result = bench.call("search", pattern="needle", **more)
    assert [line.split(":")[0] for line in result.text.split("\n")] == files


def test_ignored_files_are_not_searched_even_when_the_glob_fits(bench: Bench) -> None:
    project(bench)
    text = bench.call("search", pattern="needle", glob="*.log").text
    assert text == "no match for `needle` in `.`, files `*.log`"


def test_what_is_no_expression_is_searched_as_text(bench: Bench) -> None:
    bench.file("a.py", "call(arg\n")
    assert bench.call("search", pattern="call(arg").text == (
        "[the pattern is no regular expression: it was searched as plain text]\na.py:1:call(arg"
    )


def test_many_matches_are_cut_and_the_same_each_time(bench: Bench) -> None:
    bench.limits = replace(bench.limits, matches=2)
    for number in range(30):
        bench.file(f"{number:02}.txt", "x\n" * 50)
    first, second = (bench.call("search", pattern="x").text for _ in range(2))
    assert first == second
    assert first.split("\n") == [
        "00.txt:1:x",
        "00.txt:2:x",
        "[2 of more than 1,000 matching lines; narrow the pattern, the path or the glob]",
    ]


def test_a_pattern_that_looks_like_an_option_is_a_pattern(bench: Bench) -> None:
    bench.file("a.txt", "--files\n")
    assert bench.call("search", pattern="--files").text == "a.txt:1:--files"


def test_a_place_that_is_not_there_is_told(bench: Bench) -> None:
    bench.file("src/a.py", "")
    assert bench.call("search", pattern="x", path="scr").text == "`scr` does not exist\nclosest: `src`"
    assert bench.call("list_files", pattern="*", path="src/a.py").text == "`src/a.py` is a file, not a folder"


def test_without_ripgrep_the_model_is_told_what_to_use(bench: Bench) -> None:
    bench.rg = find_ripgrep({"PATH": ""}, str(bench.workspace / "python"))
    result = bench.call("search", pattern="x")
    assert (result.ok, result.text) == (
        False,
        "ripgrep (`rg`) is not installed here\nuse the shell: `find`, `grep -rn`",
    )


def test_ripgrep_is_found_beside_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "rg").touch(mode=0o755)
    assert find_ripgrep({"PATH": ""}, str(tmp_path / "python")) == tmp_path / "rg"


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("./a/*.py", "a/b.py", True),
        ("a/*.py", "a/c/b.py", False),
        ("a/**", "a/c/b.py", True),
        ("**/b/*", "b/x", True),
        ("[!a]*.txt", "b.txt", True),
        ("[!a]*.txt", "a.txt", False),
        ("a[", "a[", True),
        ("{a,b}.txt", "b.txt", True),
        ("{a", "{a", True),
        ("a.b", "axb", False),
    ],
)
def test_globs_mean_what_people_mean(glob: str, path: str, fits: bool) -> None:
    assert bool(glob_pattern(glob).fullmatch(path)) is fits


@given(st.text(st.sampled_from("a*?[]{},!^-/\\.")))
def test_every_text_is_some_glob(glob: str) -> None:
    glob_pattern(glob).fullmatch("a/b.py")
