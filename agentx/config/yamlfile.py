"""YAML as people mean it: text stays text, no key counts twice, and everything knows its line and column.

PyYAML reads YAML 1.1, where `on` is true, `1:30` is 90 and the last of two equal keys wins in silence. Here a
plain word is a boolean, a number or null only by the rules of YAML 1.2, and the rest is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from agentx.errors import ConfigError, Problem

Location = tuple[str | int, ...]
"""Keys and list indexes from the root to a value."""

LARGEST_BYTES = 1 << 20
MOST_NODES = 20_000

WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# 18 digits: more are no number that a setting can be, and Python refuses to read thousands of them.
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
NUMBER = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,3})?")
READ_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))


@dataclass(frozen=True, slots=True)
class Document:
    """One file that was read: its table, and where each key and each value stands (both from 1)."""

    file: str
    data: dict[str, Any]
    keys: Mapping[Location, tuple[int, int]]
    values: Mapping[Location, tuple[int, int]]

    def where(self, location: Location, *, key: bool = False) -> str:
        """`file:line:column` of the value at *location* (or of its key), else of what is nearest around it."""
        first, second = (self.keys, self.values) if key else (self.values, self.keys)
        for end in range(len(location), -1, -1):
            if mark := first.get(location[:end]) or second.get(location[:end]):
                return f"{self.file}:{mark[0]}:{mark[1]}"
        return self.file


def read_document(file: Path | Traversable, shown: str | None = None) -> Document:
    """The table in *file*, called *shown* in errors; an empty file is an empty table.

    Raises ConfigError with every problem that was found, each with its line and column.
    """
    name = shown or str(file)
    try:
        raw = file.read_bytes()
    except IsADirectoryError as error:
        raise ConfigError([Problem(name, "is a folder, expected a file")]) from error
    except OSError as error:
        raise ConfigError([Problem(name, f"cannot be read: {reason(error)}")]) from error
    if len(raw) > LARGEST_BYTES:
        raise ConfigError([Problem(name, f"is larger than {LARGEST_BYTES:,} bytes")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise ConfigError([Problem(f"{name}:{line}:{column}", "not UTF-8 text")]) from error
    return parse_document(text, name)


def parse_document(text: str, shown: str) -> Document:
    """The table that *text* holds. Raises ConfigError."""
    build = Build(shown)
    value = build.root(text)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        what = f"expected a table of `key: value` lines, got {kind}"
        raise ConfigError([Problem(f"{shown}:1:1", what)])
    return Document(shown, value, build.keys, build.values)  # pyright: ignore[reportUnknownArgumentType] -- JSON-like


def parse_value(text: str, shown: str) -> Any:
    """The value that *text* stands for, as in a file; for variables and options. Raises ConfigError."""
    return Build(shown, lines=False).root(text)


def reason(error: OSError) -> str:
    """What the system says, in lower case and without number and path."""
    return (error.strerror or str(error)).lower()


@dataclass(slots=True)
class Build:
    """Turns one text into values, and keeps the places and the problems on the way."""

    shown: str
    lines: bool = True
    keys: dict[Location, tuple[int, int]] = field(default_factory=dict[Location, tuple[int, int]])
    values: dict[Location, tuple[int, int]] = field(default_factory=dict[Location, tuple[int, int]])
    problems: list[Problem] = field(default_factory=list[Problem])
    nodes: int = 0

    def root(self, text: str) -> Any:
        node = self.composed(text)
        value = None if node is None else self.value(node, (), ())
        if self.problems:
            raise ConfigError(self.problems)
        return value

    def composed(self, text: str) -> yaml.Node | None:
        # The C parser is ten times faster (files are read at every start), but not always there.
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        try:
            return yaml.compose(text, Loader=loader)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- untyped in the stubs
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = str(error.problem or error.context)
            hint = "indent with spaces, not with tabs; put text that begins with ` or @ in quotes"
            self.refuse(mark, f"not YAML: {what}", hint if "cannot start any token" in what else None)
        except yaml.YAMLError as error:
            what = str(error).partition("\n")[0]
            self.refuse(None, f"not YAML: {what}")
        except RecursionError:
            self.refuse(None, "nested too deeply")
        return None

    def refuse(self, mark: yaml.Mark | None, what: str, hint: str | None = None) -> None:
        place = f":{mark.line + 1}:{mark.column + 1}" if mark and self.lines else ""
        self.problems.append(Problem(self.shown + place, what, hint))

    def value(self, node: yaml.Node, at: Location, inside: tuple[int, ...]) -> Any:
        self.nodes += 1
        if id(node) in inside or self.nodes > MOST_NODES:
            if not self.problems:
                self.refuse(node.start_mark, "too much: an alias that repeats itself, or too many values")
            return None
        self.values[at] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if node.tag not in READ_TAGS:
            self.refuse(node.start_mark, f"the tag `{node.tag}` is not read here")
            return None
        inside = (*inside, id(node))
        if isinstance(node, yaml.MappingNode):
            return self.table(node, at, inside)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*at, index), inside) for index, item in enumerate(node.value)]
        return scalar(node)

    def table(self, node: yaml.MappingNode, at: Location, inside: tuple[int, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = key_node.start_mark
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(mark, "a key must be text")
                continue
            name = scalar(key_node)
            if not isinstance(name, str):
                self.refuse(mark, "a key must be text", f'put it in quotes: `"{key_node.value}":`')
                continue
            here = (*at, name)
            if name in result:
                self.refuse(mark, f"the key `{name}` was already set in line {self.keys[here][0]}")
                continue
            self.keys[here] = (mark.line + 1, mark.column + 1)
            result[name] = self.value(value_node, here, inside)
        return result


def scalar(node: yaml.Node) -> Any:
    """What a scalar stands for; in quotes or as a block it is text whatever it looks like."""
    quoted = isinstance(node, yaml.ScalarNode) and node.style
    return node.value if quoted else plain(node.value)


def plain(text: str) -> Any:
    """What an unquoted *text* stands for: null, true, false, a number, or itself."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text
