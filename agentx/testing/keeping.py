"""What a server keeps of a conversation that is larger than its window: nothing, the newest, or a half.

Sources: Ollama's source and captures of 0.5.4 (whole oldest messages go, system messages and the last one
stay, a pair of call and result may be split; one long message ends as about half the window or as all of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentx.testing.counting import PER_MESSAGE, Json, count_message, count_prompt, tail

Overflow = Literal["refuse", "refuse_total", "drop_oldest", "halve", "cut"]
"""`refuse`: an error when the prompt does not fit. `refuse_total`: also when prompt and asked output together
do not. `drop_oldest`: Ollama. `halve`: Ollama with one long message. `cut`: only the last tokens stay."""

KEEP = 4
"""Ollama's `num_keep`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left, what it counts, and how many messages are gone."""

    messages: tuple[Json, ...]
    tokens: int
    dropped: int = 0


def keep(messages: Sequence[Json], tools: Sequence[Json], window: int, overflow: Overflow) -> Kept | None:
    """What a server with *window* reads of *messages*; None when it refuses them.

    Servers that cut read up to the whole window; those that refuse want room for one token of the answer.
    """
    tokens = count_prompt(messages, tools)
    refuses = overflow in ("refuse", "refuse_total")
    if tokens < window or (tokens == window and not refuses):
        return Kept(tuple(messages), tokens)
    if refuses:
        return None
    if overflow == "drop_oldest":
        kept = drop_oldest(messages, tools, window)
        if kept.tokens <= window:
            return kept
    target = window if overflow == "cut" else window - (window - KEEP) // 2
    return keep_end(messages, tools, target)


def drop_oldest(messages: Sequence[Json], tools: Sequence[Json], window: int) -> Kept:
    """Without the oldest messages that must go; system messages and the last one always stay."""
    total = count_prompt(messages, tools)
    gone: set[int] = set()
    for index, message in enumerate(messages[:-1]):
        if total <= window:
            break
        if message["role"] != "system":
            gone.add(index)
            total -= count_message(message)
    left = tuple(message for index, message in enumerate(messages) if index not in gone)
    return Kept(left, total, len(gone))


def keep_end(messages: Sequence[Json], tools: Sequence[Json], target: int) -> Kept:
    """The last *target* tokens: what comes first is cut away, system prompt and all."""
    room = target - count_prompt([], tools)
    left: list[Json] = []
    for message in reversed(messages):
        size = count_message(message)
        if size <= room:
            left.insert(0, message)
            room -= size
            continue
        if room > PER_MESSAGE:
            left.insert(0, _end_of(message, room - PER_MESSAGE))
        break
    dropped = len(messages) - len(left)
    return Kept(tuple(left), min(target, count_prompt(messages, tools)), dropped)


def _end_of(message: Json, tokens: int) -> dict[str, Any]:
    rest = {key: value for key, value in message.items() if key not in ("tool_calls", "images")}
    return rest | {"content": tail(message["content"], tokens)}
