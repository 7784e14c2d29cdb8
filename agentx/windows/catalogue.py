"""LiteLLM's catalogue file, read without importing LiteLLM: windows and prices of hosted models.

Look-ups are provider-qualified and never cross providers: the same bare name has several windows at several
providers (269 of 2,181 names). Never for a self-hosted address. `max_tokens` is no window and is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentx.config.links import Link
from agentx.windows.catalogue_index import Index, index_of
from agentx.windows.record import Window, believable, undated

FILE = "model_prices_and_context_window_backup.json"


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

    def __init__(self, file: Path | None, index: Path | None = None) -> None:
        """*index* is where the index of *file* is kept for the next process; None makes it anew each time."""
        self.file = file
        self._kept = index
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

    def sees_images(self, link: Link) -> bool | None:
        """Whether the model of *link* sees images; None where the catalogue does not say."""
        found = self._entry(link)
        told = found and found[1].get("supports_vision")
        return told if isinstance(told, bool) else None

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
            self._index = index_of(self.file, self._kept) if self.file else Index()
        befores = (*providers, prefix) if prefix else providers
        for model in dict.fromkeys((name, undated(name))):
            hits = [
                (key, entry)
                for key in dict.fromkeys((*(f"{before}/{model}" for before in befores), model))
                if (entry := self._index.entry(self.file, key)) and entry.get("litellm_provider") in providers
            ]
            if hits:
                return min(hits, key=lambda hit: believable(hit[1].get("max_input_tokens")) or 1 << 62)
        return None


def _dollars(entry: Mapping[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        return None
    return float(value)
