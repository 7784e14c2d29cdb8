"""A reply while it comes, for a person who watches: its lines are marked, and it is said when they are dropped."""

from __future__ import annotations

from collections.abc import Iterator

from agentx.events import Event, JobEnded, LinkFailed, LinkSwitched, Replied, Truncated

MARK = "  ┊ "
LEGEND = f"{MARK}(what is marked like this is still coming, and counts only when its turn is told)"
DROPPED = f"{MARK}(dropped: this reply did not come whole, and is no part of the job)"


class Provisional:
    """Pieces of text in, lines to show out."""

    def __init__(self) -> None:
        self._explained = False
        self._last = ""
        self._open = False

    @property
    def begun(self) -> str:
        """The line that has no end yet."""
        return MARK + self._last

    def lines(self, piece: str) -> Iterator[str]:
        """The lines that *piece* completes."""
        if not self._explained:
            self._explained = True
            yield LEGEND
        self._open = True
        *done, self._last = (self._last + piece).split("\n")
        yield from (MARK + line for line in done)

    def after(self, event: Event) -> Iterator[str]:
        """What is to be shown before the line for *event*: the rest of a whole reply, or that one was dropped."""
        if not self._open or not isinstance(event, Replied | LinkFailed | LinkSwitched | Truncated | JobEnded):
            return
        if self._last:
            yield self.begun
        if not isinstance(event, Replied):
            yield DROPPED
        self._last, self._open = "", False
