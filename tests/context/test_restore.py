"""What a marker stands for can always be had again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentx.context.clip import spill
from agentx.context.measure import text_tokens
from agentx.context.restore import restore, restored_seq
from agentx.errors import ToolFailed
from agentx.journal import Journal

if TYPE_CHECKING:
    from tests.context.conftest import Bench


def test_by_the_markers_number_or_by_the_call(bench: Bench) -> None:
    bench.start()
    seq = bench.reads("a.md", "the whole text")
    for name in (f"r{seq}", f"`r{seq}`", str(seq), "c1"):
        assert restore(bench.journal, name) == "the whole text"
        assert restored_seq(bench.journal, name) == seq


def test_a_clipped_result_comes_back_whole_from_disk_after_a_restart(bench: Bench, tmp_path: Path) -> None:
    bench.start()
    whole = spill(tmp_path / "output", "all of it " * 1_000)
    (id_,) = bench.answers("", ("shell", {"command": "x"}))
    bench.result(id_, "all ... it", whole=str(whole))
    bench.journal.close()
    journal = Journal(tmp_path / "journal.db", read_only=True)
    assert restore(journal, id_) == "all of it " * 1_000
    journal.close()
    shutil.move(tmp_path / "output", tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "journal.db", tmp_path / "elsewhere/journal.db")
    shutil.move(tmp_path / "moved", tmp_path / "elsewhere/output")
    journal = Journal(tmp_path / "elsewhere/journal.db")
    assert restore(journal, id_) == "all of it " * 1_000
    journal.close()


def test_a_text_that_is_gone_from_disk_is_said_so(bench: Bench) -> None:
    bench.start()
    (id_,) = bench.answers("", ("shell", {"command": "x"}))
    bench.result(id_, "head ... tail", whole="/nowhere/x.txt")
    assert restore(bench.journal, id_).startswith("head ... tail\n[the whole text is gone")


def test_long_texts_come_in_pages(bench: Bench) -> None:
    bench.start()
    bench.reads("a.md", "".join(f"{n:04} " for n in range(1_000)))
    first = restore(bench.journal, "c1", limit=2_000)
    assert first.endswith("[characters 0 to 2,000 of 5,000; go on with offset 2000]")
    assert restore(bench.journal, "c1", 4_000, limit=2_000).startswith("0800 ")
    with pytest.raises(ToolFailed, match="offset 5,000 is outside"):
        restore(bench.journal, "c1", 5_000)


def test_a_page_keeps_to_what_a_result_may_have(bench: Bench) -> None:
    bench.start()
    whole = "".join(f"{n:04} täglich 文件 " for n in range(1_000))
    bench.reads("a.md", whole)
    read, pages = "", 0
    while len(read) < len(whole):
        page = restore(bench.journal, "c1", len(read), limit_tokens=400)
        assert text_tokens(page) <= 400
        read += page.rpartition("\n[characters")[0] or page
        pages += 1
    assert read == whole
    assert pages < 30


@pytest.mark.parametrize("name", ["", "r99", "c9", "r2", "0", "r-1", "r" + "9" * 30])
def test_an_unknown_id_is_a_clear_error(bench: Bench, name: str) -> None:
    bench.start()
    bench.plan(("x", False))
    with pytest.raises(ToolFailed, match="nothing has this id"):
        restore(bench.journal, name)
