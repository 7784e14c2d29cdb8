"""What a job reads of its workspace by itself: instructions, current files, what changed since a moment."""

from __future__ import annotations

import os
from pathlib import Path

INSTRUCTIONS = "AGENTS.md"
LARGEST_READ = 400_000
"""Bytes of a file that can come back into a view; larger ones are named only."""

MOST_LISTED = 30
PASSED_OVER = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def instructions_of(workspace: Path) -> str:
    """The text of AGENTS.md at the workspace's root; empty when there is none or it cannot be read."""
    return (read_text(workspace, INSTRUCTIONS) or "").strip()


def read_text(workspace: Path, path: str) -> str | None:
    """A text file of the workspace; None when it is gone, outside, too large, or no text."""
    file = (workspace / path).resolve()
    if not file.is_relative_to(workspace.resolve()):
        return None
    try:
        if file.stat().st_size > LARGEST_READ:
            return None
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


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
