"""`read_file`: what a model gets to see of a file, and the words for what it cannot see."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentx.wires.messages import Image

if TYPE_CHECKING:
    from tests.tools.conftest import Bench

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_text_comes_with_line_numbers(bench: Bench) -> None:
    bench.file("src/a.txt", "one\ntwo\r\n\nfour")
    result = bench.call("read_file", path="src/a.txt")
    assert (result.ok, result.text) == (True, "1\tone\n2\ttwo\n3\t\n4\tfour")
    assert result.read_only


def test_a_part_says_how_to_read_on(bench: Bench) -> None:
    bench.file("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    result = bench.call("read_file", path="a.txt", offset=10, limit=2)
    assert result.text == "10\tline 10\n11\tline 11\n[lines 10 to 11 of 100; read on with offset=12]"


def test_the_last_part_says_nothing_more(bench: Bench) -> None:
    bench.file("a.txt", "one\ntwo\n")
    assert bench.call("read_file", path="a.txt", limit=2).text == "1\tone\n2\ttwo"


def test_an_offset_behind_the_end_is_told(bench: Bench) -> None:
    bench.file("a.txt", "one\ntwo\n")
    result = bench.call("read_file", path="a.txt", offset=9)
    assert (result.ok, result.text) == (False, "`a.txt` has 2 lines: there is no line 9")


def test_the_text_of_one_call_is_bounded(bench: Bench) -> None:
    bench.limits = replace(bench.limits, read_chars=100)
    bench.file("a.txt", "0123456789\n" * 50)
    assert bench.call("read_file", path="a.txt").text.endswith("[lines 1 to 10 of 50; read on with offset=11]")


def test_one_endless_line_is_cut(bench: Bench) -> None:
    bench.file("a.txt", "x" * 50_000 + "\nnext\n")
    lines = bench.call("read_file", path="a.txt").text.split("\n")
    assert lines == ["1\t" + "x" * 2_000 + " [... the line goes on]", "2\tnext"]


def test_an_empty_file_is_said_to_be_empty(bench: Bench) -> None:
    bench.file("a.txt", "")
    assert bench.call("read_file", path="a.txt").text == "[`a.txt` is empty]"


def test_a_byte_order_mark_and_broken_text_do_not_hurt(bench: Bench) -> None:
    bench.file("a.txt", b"\xef\xbb\xbfna\xefve\n")
    assert bench.call("read_file", path="a.txt").text == "1\tna\ufffdve"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_images_come_as_images(bench: Bench, start: bytes, kind: str) -> None:
    bench.file("shot.bin", start)
    result = bench.call("read_file", path="shot.bin")
    assert result.images == (Image(kind, base64.b64encode(start).decode()),)
    assert result.text == f"[shot.bin: {kind}, {len(start)} bytes]"


def test_a_large_image_is_refused(bench: Bench) -> None:
    bench.limits = replace(bench.limits, image_bytes=10)
    bench.file("a.png", PNG)
    result = bench.call("read_file", path="a.png")
    assert (result.ok, result.text) == (False, "`a.png` is an image of 28 bytes, too large to be seen: at most 10")


def test_a_binary_file_is_named_as_one(bench: Bench) -> None:
    bench.file("a.out", b"\x7fELF\0\0\0")
    assert bench.call("read_file", path="a.out").text == (
        "`a.out` is a binary file of 7 bytes: it cannot be read as text"
    )


def test_utf_16_is_named_with_the_way_out(bench: Bench) -> None:
    bench.file("a.txt", "hello".encode("utf-16"))
    assert "iconv -f UTF-16" in bench.call("read_file", path="a.txt").text


def test_a_missing_file_brings_the_closest_names(bench: Bench) -> None:
    bench.file("src/main.py", "")
    bench.file("src/other.txt", "")
    result = bench.call("read_file", path="src/mian.py")
    assert (result.ok, result.text) == (False, "`src/mian.py` does not exist\nclosest: `src/main.py`")


def test_a_missing_folder_brings_what_is_there(bench: Bench) -> None:
    bench.file("notes/a.txt", "")
    assert bench.call("read_file", path="qqq/b.txt").text.endswith("\nthe workspace holds 1: notes")


def test_a_folder_is_named_with_the_right_tool(bench: Bench) -> None:
    (bench.workspace / "src").mkdir()
    assert "list_files" in bench.call("read_file", path="src").text


def test_a_pipe_is_not_waited_for(bench: Bench) -> None:
    os.mkfifo(bench.workspace / "pipe")
    result = bench.call("read_file", path="pipe")
    assert (result.ok, result.text) == (False, "`pipe` is not a regular file: reading it could hang")
