"""What the journal knows is held against a summary: what it left out is added by code."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.context.standing import OpenError, Standing, left_out, standing
from agentx.wires.messages import Message, ToolCall


def did(*calls: tuple[str, dict[str, str], bool, str]) -> list[Item]:
    """Each call is name, arguments, whether it went well, and its result."""
    items: list[Item] = []
    for number, (name, arguments, ok, text) in enumerate(calls):
        call = ToolCall(f"c{number}", name, json.dumps(arguments))
        items.append(Item(2 * number + 1, "assistant", Message(role="assistant", tool_calls=(call,)), 9))
        result = Message(role="tool", text=text, tool_call_id=call.id, name=name)
        items.append(Item(2 * number + 2, "tool", result, 9, ok))
    return items


def shell(
    command: str, ok: bool, text: str = "[exit code 1, 0.1 s]\nE  assert 1 == 2"
) -> tuple[str, dict[str, str], bool, str]:
    return "shell", {"command": command}, ok, text


def wrote(path: str, ok: bool = True) -> tuple[str, dict[str, str], bool, str]:
    return "write_file", {"path": path, "content": "x"}, ok, "written" if ok else "no such folder"


def test_an_error_stands_until_the_same_call_goes_well() -> None:
    failing = did(shell("pytest -q", False), wrote("a.py", False))
    assert standing(failing).errors == (
        OpenError("pytest -q", "[exit code 1, 0.1 s] ... E assert 1 == 2"),
        OpenError("a.py", "no such folder"),
    )
    mended = did(shell("pytest -q", False), wrote("a.py", False), shell("pytest  -q", True), wrote("a.py"))
    assert standing(mended) == Standing(paths=("a.py",))


def test_changed_files_stand_with_the_newest_last() -> None:
    assert standing(did(wrote("a.py"), wrote("b.py"), wrote("a.py"))).paths == ("b.py", "a.py")


def test_what_a_summary_tells_is_not_added() -> None:
    stands = Standing(("Write  the tests",), ("src/a.py",), (OpenError("make test", "exit code 2"),))
    told = "Open: write the tests\nFiles and their state: src/a.py is new\nErrors open: `make test` fails"
    assert left_out(told, stands, 500) == ""


def test_what_a_summary_leaves_out_is_added() -> None:
    stands = Standing(("write the tests",), ("a.py", "b.py"), (OpenError("make test", "exit code 2"),))
    assert left_out("Goal: mend b.py", stands, 500).splitlines()[1:] == [
        "- open in the plan: write the tests",
        "- error still open: make test: exit code 2",
        "- changed: a.py",
    ]


def test_of_many_changed_files_the_newest_are_named_and_the_others_counted() -> None:
    stands = Standing(paths=tuple(f"src/module_{n}.py" for n in range(300)))
    added = left_out("Goal: all", stands, 80)
    assert "- changed: src/module_299.py, src/module_298.py" in added
    assert added.endswith("files more")


@given(
    st.lists(st.text(max_size=300), max_size=9),
    st.lists(st.text(max_size=90), max_size=200),
    st.integers(0, 2_000),
)
def test_what_is_added_keeps_to_its_limit(plan: list[str], paths: list[str], limit: int) -> None:
    assert text_tokens(left_out("Goal: all", Standing(tuple(plan), tuple(paths)), limit)) <= limit
