"""YAML as people mean it, and every mistake with its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentx.config.yamlfile import parse_document, parse_value, read_document
from agentx.errors import ConfigError

WORDS = [
    ("on", "on"),
    ("no", "no"),
    ("Yes", "Yes"),
    ("1:30", "1:30"),
    ("2026-01-31", "2026-01-31"),
    ("010", "010"),
    ("0x1f", "0x1f"),
    ("1_000", "1_000"),
    (".inf", ".inf"),
    (".nan", ".nan"),
    ("<<", "<<"),
    ("qwen3:14b", "qwen3:14b"),
    ("true", True),
    ("False", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("7", 7),
    ("-3", -3),
    ("0.5", 0.5),
    ("5.", 5.0),
    ("1e3", 1000.0),
    ("'true'", "true"),
    ('"7"', "7"),
    ("9" * 5000, "9" * 5000),
]


@pytest.mark.parametrize(("written", "meant"), WORDS, ids=[word[:12] or "empty" for word, _ in WORDS])
def test_a_plain_word_means_what_yaml_1_2_says(written: str, meant: Any) -> None:
    found = parse_value(written, "-c x")
    assert (found, type(found)) == (meant, type(meant))


WRONG = [
    ("a: 1\nb: 2\na: 3\n", "f:3:1: the key `a` was already set in line 1"),
    ("a: {b: 1, b: 2}", "f:1:11: the key `b` was already set in line 1"),
    ("1: x", "f:1:1: a key must be text"),
    ("true: x", "f:1:1: a key must be text"),
    ("? [a]\n: b", "f:1:3: a key must be text"),
    ("- a\n", "f:1:1: expected a table of `key: value` lines, got a list"),
    ("word", "f:1:1: expected a table of `key: value` lines, got a single value"),
    ("a: !!python/name:os.system x", "f:1:4: the tag `tag:yaml.org,2002:python/name:os.system` is not read here"),
    ("a: &x [*x]", "f:1:4: too much: an alias that repeats itself, or too many values"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[text[:16] for text, _ in WRONG])
def test_what_would_be_taken_wrongly_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f")
    assert caught.value.message == said


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\ta: 1", "a: 1\n---\nb: 2", "a: *nowhere", "[" * 100_000])
def test_broken_yaml_is_refused_with_line_and_column(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^f:\d+:\d+: not YAML: "):
        parse_document(text, "f")


def test_tabs_get_a_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document("a:\n\tb: 1", "f")
    assert caught.value.hint is not None and "spaces" in caught.value.hint


def test_aliases_that_multiply_are_refused_quickly() -> None:
    """The billion laughs: each line ten times the one before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="too much"):
        parse_document("\n".join(lines), "f")


def test_all_problems_of_a_file_are_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document("a: 1\na: 2\n3: x\n", "f")
    assert [problem.where for problem in caught.value.problems] == ["f:2:1", "f:3:1"]


def test_keys_and_values_know_where_they_stand() -> None:
    document = parse_document("a:\n  - b: 7\n    c: [x, y]\n", "f")
    assert document.data == {"a": [{"b": 7, "c": ["x", "y"]}]}
    assert document.where(("a", 0, "b")) == "f:2:8"
    assert document.where(("a", 0, "b"), key=True) == "f:2:5"
    assert document.where(("a", 0, "c", 1)) == "f:3:12"
    assert document.where(("a", 0, "gone", "deep")) == "f:2:5"


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for text in ("", "# nothing\n", "---\n"):
        file.write_text(text)
        assert read_document(file).data == {}


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(file).data == {"a": 1}


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "large.yaml").write_bytes(b"#" * (1 << 21))
    said: dict[str, str] = {}
    for name in ("latin", "folder", "large", "missing"):
        with pytest.raises(ConfigError) as caught:
            read_document(tmp_path / f"{name}.yaml", name)
        said[name] = caught.value.message
    assert said == {
        "latin": "latin:2:7: not UTF-8 text",
        "folder": "folder: is a folder, expected a file",
        "large": "large: is larger than 1,048,576 bytes",
        "missing": "missing: cannot be read: no such file or directory",
    }


tables = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), tables, max_size=5))
def test_what_a_yaml_writer_writes_in_quotes_is_read_back(data: dict[str, Any]) -> None:
    written = yaml.safe_dump(data, default_style='"', allow_unicode=False)
    plain = written.replace('!!int "', '"').replace('!!bool "', '"').replace('!!null "', '"')
    assert texts(parse_document(plain, "f").data) == texts(data)


def texts(value: Any) -> Any:
    """*value* with every scalar as the text that the writer makes of it."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON
    if isinstance(value, list):
        return [texts(item) for item in value]  # pyright: ignore[reportUnknownVariableType] -- JSON
    words: dict[Any, str] = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


@given(st.text(max_size=200))
def test_no_text_whatever_raises_anything_but_a_config_error(text: str) -> None:
    try:
        parse_document(text, "f")
    except ConfigError as error:
        assert all(problem.where.startswith("f") for problem in error.problems)
