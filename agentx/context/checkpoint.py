"""A checkpoint says what a view may leave out, and what stands for it. It is data, kept in the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All `seq` are of journal entries. Entries after `at`, which it never saw, are shown as they are."""

    at: int = 0
    """The newest item when it was made."""
    upto: int = 0
    """Items up to here are left out, but for `kept`; `summary` and `memory` stand for them."""
    summary: str = ""
    digest: str = ""
    """What code tells of items up to `upto` that the summary does not cover."""
    told: int = 0
    """Items up to here are covered by the summary of a model."""
    memory: str = ""
    """What was brought back: open plan items, notes, running commands, files."""
    index: str = ""
    """The ids of the tool results that are left out, as far as there is room."""
    kept: tuple[int, ...] = ()
    """The task and the user's later words, verbatim."""
    marked: tuple[int, ...] = ()
    """Tool results that are shown as short markers."""
    imageless: tuple[int, ...] = ()
    """Messages whose images are shown as a line of text."""
    trimmed: Mapping[int, int] | None = None
    """Messages that are shown with head and tail only, and how many tokens of them."""
    tokens: int = 0
    """Plain estimate of what it shows of the items up to `at`, without system prompt and tools."""
    threshold: int = 0
    """The budget that it was made for."""
    instead: bool = False
    """It was asked for by a person or a counter, not by size: views of its budget go on from it, although larger
    ones would fit."""

    @property
    def record(self) -> str:
        """What is told of the items that are left out."""
        return "\n\n".join(part for part in (self.summary, self.digest) if part)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "at": self.at,
            "upto": self.upto,
            "summary": self.summary,
            "digest": self.digest,
            "told": self.told,
            "memory": self.memory,
            "index": self.index,
            "kept": list(self.kept),
            "marked": list(self.marked),
            "imageless": list(self.imageless),
            "tokens": self.tokens,
            "threshold": self.threshold,
        }
        if self.instead:
            data["instead"] = True
        if self.trimmed:
            data["trimmed"] = {str(seq): limit for seq, limit in self.trimmed.items()}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Checkpoint:
        return cls(
            at=data["at"],
            upto=data["upto"],
            summary=data["summary"],
            digest=data.get("digest", ""),
            told=data.get("told", data["upto"]),
            memory=data["memory"],
            index=data.get("index", ""),
            kept=tuple(data["kept"]),
            marked=tuple(data["marked"]),
            imageless=tuple(data["imageless"]),
            trimmed={int(seq): limit for seq, limit in data.get("trimmed", {}).items()} or None,
            tokens=data["tokens"],
            threshold=data["threshold"],
            instead=bool(data.get("instead")),
        )
