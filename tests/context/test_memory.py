"""What comes back after a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentx.context.measure import text_tokens
from agentx.context.memory import memory_text

if TYPE_CHECKING:
    from tests.context.conftest import Bench


def memory(bench: Bench, limit: int = 2_000) -> str:
    state = bench.context.state
    state.read(bench.journal)
    return memory_text(state.ledger, limit, read_file=bench.files.get, background=bench.background)


def edits(bench: Bench, path: str, *, ok: bool = True) -> None:
    (id_,) = bench.answers("", ("write_file", {"path": path, "content": "old"}))
    bench.result(id_, "written", name="write_file", ok=ok)


def test_open_items_the_newest_notes_and_running_commands_come_back(bench: Bench) -> None:
    bench.start()
    bench.plan(("read notes", True), ("answer", False))
    bench.notes("old notes")
    bench.notes("the key is in note 7")
    bench.background = "b1: npm test, running for 40 s"
    text = memory(bench)
    assert "- [ ] answer" in text
    assert "read notes" not in text
    assert "the key is in note 7" in text
    assert "old notes" not in text
    assert "b1: npm test" in text


def test_edited_files_come_back_as_they_are_now(bench: Bench) -> None:
    bench.start()
    for path in ("a.py", "b.py", "gone.py", "failed.py"):
        edits(bench, path, ok=path != "failed.py")
    bench.files = {"a.py": "a = 1", "b.py": "b = 2", "failed.py": "f = 3"}
    text = memory(bench)
    assert text.index("b = 2") < text.index("a = 1")
    assert "failed.py" not in text
    assert "gone.py" not in text


def test_at_most_five_files_and_never_more_than_the_limit(bench: Bench) -> None:
    bench.start()
    for number in range(8):
        edits(bench, f"f{number}.py")
        bench.files[f"f{number}.py"] = f"# {number}\n" + "x = 1\n" * 2_000
    text = memory(bench, 1_000)
    assert text_tokens(text) <= 1_000
    assert [number for number in range(8) if f"# {number}\n" in text] == [3, 4, 5, 6, 7]
    assert memory(bench, 100) == "Files you edited: f3.py, f4.py, f5.py, f6.py, f7.py"


def test_huge_notes_are_shortened(bench: Bench) -> None:
    bench.start()
    bench.notes("n" * 90_000)
    bench.plan(("finish", False))
    text = memory(bench, 500)
    assert text_tokens(text) <= 500
    assert "- [ ] finish" in text


def test_nothing_comes_back_where_there_is_nothing(bench: Bench) -> None:
    bench.start()
    assert memory(bench) == ""
