"""Looking into the JSON of a request: what every check of a strict server needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from agentx.testing.counting import Json


def objects(value: Any) -> list[Json]:
    """The objects of a JSON list; none for anything else."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def parts_of(message: Json) -> list[Json]:
    """A message's content as parts; a text is one part."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every object in *value*, with its path."""
    if isinstance(value, dict):
        found = cast(Json, value)
        yield path, found
        for key, inner in found.items():
            yield from walk(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from walk(inner, f"{path}/{number}")
