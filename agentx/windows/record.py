"""The window as a record, not a number: what is known of one model at one endpoint, from where, and since when."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

Confidence = Literal["proven", "served", "listed", "catalogued", "assumed"]
Source = Literal[
    "config",
    "learned",
    "served",
    "requested",
    "listed",
    "cache",
    "windows.yaml",
    "catalogue",
    "assumed",
]

SMALLEST, LARGEST = 256, 20_000_000
DATE = re.compile(r"(-20\d{6}|-20\d\d-\d\d-\d\d|@20\d{6}|-\d{3}|-v\d+:\d+)$")
"""How a dated snapshot ends; a snapshot may stand for its undated name, never the other way round."""


def believable(value: Any) -> int | None:
    """*value* when it is a whole number that a window can be (256 to 20,000,000), else None.

    0, null, booleans, strings and 1e30 all occur in real answers and are all refused (facts: windows, trap 1).
    """
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if SMALLEST <= value <= LARGEST else None


def undated(model: str) -> str:
    """*model* without the date of its snapshot: what is known of the one holds for the other unless it is told."""
    return DATE.sub("", model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All numbers are tokens. `detail` says where exactly it was read: route and field, file:line, a refusal."""

    served: int | None = None
    """What the server holds now, prompt and (if `shared`) output together."""
    trained: int | None = None
    """What the model was trained for: a ceiling, never a budget."""
    prompt: int | None = None
    """A limit for the prompt alone."""
    output: int | None = None
    """The most that one reply may have."""
    shared: bool = True
    source: Source
    detail: str
    confidence: Confidence
    seen_at: float
    """Epoch seconds."""

    @property
    def size(self) -> int:
        """The one number that budgets are made from: the smallest limit that a prompt meets."""
        limits = [limit for limit in (self.served, self.prompt) if limit]
        return min(limits) if limits else 0

    def at_most(self, limit: int) -> Window:
        """The same window with *limit* as its ceiling."""
        return replace(self, served=min(self.served or limit, limit))

    def at_least(self, size: int) -> Window:
        """The same window with room for *size* tokens."""
        prompt = self.prompt and max(self.prompt, size)
        return replace(self, served=max(self.served or size, size), prompt=prompt)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}
