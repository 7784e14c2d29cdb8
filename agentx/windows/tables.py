"""windows.yaml: windows by `provider/model` or glob; the user's file first, then the shipped one.

An entry is a number, or {window, prompt, output, trained, shared, dated, source}. Sizes are tokens.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.abc import Traversable
from pathlib import Path
from typing import Any, cast

from agentx.config.links import Link
from agentx.config.paths import Paths
from agentx.config.resources import shipped
from agentx.config.yamlfile import Document, read_document
from agentx.errors import ConfigError, Problem
from agentx.windows.record import LARGEST, SMALLEST, Window, believable, undated

NAME = "windows.yaml"
SIZES = ("window", "prompt", "output", "trained")
KEYS = (*SIZES, "shared", "dated", "source")
PLAIN = re.compile(r"[^*?\[]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a table; `where` is `file:line`."""

    key: str
    window: Window
    where: str


@dataclass(frozen=True, slots=True)
class Tables:
    """Entries of each file, the most important file first."""

    files: tuple[Mapping[str, Entry], ...] = ()
    _found: dict[tuple[str, ...], Window | None] = field(
        default_factory=dict[tuple[str, ...], Window | None], init=False, repr=False, compare=False
    )
    """What was looked up: a hundred globs are compared once for a link, not at every turn."""

    def window(self, link: Link) -> Window | None:
        """What the tables say of *link*: in each file its exact name, else the longest glob that fits, else its
        name without the date of a snapshot.

        A provider that the user named himself is also known by its card, when the address is not his own server.
        """
        names = [f"{link.provider.name}/{link.model}"]
        if not link.provider.self_hosted:
            names.append(f"{link.provider.card}/{link.model}")
        key = tuple(names)
        if key not in self._found:
            self._found[key] = self._look_up(names)
        return self._found[key]

    def _look_up(self, names: list[str]) -> Window | None:
        for entries in self.files:
            for name in names:
                if name in entries:
                    return entries[name].window
            globs = [key for key in entries if any(_fits(name, key) for name in names)]
            if globs:
                return entries[max(globs, key=len)].window
            for name in map(undated, names):
                if name in entries:
                    return entries[name].window
        return None


def _fits(name: str, glob: str) -> bool:
    """What stands before the first wildcard is compared first: to compile a hundred patterns takes 10 ms."""
    plain = PLAIN.match(glob)
    return name.startswith(plain[0] if plain else "") and fnmatch.fnmatchcase(name, glob)


def load_tables(paths: Paths) -> Tables:
    """The user's `windows.yaml` (when there is one) and the shipped one. Raises ConfigError with every problem."""
    users = paths.config / NAME
    files: list[tuple[Path | Traversable, str, float]] = []
    if users.exists():
        files.append((users, str(users), users.stat().st_mtime))
    files.append((shipped(NAME), f"shipped {NAME}", 0.0))
    problems: list[Problem] = []
    tables: list[Mapping[str, Entry]] = []
    for file, shown, changed in files:
        try:
            tables.append(read_table(read_document(file, shown), changed))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return Tables(tuple(tables))


def read_table(document: Document, changed: float) -> Mapping[str, Entry]:
    """The entries of one file; *changed* (epoch seconds) dates those that have no date. Raises ConfigError."""
    problems: list[Problem] = []
    entries: dict[str, Entry] = {}
    for key, value in document.data.items():
        found = list(_wrong(document, key, value))
        problems += found
        if not found:
            entries[key] = _entry(document, key, value, changed)
    if problems:
        raise ConfigError(problems)
    return entries


def _entry(document: Document, key: str, value: Any, changed: float) -> Entry:
    data = cast("dict[str, Any]", value) if isinstance(value, dict) else {"window": value}
    where = document.where((key,), key=True).rpartition(":")[0]
    dated = data.get("dated")
    window = Window(
        served=data.get("window"),
        prompt=data.get("prompt"),
        output=data.get("output"),
        trained=data.get("trained"),
        shared=data.get("shared", True),
        source="windows.yaml",
        detail=f"{where} ({data['source']})" if "source" in data else where,
        confidence="catalogued",
        seen_at=datetime.fromisoformat(dated).replace(tzinfo=UTC).timestamp() if dated else changed,
    )
    return Entry(key, window, where)


def _wrong(document: Document, key: str, value: Any) -> Iterator[Problem]:
    at = document.where((key,), key=True)
    if "/" not in key:
        yield Problem(at, f"`{key}` is no `provider/model`", "write it like `openai/gpt-5` or `ollama/qwen3*`")
    if not isinstance(value, dict):
        yield from _wrong_size(document.where((key,)), "window", value)
        return
    data = cast("dict[str, Any]", value)
    for name, item in data.items():
        if name not in KEYS:
            known = ", ".join(f"`{known}`" for known in KEYS)
            yield Problem(document.where((key, name), key=True), f"unknown key `{name}`; known are {known}")
        elif name in SIZES:
            yield from _wrong_size(document.where((key, name)), name, item)
        elif name == "shared" and not isinstance(item, bool):
            yield Problem(document.where((key, name)), "`shared` must be `true` or `false`")
        elif name == "dated" and not _is_date(item):
            yield Problem(document.where((key, name)), "`dated` must be a day like `2026-11-29`")
        elif name == "source" and not (isinstance(item, str) and item.strip()):
            yield Problem(document.where((key, name)), "`source` must be a text: who said it")
    if not {"window", "prompt"} & data.keys():
        yield Problem(at, f"`{key}` has neither `window` nor `prompt`")


def _wrong_size(where: str, name: str, value: Any) -> Iterator[Problem]:
    if believable(value) is None:
        what = f"`{name}` must be a whole number of tokens from {SMALLEST} to {LARGEST:,}, got `{value}`"
        yield Problem(where, what, "write it without unit or commas, like `32768`")


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) == 10 and bool(datetime.fromisoformat(value))
    except ValueError:
        return False
