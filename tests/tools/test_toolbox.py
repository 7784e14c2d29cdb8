"""The one door: what a model gets wrong is either certain enough to be meant, or told in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.errors import StateError, ToolFailed, UsageError
from agentx.events import Event, NotesUpdated, PlanUpdated
from agentx.tools.arguments import checked, parsed
from agentx.tools.find import SEARCH
from agentx.tools.read import SPEC as READ
from agentx.tools.write import EDIT
from agentx.wires.messages import Tool

if TYPE_CHECKING:
    from tests.tools.conftest import Bench

ALL = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search",
    "shell",
    "shell_output",
    "update_notes",
    "update_plan",
    "restore_tool_result",
]


def tokens(tools: Sequence[Tool]) -> float:
    """About how many tokens the schemas are."""
    return len(json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in tools])) / 4


def test_all_tools_are_there_in_one_order(bench: Bench) -> None:
    box = bench.box()
    assert [tool.name for tool in box.tools()] == ALL
    assert [tool.name for tool in box.tools(["shell", "read_file"])] == ["read_file", "shell"]
    with pytest.raises(UsageError, match="no such tool: `shel`"):
        box.tools(["shel"])


def test_the_schemas_fit_a_small_window(bench: Bench) -> None:
    box = bench.box()
    assert tokens(box.tools()) <= 1_100
    assert tokens(box.tools(terse=True)) <= 550
    assert tokens(box.tools(ALL[:6], terse=True)) <= 350


def test_effects_say_what_can_run_again(bench: Bench) -> None:
    box = bench.box()
    assert {name: box.effect(name) for name in [*ALL, "nothing"]} == {
        "read_file": "read",
        "write_file": "check",
        "edit_file": "check",
        "list_files": "read",
        "search": "read",
        "shell": "act",
        "shell_output": "read",
        "update_notes": "check",
        "update_plan": "check",
        "restore_tool_result": "read",
        "nothing": "read",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("read_fil", "there is no tool `read_fil`; did you mean `read_file`?"),
        ("browse_web", f"there is no tool `browse_web`; there are: {', '.join(ALL)}"),
    ],
)
def test_an_unknown_tool_is_answered(bench: Bench, name: str, text: str) -> None:
    result = bench.raw(name, "{}")
    assert (result.ok, result.text) == (False, text)


def test_a_tool_by_another_spelling_is_meant(bench: Bench) -> None:
    bench.file("a.txt", "x")
    assert bench.call("Read-File", path="a.txt").ok


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("{", "the arguments are not valid JSON: "),
        ("[1]", "the arguments are not a JSON object"),
        ("", "missing `path`; expected read_file(path, offset?, limit?)"),
        ('{"path": null}', "missing `path`; expected"),
        ('{"path": "a", "ofset": 1}', "unknown argument `ofset` (did you mean `offset`?); expected"),
        ('{"path": ["a"]}', '`path` must be a string, not the list ["a"]; expected'),
        ('{"path": "a", "offset": "ten"}', '`offset` must be a whole number, not the string "ten"; expected'),
        ('{"path": "a", "offset": 1.5}', "`offset` must be a whole number, not the number 1.5; expected"),
        ('{"path": "a", "offset": true}', "`offset` must be a whole number, not the boolean true; expected"),
    ],
)
def test_wrong_arguments_are_told_with_what_was_expected(bench: Bench, arguments: str, text: str) -> None:
    result = bench.raw("read_file", arguments)
    assert not result.ok
    assert result.text.startswith(text)


@pytest.mark.parametrize(
    ("given_", "meant"),
    [
        ({"path": "a", "offset": "5", "limit": 5.0}, {"path": "a", "offset": 5, "limit": 5}),
        ({"file_path": "a", "limit": None, "reason": None}, {"path": "a"}),
        ({"path": 7}, {"path": "7"}),
    ],
)
def test_near_misses_of_certain_meaning_are_forgiven(given_: dict[str, Any], meant: dict[str, Any]) -> None:
    assert checked(READ, given_) == meant


def test_words_for_true_and_false_are_understood() -> None:
    given_ = {"path": "a", "old_string": "x", "new_string": "y", "replace_all": "True"}
    assert checked(EDIT, given_) == {"path": "a", "old": "x", "new": "y", "all": True}


def test_arguments_in_a_string_once_more_are_unpacked() -> None:
    assert parsed(json.dumps('{"path": "a"}')) == {"path": "a"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["pattern", "path", "glob", "query", "x"]), json_values))
def test_any_arguments_are_taken_or_told(arguments: dict[str, Any]) -> None:
    try:
        values = checked(SEARCH, arguments)
    except ToolFailed as error:
        assert error.message
    else:
        assert all(isinstance(value, str) for value in values.values())


def test_a_tool_that_breaks_is_one_line_for_the_model(bench: Bench) -> None:
    result = bench.call("restore_tool_result", id="r404")
    assert (result.ok, result.text) == (False, "restore_tool_result failed: KeyError: 'r404'")


def test_a_broken_journal_ends_the_job_instead(bench: Bench) -> None:
    class Full(list[Event]):
        def append(self, _: Event, /) -> None:
            raise StateError("journal.db: the disk is full")

    bench.told = Full()
    with pytest.raises(StateError):
        bench.call("update_notes", content="x")


def test_a_key_in_a_file_is_not_shown(bench: Bench, secret: str) -> None:
    bench.file(".env", f"KEY={secret}\n")
    assert bench.call("read_file", path=".env").text == "1\tKEY=[redacted]"


def test_notes_are_written_and_told(bench: Bench) -> None:
    result = bench.call("update_notes", content="use port 8080\n")
    assert (result.ok, result.text) == (True, "NOTES.md is written")
    assert (bench.workspace / "NOTES.md").read_text() == "use port 8080\n"
    assert bench.told == [NotesUpdated(text="use port 8080\n")]


@pytest.mark.parametrize("content", ["", "  \n", "x" * 40_000])
def test_notes_that_would_lose_or_flood_are_refused(bench: Bench, content: str) -> None:
    bench.file("NOTES.md", "old")
    assert not bench.call("update_notes", content=content).ok
    assert (bench.workspace / "NOTES.md").read_text() == "old"
    assert bench.told == []


@pytest.mark.parametrize(
    "items",
    [
        [{"text": "look", "done": True}, {"text": "build", "done": False}],
        [{"content": "look", "status": "completed"}, "build"],
        '[{"text": "look", "done": "true"}, {"text": " build "}]',
    ],
)
def test_a_plan_is_told_in_one_shape(bench: Bench, items: Any) -> None:
    result = bench.call("update_plan", items=items)
    assert (result.ok, result.text) == (True, "1 of 2 done; next: build")
    assert bench.told == [PlanUpdated(items=[{"text": "look", "done": True}, {"text": "build", "done": False}])]


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([3], 'item 1 must be {"text": ..., "done": true or false}'),
        ([{"done": True}], "item 1 has no `text`"),
        ([{"text": "x", "done": "maybe"}], "item 1: `done` must be true or false"),
        (["x"] * 201, "201 items are too many for a plan: at most 200"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(bench: Bench, items: list[Any], text: str) -> None:
    result = bench.call("update_plan", items=items)
    assert (result.ok, result.text) == (False, text)


def test_an_earlier_result_comes_back(bench: Bench) -> None:
    bench.stored = {"r12": "0123456789"}
    result = bench.call("restore_tool_result", id="r12", offset=4)
    assert (result.text, result.restored_from, result.size) == ("456789", 12, 6)
