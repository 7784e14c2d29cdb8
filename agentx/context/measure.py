"""How many tokens something holds: an estimate from its characters, and what providers taught us about it.

The estimate is plain on purpose (four ASCII characters a token); what it is wrong by is learned for each link
from the counts that its provider reports.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.wires.messages import Message, Tool

PER_MESSAGE = 4
PER_CALL = 4
PER_TOOL = 8
PER_IMAGE = 1_200
LARGEST_IMAGE = 50_000
"""In tokens: gpt-4o-mini counts about 37,000 for a large one in full detail."""
MARKERS, HIDDEN = 64, 4_096
"""In tokens: what a template writes around a message or a tool, and what providers add to a prompt themselves."""
UNKNOWN = 1.25
"""What an estimate is multiplied with before the link's provider reported anything: dense code is nearer 3.3
characters a token."""
SMALLEST, LARGEST = 0.5, 4.0
"""The ratio of reported to estimated stays in here. 2 was too tight in the field: 2.6 was measured."""
NEWEST_WEIGHT = 0.3
SMALLEST_SAMPLE = 50

ASCII = re.compile(r"[\x00-\x7f]+")


def text_tokens(text: str) -> int:
    """The estimate for *text*: ASCII 1/4 a character, accents, Greek, Cyrillic, Arabic 1/2, CJK 1.2, emoji 1.5."""
    if text.isascii():
        return (len(text) + 3) // 4
    others = ASCII.sub("", text)
    return math.ceil((len(text) - len(others)) / 4 + sum(map(_weight, others)))


def fitting(text: str, tokens: int) -> int:
    """How many characters from the start of *text* make at most *tokens*."""
    if text.isascii():
        return max(0, min(len(text), tokens * 4))
    used = 0.0
    for index, character in enumerate(text):
        used += _weight(character)
        if used > tokens:
            return index
    return len(text)


def message_tokens(message: Message) -> int:
    """The estimate for one message with its calls and images. Reasoning does not count: it seldom goes back."""
    calls = sum(PER_CALL + text_tokens(call.name) + text_tokens(call.arguments) for call in message.tool_calls)
    return PER_MESSAGE + text_tokens(message.text) + calls + PER_IMAGE * len(message.images)


def tools_tokens(tools: Iterable[Tool]) -> int:
    """The estimate for the descriptions and schemas of *tools*."""
    return sum(PER_TOOL + text_tokens(f"{tool.name} {tool.description} {schema(tool)}") for tool in tools)


def estimate(messages: Iterable[Message], tools: Iterable[Tool] = ()) -> int:
    """The plain estimate for a whole prompt."""
    return sum(map(message_tokens, messages)) + tools_tokens(tools)


def most_tokens(messages: Iterable[Message], tools: Iterable[Tool] = ()) -> int:
    """More than a whole prompt can be by any tokenizer: no token stands for less than a byte."""
    most = HIDDEN
    for message in messages:
        calls = sum(len(call.name) + len(call.arguments.encode()) + MARKERS for call in message.tool_calls)
        words = len(message.text.encode("utf-8", "replace")) + len(message.reasoning.encode("utf-8", "replace"))
        most += MARKERS + words + calls + LARGEST_IMAGE * len(message.images)
    return most + sum(MARKERS + len(f"{tool.name}{tool.description}{schema(tool)}".encode()) for tool in tools)


def schema(tool: Tool) -> str:
    return json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"), default=dict)


def rendered(messages: Iterable[Message], tools: Iterable[Tool] = ()) -> str:
    """What a real tokenizer is given to count: all text that is sent, about as templates write it."""
    parts = [f"<|{tool.name}|>{tool.description}\n{schema(tool)}\n" for tool in tools]
    for message in messages:
        calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
        parts.append(f"<|{message.role}|>{message.text}{calls}\n")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How reported tokens relate to estimated ones on one link, as a moving value; None before any report."""

    ratio: float | None = None

    def after(self, reported: int, estimated: int) -> Calibration:
        """The calibration that also knows this report. Never give it one of a truncated or a summary request."""
        if estimated < SMALLEST_SAMPLE or reported <= 0:
            return self
        seen = min(LARGEST, max(SMALLEST, reported / estimated))
        if self.ratio is None:
            return Calibration(seen)
        return Calibration(self.ratio + NEWEST_WEIGHT * (seen - self.ratio))

    @property
    def factor(self) -> float:
        """What estimates are multiplied with for decisions."""
        return UNKNOWN if self.ratio is None else self.ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a link reported for one request, and what that request was.

    `generation` is the checkpoint of its view, `last` the newest journal entry in it, `reply` the journal entry
    of the answer; `estimate` is plain, and `fixed` the part of it that is system prompt and tools.
    """

    generation: int
    last: int
    reply: int
    estimate: int
    fixed: int
    input: int
    output: int

    def now(self, *, fixed: int, since: int, factor: float) -> int:
        """The tokens of the same view today: *fixed* as it is now, *since* the estimate of what came later."""
        return max(1, self.input + self.output + round((fixed - self.fixed + since) * factor))


def view_fields(data: Any) -> tuple[int, int, int, int, str] | None:
    """Generation, last, estimate, fixed and link of a view that a reply's payload keeps; None when it is none."""
    try:
        return (
            int(data["generation"]),
            int(data["last"]),
            int(data["estimate"]),
            int(data["fixed"]),
            str(data["link"]),
        )
    except (TypeError, KeyError, ValueError):
        return None


def water_level(sizes: Sequence[int], budget: int) -> int:
    """The highest cap with which all *sizes*, each cut to the cap, fit into *budget* together."""
    left = budget
    for index, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - index)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _weight(character: str) -> float:
    point = ord(character)
    if point < 0x80:
        return 0.25
    if point < 0x900:
        return 0.5
    return 1.2 if point < 0x10000 else 1.5
