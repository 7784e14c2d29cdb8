"""What a job reads of its workspace by itself: instructions, current files, what changed since a moment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentx.tools.cleaning import clean

INSTRUCTIONS = "AGENTS.md"
LARGEST_READ = 400_000
"""Bytes of a file that can come back into a view; larger ones are named only."""

MOST_LISTED = 30
PASSED_OVER = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Instructions:
    """The project's own words for the model; `trouble` says what of them it does not get."""

    text: str = ""
    trouble: str | None = None


def instructions_of(workspace: Path) -> Instructions:
    """AGENTS.md at the workspace's root, as far as it can be read."""
    file = workspace / INSTRUCTIONS
    if not os.path.lexists(file):
        return Instructions()
    if not _is_own_file(workspace, file):
        return Instructions(trouble="is no file of the workspace; it is left out")
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST_READ + 1)
    except OSError as error:
        return Instructions(trouble=f"cannot be read: {error.strerror}")
    text = clean(data[:LARGEST_READ].decode("utf-8", "replace")).strip()
    if len(data) > LARGEST_READ:
        return Instructions(text, f"is longer than {LARGEST_READ:,} bytes; the rest of it is left out")
    return Instructions(text, "is not UTF-8; some characters are lost" if "\ufffd" in text else None)


def read_text(workspace: Path, path: str) -> str | None:
    """A text file of the workspace; None when it is gone, outside, too large, or no text."""
    file = workspace / path
    try:
        if not _is_own_file(workspace, file) or file.stat().st_size > LARGEST_READ:
            return None
        return clean(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _is_own_file(workspace: Path, file: Path) -> bool:
    """Whether *file* is a plain file inside *workspace*: a pipe would never end."""
    return file.resolve().is_relative_to(workspace.resolve()) and file.is_file()


def changed_since(workspace: Path, moment: float) -> str:
    """Files of the workspace that changed after *moment* (epoch seconds), a line each; at most 30."""
    changed: list[str] = []
    for folder, folders, files in os.walk(workspace):
        folders[:] = [name for name in folders if name not in PASSED_OVER]
        for name in files:
            file = Path(folder) / name
            try:
                if file.lstat().st_mtime >= moment:
                    changed.append(f"- {file.relative_to(workspace)}")
            except OSError:
                continue
            if len(changed) > MOST_LISTED:
                return "\n".join([*sorted(changed[:MOST_LISTED]), "- and more"])
    return "\n".join(sorted(changed)) or "- nothing"
