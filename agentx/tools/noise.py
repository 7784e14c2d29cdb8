"""An optional filter for what commands print: progress bars and repeated lines say nothing more than once."""

from __future__ import annotations

import re

CHANGING = re.compile(r"\d+(?:[.,:]\d+)*|[=#>.\-█▓▒░━╸╺]+|[ \t]+")
"""What differs between two states of one progress bar."""
PROGRESS = re.compile(r"\d ?%|[=#█▓▒░━]{3,}|\b\d+/\d+\b")


class Noise:
    """Filters text piece by piece. A line is given as soon as it is whole; what only repeats it is held back.

    Of a line that was rewritten in place (`\\r`) the last state stays, of lines that are one progress bar the
    first and the last, and of equal lines one, with their number. `removed` counts the characters left out.
    """

    def __init__(self) -> None:
        self.removed = 0
        self._line = ""  # not whole yet
        self._last: str | None = None
        self._held: str | None = None
        self._repeats = 0

    def feed(self, text: str) -> str:
        """What of *text*, which may hold `\\r`, is certain to be shown."""
        *lines, self._line = (self._line + text).replace("\r\n", "\n").split("\n")
        shown = "".join(self._whole(self._rewritten(line)) for line in lines)
        if self._line.count("\r") > 1:
            before, _, last = self._line.rpartition("\r")
            self._line = f"{self._rewritten(before)}\r{last}"
        return shown

    def flush(self) -> str:
        """What was held back, as it is now: somebody looks."""
        shown = self._release() + self._rewritten(self._line)
        self._line, self._last = "", None
        return shown

    def _whole(self, line: str) -> str:
        if line == self._last:
            self._repeats += 1
            return ""
        if self._last is not None and one_bar(line, self._last):
            if self._held is not None:
                self.removed += len(self._held) + 1
            self._held, self._last = line, line
            return ""
        shown = f"{self._release()}{line}\n"
        self._last = line
        return shown

    def _release(self) -> str:
        held = "" if self._held is None else f"{self._held}\n"
        repeated = f"{self._last}\n" * self._repeats
        number = f"[the line before came {self._repeats} more times]\n"
        if len(repeated) > len(number):
            self.removed += len(repeated)
            repeated = number
        self._held, self._repeats = None, 0
        return held + repeated

    def _rewritten(self, line: str) -> str:
        """The last state of a *line* that was rewritten in place."""
        if "\r" not in line:
            return line
        last = next((state for state in reversed(line.split("\r")) if state.strip()), "")
        self.removed += len(line) - len(last)
        return last


def one_bar(line: str, before: str) -> bool:
    """Whether *line* and the one *before* it are two states of one progress bar."""
    is_progress = PROGRESS.search(line) and PROGRESS.search(before)
    return bool(is_progress) and CHANGING.sub("", line) == CHANGING.sub("", before)
