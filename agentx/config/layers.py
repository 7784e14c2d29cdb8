"""Layers of settings, laid one over the other: tables merge by key, everything else replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.config.problems import Where
from agentx.config.yamlfile import Location


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says, and where it says it."""

    data: Mapping[str, Any]
    where: Where


@dataclass(frozen=True, slots=True)
class Merged:
    """All layers as one table. `places` has, for every key of every table, where its value and its key stand."""

    data: dict[str, Any]
    places: Mapping[Location, tuple[str, str]]

    def where(self, at: Location, key: bool = False) -> str:
        """The place of *at*, or of what is nearest around it."""
        for end in range(len(at), 0, -1):
            if place := self.places.get(at[:end]):
                return place[key]
        return "settings"


def merged(layers: Sequence[Layer]) -> Merged:
    """*layers*, lowest first, as one table."""
    data: dict[str, Any] = {}
    places: dict[Location, tuple[str, str]] = {}
    for layer in layers:
        lay(layer.data, data, (), layer, places)
    return Merged(data, places)


def lay(
    over: Mapping[str, Any],
    under: dict[str, Any],
    at: Location,
    layer: Layer,
    places: dict[Location, tuple[str, str]],
) -> None:
    for key, value in over.items():
        here = (*at, key)
        if isinstance(value, dict) and isinstance(under.get(key), dict):
            places[here] = place(layer, here)
            lay(value, under[key], here, layer, places)  # pyright: ignore[reportUnknownArgumentType] -- JSON-like
            continue
        for old in [known for known in places if known[: len(here)] == here]:
            del places[old]
        under[key] = copied(value, here, layer, places)


def copied(value: Any, at: Location, layer: Layer, places: dict[Location, tuple[str, str]]) -> Any:
    """A copy of *value* whose places are noted."""
    places[at] = place(layer, at)
    if isinstance(value, dict):
        return {key: copied(item, (*at, key), layer, places) for key, item in items(value)}
    if isinstance(value, list):
        return [copied(item, (*at, index), layer, places) for index, item in enumerate(listed(value))]
    return value


def place(layer: Layer, at: Location) -> tuple[str, str]:
    return layer.where(at, False), layer.where(at, True)


def items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items())


def listed(value: Any) -> list[Any]:
    return list(value)
