"""The ids of what a view leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agentx.context.index import HEADING, result_index
from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.context.restore import restore
from agentx.wires.messages import Message, ToolCall

if TYPE_CHECKING:
    from tests.context.conftest import Bench


def reads(*paths: str, text: str = "x" * 1_200) -> list[Item]:
    items: list[Item] = []
    for n, path in enumerate(paths):
        made = ToolCall(f"c{n}", "read_file", f'{{"path": "{path}"}}')
        items.append(Item(2 * n + 1, "assistant", Message(role="assistant", tool_calls=(made,)), 9))
        said = Message(role="tool", text=text, tool_call_id=f"c{n}", name="read_file")
        items.append(Item(2 * n + 2, "tool", said, 300, ok=path != "gone"))
    return items


def test_each_result_is_named_with_what_it_was_about() -> None:
    assert result_index(reads("a.py", "gone"), 200) == (
        f"{HEADING}\n- r2: read_file `a.py`, 1,200 characters\n- r4: read_file `gone`, 1,200 characters, failed"
    )


def test_of_calls_made_again_the_newest_is_named() -> None:
    assert result_index(reads("a.py", "b.py", "a.py"), 200).splitlines()[1:] == [
        "- r4: read_file `b.py`, 1,200 characters",
        "- r6: read_file `a.py`, 1,200 characters",
    ]


@given(st.integers(0, 300), st.integers(0, 2_000))
def test_an_index_keeps_to_its_limit_and_says_how_the_rest_is_found(number: int, limit: int) -> None:
    text = result_index(reads(*(f"file-{n}.py" for n in range(number))), limit)
    assert text_tokens(text) <= limit
    if number and limit >= 60:
        named = text.count("- r")
        assert named == number or f"- {number - named:,} older ones: restore_tool_result with id `list`" in text
        assert not named or f"`file-{number - 1}.py`" in text


def test_all_names_can_be_asked_for(bench: Bench) -> None:
    bench.start()
    assert restore(bench.journal, "list") == "(there is none)"
    seqs = [bench.reads(f"{n}.md", "text") for n in range(3)]
    names = "\n".join(f"- r{seq}: read_file `{n}.md`, 4 characters" for n, seq in enumerate(seqs))
    assert restore(bench.journal, "`list`") == names
    assert restore(bench.journal, f"r{seqs[1]}") == "text"
