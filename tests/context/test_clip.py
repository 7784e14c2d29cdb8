"""Clipping at production, and the whole text on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.context.budget import budget_for
from agentx.context.clip import clip, result_limit, shorten_arguments, spill
from agentx.context.measure import text_tokens
from agentx.errors import StateError


@pytest.mark.parametrize(("window", "limit"), [(4_096, 409), (200_000, 25_000), (2_304, 400), (32_000, 4_761)])
def test_a_result_may_have_a_fifth_of_the_usable_input_and_never_more_than_25000(window: int, limit: int) -> None:
    assert result_limit(budget_for(window)) == limit
    assert result_limit(budget_for(window), factor=2.5) == int(min(25_000, budget_for(window).usable / 5) / 2.5)
    assert result_limit(budget_for(window), factor=0.5) == limit


def test_a_long_text_keeps_head_and_tail_and_says_how_to_read_the_rest() -> None:
    text = "\n".join(f"line {n}" for n in range(5_000))
    clipped = clip(text, 400, restore_id="c3_1")
    assert clipped.clipped
    assert clipped.text.startswith("line 0\nline 1\n")
    assert clipped.text.endswith("line 4998\nline 4999")
    assert "characters left out here; read them with restore_tool_result, id `c3_1`]" in clipped.text


def test_a_short_text_stays_as_it_is() -> None:
    assert clip("short", 48).text == "short"
    assert not clip("short", 48).clipped


@given(st.text(min_size=0, max_size=3_000), st.integers(0, 600))
def test_a_clipped_text_keeps_to_its_limit(text: str, limit: int) -> None:
    clipped = clip(text * 3, limit, restore_id="r123456")
    assert text_tokens(clipped.text) <= max(48, limit)


def test_the_whole_text_is_kept_once_under_its_hash(tmp_path: Path) -> None:
    first = spill(tmp_path / "output", "täxt")
    assert first == spill(tmp_path / "output", "täxt")
    assert first.read_text("utf-8") == "täxt"
    assert list((tmp_path / "output").iterdir()) == [first]


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("a file in the way")
    with pytest.raises(StateError, match="cannot keep a tool result"):
        spill(tmp_path / "output", "text")


def test_shortened_arguments_are_still_one_json_object() -> None:
    arguments = json.dumps({"path": "a/b.py", "content": "x" * 50_000, "more": ["y" * 9_000] * 3})
    short = shorten_arguments(arguments, 100)
    assert text_tokens(short) <= 100
    assert json.loads(short)["path"] == "a/b.py"
    least = json.loads(shorten_arguments(arguments, 20))
    assert least == {"path": "a/b.py", "left_out": f"{len(arguments):,} characters"}
    assert json.loads(shorten_arguments("{not json" * 500, 30)) == {"left_out": "4,500 characters"}
    assert json.loads(shorten_arguments(json.dumps({f"k{n}": n for n in range(900)}), 30))


@pytest.mark.parametrize(("depth", "kept"), [(500, {"path": "a.json"}), (100_000, {})])
def test_arguments_that_are_nested_too_deeply_to_be_walked_are_left_out(depth: int, kept: dict[str, str]) -> None:
    arguments = '{"path": "a.json", "content": ' + '{"a":' * depth + "1" + "}" * depth + "}"
    assert json.loads(shorten_arguments(arguments, 50)) == kept | {"left_out": f"{len(arguments):,} characters"}
