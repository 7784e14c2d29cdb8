"""The transcript: those entries of the journal that are messages, read once and kept with their size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from agentx.context.measure import message_tokens
from agentx.events import Replied, ToolEnded, name_of
from agentx.journal import Entry
from agentx.wires.messages import Message

Kind = Literal["task", "user", "nudge", "assistant", "tool"]

KINDS: dict[str, Kind] = {
    "job.started": "task",
    "message": "user",
    "nudge": "nudge",
    "reply": "assistant",
    "tool.ended": "tool",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One message of the job. `tokens` is the plain estimate; `ok` is false for a tool call that failed, and
    `restored` is true for a result that was brought back."""

    seq: int
    kind: Kind
    message: Message
    tokens: int
    ok: bool = True
    restored: bool = False


def item_of(entry: Entry) -> Item | None:
    """The message that *entry* carries, if it carries one."""
    kind = KINDS.get(name_of(entry.event))
    if kind is None or entry.payload is None or "message" not in entry.payload:
        return None
    if isinstance(entry.event, Replied) and entry.event.purpose != "turn":
        return None
    message = Message.from_json(entry.payload["message"])
    tokens = message_tokens(message)
    if isinstance(entry.event, ToolEnded):
        restored = entry.event.restored_from is not None
        return Item(entry.seq, kind, message, tokens, entry.event.ok, restored)
    return Item(entry.seq, kind, message, tokens)


class Transcript:
    """Items in order of their `seq`. Only ever grows; every question costs no more than what it gives back."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._seqs: list[int] = []
        self._sums: list[int] = [0]
        self.said: list[Item] = []
        """The task and what the user said later."""
        self.said_tokens = 0
        """The plain estimate of all of that."""
        self.read = 0
        """The `seq` up to which models have read everything: the newest reply and what came of it follow."""

    def add(self, item: Item) -> None:
        if item.kind == "assistant":
            self.read = self.last
        self._items.append(item)
        self._seqs.append(item.seq)
        self._sums.append(self._sums[-1] + item.tokens)
        if item.kind in ("task", "user"):
            self.said.append(item)
            self.said_tokens += item.tokens

    @property
    def last(self) -> int:
        """The `seq` of the newest item; 0 when there is none."""
        return self._seqs[-1] if self._seqs else 0

    @property
    def settled(self) -> int:
        """The `seq` of the last item before the newest reply, where calls of that have no result yet; else `last`.
        Their results belong behind it: a view without the reply could not show them."""
        answered: set[str] = set()
        for item in reversed(self._items):
            if item.kind == "assistant":
                calls = {call.id for call in item.message.tool_calls}
                return self.read if calls - answered else self.last
            if item.kind == "tool":
                answered.add(item.message.tool_call_id or "")
        return self.last

    def between(self, after: int, upto: int | None = None) -> list[Item]:
        """The items with `seq` greater than *after*, and at most *upto*."""
        start = bisect_right(self._seqs, after)
        end = len(self._items) if upto is None else bisect_right(self._seqs, upto)
        return self._items[start:end]

    def tokens_after(self, seq: int) -> int:
        """The plain estimate of all items with `seq` greater than *seq*."""
        return self._sums[-1] - self._sums[bisect_right(self._seqs, seq)]

    def item(self, seq: int) -> Item | None:
        index = bisect_left(self._seqs, seq)
        return self._items[index] if index < len(self._seqs) and self._seqs[index] == seq else None

    def tail(self, after: int, tokens: int) -> int:
        """Where to cut so that what follows has at most *tokens*, but at least the newest group.

        Gives the `seq` of the last item before the cut. A group is a message that is no tool result with the tool
        results that follow it; nothing is cut inside one. Looks at no item up to *after*.
        """
        items = self._items
        start = bisect_right(self._seqs, after)
        cut, used, complete = len(items), 0, False
        for index in range(len(items) - 1, start - 1, -1):
            used += items[index].tokens
            if complete and used > tokens:
                break
            if items[index].kind != "tool":
                cut, complete = index, True
        return self._seqs[cut - 1] if cut > start else after
