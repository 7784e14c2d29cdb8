"""LiteLLM's catalogue file, read without importing LiteLLM: windows and prices of hosted models.

Look-ups are provider-qualified and never cross providers: the same bare name has several windows at several
providers (269 of 2,181 names). Never for a self-hosted address. `max_tokens` is no window and is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from agentx.config.links import Link
from agentx.windows.record import Window, believable, undated

FILE = "model_prices_and_context_window_backup.json"
DECODER = json.JSONDecoder()
OPENING = re.compile(rb'\s*\{(\s*)(?=")')


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for one token."""

    input: float
    output: float
    cache_read: float
    cache_write: float


def catalogue_file() -> Path | None:
    """Where the installed LiteLLM keeps its catalogue; its package is found but not executed."""
    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder) / FILE).is_file():
            return file
    return None


class Catalogue:
    """The entries of one file. It is indexed when first asked; only the wanted entries are read and kept."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._index: Index | None = None
        self._entries: dict[tuple[tuple[str, ...], str | None, str], tuple[str, Mapping[str, Any]] | None] = {}

    def window(self, link: Link) -> Window | None:
        """The catalogue's window of *link*; None where it has none or none can be believed."""
        found = self._entry(link)
        if found is None:
            return None
        key, entry = found
        prompt = believable(entry.get("max_input_tokens"))
        output = believable(entry.get("max_output_tokens"))
        if prompt is None:
            return None
        return Window(
            prompt=prompt,
            # A thousand entries repeat the window there: no limit of the output.
            output=output if output and output < prompt else None,
            source="catalogue",
            detail=f"litellm {key} max_input_tokens",
            confidence="catalogued",
            seen_at=self.file.stat().st_mtime if self.file else 0.0,
        )

    def price(self, link: Link) -> Price | None:
        """What *link* costs; None where the catalogue does not say both prices."""
        found = self._entry(link)
        if found is None:
            return None
        entry = found[1]
        into, out = _dollars(entry, "input_cost_per_token"), _dollars(entry, "output_cost_per_token")
        if into is None or out is None:
            return None
        read = _dollars(entry, "cache_read_input_token_cost")
        write = _dollars(entry, "cache_creation_input_token_cost")
        return Price(
            input=into,
            output=out,
            cache_read=into if read is None else read,
            cache_write=into if write is None else write,
        )

    def _entry(self, link: Link) -> tuple[str, Mapping[str, Any]] | None:
        if link.provider.self_hosted or not link.provider.catalogue or self.file is None:
            return None
        wanted = (link.provider.catalogue, link.provider.litellm_prefix, link.model)
        if wanted not in self._entries:
            self._entries[wanted] = self._look_up(*wanted)
        return self._entries[wanted]

    def _look_up(
        self, providers: tuple[str, ...], prefix: str | None, name: str
    ) -> tuple[str, Mapping[str, Any]] | None:
        """The entry of *name*: its key begins with the provider, with LiteLLM's prefix for it, or with neither."""
        if self._index is None:
            self._index = read_index(self.file) if self.file else Index({})
        befores = (*providers, prefix) if prefix else providers
        for model in dict.fromkeys((name, undated(name))):
            keys = dict.fromkeys((*(f"{before}/{model}" for before in befores), model))
            hits = [
                (key, entry)
                for key in keys
                if (entry := self._index.entry(self.file, key)) and entry.get("litellm_provider") in providers
            ]
            if hits:
                return min(hits, key=lambda hit: believable(hit[1].get("max_input_tokens")) or 1 << 62)
        return None


@dataclass(frozen=True, slots=True)
class Index:
    """Where each entry stands in the file: from which byte to which. Parsing all of it would cost 30 MB.

    `parsed` holds the entries of a file that is not written one key a line.
    """

    places: Mapping[str, tuple[int, int]]
    parsed: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def entry(self, file: Path | None, key: str) -> Mapping[str, Any] | None:
        """The object at *key*; None where there is none, or the file is another one by now."""
        found = self.parsed.get(key)
        if (place := self.places.get(key)) and file:
            try:
                with file.open("rb") as stream:
                    stream.seek(place[0])
                    found, _ = DECODER.raw_decode(stream.read(place[1] - place[0]).decode("utf-8"))
            except (OSError, ValueError, RecursionError):
                return None
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def read_index(file: Path) -> Index:
    """The index of *file*; an empty one when it cannot be read."""
    try:
        data = file.read_bytes()
        opening = OPENING.match(data)
        if opening is None:
            return Index({})
        if not opening[1]:
            whole = json.loads(data)
            return Index({}, cast("Mapping[str, Any]", whole) if isinstance(whole, dict) else {})
    except (OSError, ValueError, RecursionError):
        return Index({})
    # What stands before the first key stands before every key of the outermost object, and before no other.
    keys = re.compile(re.escape(opening[1]) + rb'"((?:[^"\\\n]|\\.)*)"\s*:\s*(?=\{)')
    found = list(keys.finditer(data))
    ends = [*(match.start() for match in found[1:]), len(data)]
    return Index(
        {_text(match[1]): (match.end(), end) for match, end in zip(found, ends, strict=True)},
    )


def _text(quoted: bytes) -> str:
    """A key without its escapes; one that is no text is kept as it stands, where nobody asks for it."""
    if b"\\" not in quoted:
        return quoted.decode("utf-8", "replace")
    try:
        return str(json.loads(b'"' + quoted + b'"'))
    except ValueError:
        return quoted.decode("utf-8", "replace")


def _dollars(entry: Mapping[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        return None
    return float(value)
