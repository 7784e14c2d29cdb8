"""What a file holds in place of the text that a model believed to be there."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

NUMBERED = re.compile(r"\s*\d+\t")
LINES_LOOKED_AT = 20_000
LINE_CHARS = 300
SHOWN_LINES = 12


def closest_lines(text: str, wanted: str) -> str:
    """A few words for the model: the lines of *text* that are most like *wanted*, with their numbers."""
    looked_for = wanted.splitlines()
    if all(NUMBERED.match(line) for line in looked_for if line.strip()):
        return "the line numbers of read_file are not part of the file: leave them out"
    lines = [line[:LINE_CHARS].rstrip("\r") for line in text.split("\n")[:LINES_LOOKED_AT]]
    squeezed = [" ".join(line.split()) for line in looked_for]
    start = next((i for i, line in enumerate(squeezed) if line), None)
    if start is None:
        return "`old` holds nothing but blanks"
    bare = [" ".join(line.split()) for line in lines]
    for index in range(len(bare) - len(squeezed) + 1):
        if bare[index : index + len(squeezed)] == squeezed:
            return _shown("only blanks differ; the file holds", lines, index, len(squeezed))
    best = _most_like(bare, squeezed[start])
    if best is None:
        return f"nothing in it is like `{squeezed[start][:80]}`: read the file again"
    return _shown("the closest lines are", lines, max(0, best - start), len(squeezed))


def _most_like(lines: list[str], wanted: str) -> int | None:
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:LINE_CHARS])
    best, ratio = None, 0.5
    for index, line in enumerate(lines):
        if not line:
            continue
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio and matcher.ratio() > ratio:
            best, ratio = index, matcher.ratio()
    return best


def _shown(words: str, lines: list[str], index: int, count: int) -> str:
    shown = lines[index : index + min(count, SHOWN_LINES)]
    return f"{words}:\n" + "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, index + 1))
