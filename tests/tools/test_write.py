"""`write_file` and `edit_file`: whole and at once, or nothing."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.tools.tool import Limits
from agentx.tools.workspace import Workspace
from agentx.tools.write import EditFile, line_numbers

if TYPE_CHECKING:
    from tests.tools.conftest import Bench


def test_a_file_is_written_with_its_folders(bench: Bench) -> None:
    result = bench.call("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert (result.ok, result.text) == (True, "created `a/b/c.txt`: 2 lines, 8 bytes")
    assert (bench.workspace / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert [path.name for path in (bench.workspace / "a/b").iterdir()] == ["c.txt"]


def test_replacing_keeps_mode_and_line_ends(bench: Bench) -> None:
    path = bench.file("run.bat", "a\r\nb\r\n")
    path.chmod(0o751)
    assert bench.call("write_file", path="run.bat", content="c\nd\n").text.startswith("replaced `run.bat`")
    assert path.read_bytes() == b"c\r\nd\r\n"
    assert path.stat().st_mode & 0o777 == 0o751


def test_writing_through_a_link_inside_keeps_the_link(bench: Bench) -> None:
    real = bench.file("real.txt", "old")
    (bench.workspace / "link.txt").symlink_to("real.txt")
    assert bench.call("write_file", path="link.txt", content="new").ok
    assert (bench.workspace / "link.txt").is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git/config", "agentx.yaml", "sub/../agentx.yaml"])
def test_what_runs_or_rules_later_is_not_written(bench: Bench, path: str) -> None:
    result = bench.call("write_file", path=path, content="evil")
    assert not result.ok
    assert "refused" in result.text
    assert not (bench.workspace / path).exists()


def test_half_a_character_is_refused(bench: Bench) -> None:
    result = bench.raw("write_file", '{"path": "a.txt", "content": "ab\\ud800"}')
    assert (result.ok, result.text) == (False, "the text holds half a character at position 2")
    assert list(bench.workspace.iterdir()) == []


def test_a_folder_is_not_overwritten(bench: Bench) -> None:
    (bench.workspace / "src").mkdir()
    assert bench.call("write_file", path="src", content="x").text == "`src` is a folder: give the path of a file"


def test_a_file_in_the_way_of_a_folder_is_told(bench: Bench) -> None:
    bench.file("a", "x")
    result = bench.call("write_file", path="a/b.txt", content="x")
    assert not result.ok
    assert "Traceback" not in result.text


def test_an_edit_replaces_the_one_place(bench: Bench) -> None:
    path = bench.file("a.py", "x = 1\ny = 2\n")
    assert bench.call("edit_file", path="a.py", old="y = 2", new="y = 3").text == "edited `a.py`: line 2"
    assert path.read_text() == "x = 1\ny = 3\n"


def test_an_edit_with_plain_line_ends_fits_a_windows_file(bench: Bench) -> None:
    path = bench.file("a.txt", "one\r\ntwo\r\nthree\r\n")
    assert bench.call("edit_file", path="a.txt", old="two\nthree", new="2\n3").ok
    assert path.read_bytes() == b"one\r\n2\r\n3\r\n"


def test_several_places_are_counted_and_nothing_changes(bench: Bench) -> None:
    path = bench.file("a.py", "x\ny\nx\n")
    result = bench.call("edit_file", path="a.py", old="x", new="z")
    assert (result.ok, result.text) == (
        False,
        "`old` occurs 2 times in `a.py` (lines 1, 3); nothing was changed\n"
        "give more of the lines around it, or set `all` to true",
    )
    assert path.read_text() == "x\ny\nx\n"


def test_all_places_are_replaced_when_asked(bench: Bench) -> None:
    path = bench.file("a.py", "x\ny\nx\n")
    assert bench.call("edit_file", path="a.py", old="x", new="z", all=True).text == "edited `a.py`: 2 places"
    assert path.read_text() == "z\ny\nz\n"


def test_a_miss_shows_the_closest_lines(bench: Bench) -> None:
    bench.file("a.py", "def area(width, height):\n    return width * height\n\nprint(area(2, 3))\n")
    result = bench.call("edit_file", path="a.py", old="    return width + height", new="")
    assert result.text == (
        "`old` does not occur in `a.py`; nothing was changed\nthe closest lines are:\n2\t    return width * height"
    )


def test_a_miss_by_blanks_is_told_as_one(bench: Bench) -> None:
    bench.file("a.py", "if x:\n\treturn  1\n")
    text = bench.call("edit_file", path="a.py", old="if x:\n    return 1", new="").text
    assert text.endswith("only blanks differ; the file holds:\n1\tif x:\n2\t\treturn  1")


def test_pasted_line_numbers_are_told(bench: Bench) -> None:
    bench.file("a.py", "x = 1\n")
    text = bench.call("edit_file", path="a.py", old="1\tx = 1", new="x = 2").text
    assert text.endswith("the line numbers of read_file are not part of the file: leave them out")


def test_a_miss_with_nothing_alike_says_so(bench: Bench) -> None:
    bench.file("a.py", "x = 1\n")
    assert "nothing in it is like" in bench.call("edit_file", path="a.py", old="zzzzzzzzzz", new="").text


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("x", "x")])
def test_an_edit_that_changes_nothing_is_refused(bench: Bench, old: str, new: str) -> None:
    bench.file("a.py", "x = 1\n")
    assert not bench.call("edit_file", path="a.py", old=old, new=new).ok


def test_a_file_that_is_no_text_is_not_edited(bench: Bench) -> None:
    bench.file("a.bin", b"\xff\xfe\x00x")
    assert bench.call("edit_file", path="a.bin", old="x", new="y").text == (
        "`a.bin` is not UTF-8 text: it cannot be edited"
    )


texts = st.text(st.sampled_from("ab\n"), max_size=30)


@given(texts, st.text(st.sampled_from("ab\n"), min_size=1, max_size=3), texts)
def test_an_edit_is_what_replace_gives_or_nothing(text: str, old: str, new: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(text.encode())
        tool = EditFile(Workspace(Path(folder)), Limits())
        arguments = {"path": "a.txt", "old": old, "new": new, "all": True}
        try:
            asyncio.run(tool.run(json.loads(json.dumps(arguments)), "c1"))
        except Exception as error:  # noqa: BLE001  whatever was said, the file must be whole
            assert type(error).__name__ == "ToolFailed"
            assert old == new or old not in text
            assert path.read_bytes() == text.encode()
        else:
            assert path.read_bytes() == text.replace(old, new).encode()


@given(texts, st.text(st.sampled_from("ab\n"), min_size=1, max_size=3))
def test_every_place_is_counted_once(text: str, part: str) -> None:
    places = line_numbers(text, part)
    assert len(places) == text.count(part)
    assert places == sorted(places)
    assert all(1 <= line <= text.count("\n") + 1 for line in places)
