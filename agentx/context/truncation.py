"""Silent truncation: a server reads only a part of the prompt and answers 200. Suspicion first, then a verdict.

Measured on a real Ollama with a conversation of 5,454 tokens: 4,089 reported at a window of 4,096 and 1,852 at
2,048, for whole messages are dropped, the oldest first; one long message is cut to about half of the window.
Reported / plain estimate is 0.88 to 0.93 without truncation (DESIGN.md section 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentx.context.budget import FLOOR, SMALLEST_REPLY
from agentx.wires.messages import Message

Suspicion = Literal["said", "growth", "slow_growth", "ratio", "size", "probe"]
"""`said`: by the server. `growth`: the count stood still. `slow_growth`: it grew, but too little. `ratio`: too
small for a first request. `size`: it looks like a window. `probe`: a longer request was not read any further."""

GROWTH = 0.1
SLOW_GROWTH = 0.6
FIRST_REQUEST = 0.8
READ = 0.85
"""Less than this share of what a real counter counts was read: truncated."""
GROWN = 0.6
"""The same for what was added since the last request, where tokenizers differ more."""
NOTICED = 200
NOTICED_IN_SUMMARY = 50
CERTAIN_RATIO, CERTAIN_ESTIMATE = 0.1, 500
"""Without any counter: from this estimate on, less than this ratio is certain (lab-harness-local)."""

USUAL = (
    *(1024, 2048, 2304, 3072, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336, 16384),
    *(1024 * n for n in (20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)),
)
"""Sizes that people give windows, rising."""
POWERS = tuple(1024 << n for n in range(1, 11))
KEPT_WHEN_HALVED = 64
"""A halved prompt is half of the window and the few tokens that are always kept."""
SMALLEST_WORKABLE = FLOOR + SMALLEST_REPLY
SMALLEST_DROPPED = 12
"""Tokens of the shortest message that could be missing."""
NOISE, NOISE_AT_THE_END = 0.15, 0.03
"""The share of what came that an estimate may be too high, beyond which something may be missing."""
WORDS_OF_PADDING, TOKENS_PER_MESSAGE = 32, 4
PADDING = " ".join(["word"] * (WORDS_OF_PADDING - 1))
CLEARLY_LESS, SURELY_HALVED = 0.8, 0.65
"""Shares of what was read before: a probe of which less is read was halved, if that is half of a usual window; or
surely."""
SMALLEST_STEP = 64
"""Tokens of the messages that a probe adds, about: so near a window does a server stop that drops whole ones."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The last request on the same link with the same view: what was reported, and its plain estimate."""

    reported: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The server read `reported` of about `estimate` tokens. `learned` is the window that explains it best."""

    reported: int
    estimate: int
    learned: int
    why: Suspicion


def suspicion(
    reported: int, estimate: int, earlier: Earlier | None = None, *, said: bool = False, noticed: int = NOTICED
) -> Suspicion | None:
    """Why the request may have been truncated; None when nothing speaks for it. Costs nothing."""
    if said:
        return "said"
    if earlier is not None:
        grown, expected = reported - earlier.reported, estimate - earlier.estimate
        if expected >= noticed:
            if grown < GROWTH * expected:
                return "growth"
            if grown < SLOW_GROWTH * expected:
                return "slow_growth"
        elif expected >= 0 and grown <= -NOTICED_IN_SUMMARY:
            return "growth"
    elif estimate >= noticed and reported < FIRST_REQUEST * estimate:
        return "ratio"
    return "size" if reported < estimate and (reported in USUAL or _halved(reported)) else None


def verdict(why: Suspicion, *, reported: int, estimate: int, counted: int | None) -> bool:
    """Whether it was truncated. *counted* is the same text by a real counter; None when there is none.

    For `slow_growth` all three numbers are of what was added since the earlier request, for the others of the
    whole prompt.
    """
    if why in ("said", "growth"):
        return True
    if why == "slow_growth":
        return counted is not None and reported < GROWN * counted
    if counted is not None:
        return reported < READ * counted
    if estimate >= CERTAIN_ESTIMATE and reported < CERTAIN_RATIO * estimate:
        return True
    return reported in USUAL and reported < FIRST_REQUEST * estimate


def in_doubt(reported: int, expected: int, *, grown: int | None = None, final: bool = False) -> int | None:
    """The tokens that a longer request must go beyond to tell whether the server read all; None where it did.

    It *reported* so many of the tokens that were *expected*, of which *grown* came since its last report (None:
    there was none on this view). What goes first is the oldest message, which is the task, and a task is often so
    short that no ratio shows it. A *final* reply is the last chance to notice.
    """
    missing = expected - reported
    if missing < SMALLEST_DROPPED:
        return None
    usual = any(reported <= size < expected for size in USUAL if size >= SMALLEST_WORKABLE)
    noise = (NOISE_AT_THE_END if final else NOISE) * (expected if grown is None else grown)
    if not usual and (expected < SMALLEST_WORKABLE or missing <= noise):
        return None
    return expected


def looks_like_a_window(reported: int) -> bool:
    """Whether *reported* is a usual window, or half of one."""
    return reported in USUAL or _halved(reported) is not None


def probed_window(read: int, more: int, probe: int, *, message: int = 0) -> int | None:
    """The window of a server that *read* so many tokens of a request, and *probe* of the same with *more* after
    it; None when it read that too. *message* is the size of the largest message, which may have been dropped.

    It holds at least what it read. Where it reads even less of a longer request, it halves what is too long.
    """
    if probe >= read + READ * more:
        return None
    halved = _halved(probe, [size for size in USUAL if size >= read]) if probe < CLEARLY_LESS * read else None
    if halved is not None:
        return halved
    most = max(read, probe)
    if probe < SURELY_HALVED * read or most < SMALLEST_WORKABLE:
        return max(most, 2 * (probe - KEPT_WHEN_HALVED))
    step = max(SMALLEST_STEP, message)
    return next((size for size in USUAL if most <= size <= most + step), most)


def padding(tokens: int) -> tuple[Message, ...]:
    """Short messages of about *tokens* in all, to be put after a conversation; they end with the user's."""
    pair = WORDS_OF_PADDING + 2 * TOKENS_PER_MESSAGE
    notes = [
        message
        for _ in range(max(1, tokens // pair))
        for message in (Message(role="assistant", text="word"), Message(role="user", text=PADDING))
    ]
    return tuple(notes)


def learned_window(reported: int, believed: int, sizes: Sequence[int], *, fixed: int = 0) -> int:
    """The window that explains why *reported* tokens were read of messages with *sizes* (tokens, oldest first,
    without the system prompt). *fixed* is what system prompt and tools take of *reported*.

    Always below *believed*, so that learning ends. At most what was reported plus one dropped message; within that
    the largest usual size, since a server whose window is too small to work with is lost.
    """
    ceiling = max(1, believed - 1)
    if reported in USUAL and reported <= ceiling:
        return reported
    whole = _halved(reported)
    if whole is not None and whole <= ceiling:
        return whole
    most = min(ceiling, reported + dropped(reported - fixed, sizes))
    usual = [size for size in USUAL if reported <= size <= most]
    if usual and usual[-1] >= SMALLEST_WORKABLE:
        return usual[-1]
    if reported < SMALLEST_WORKABLE:
        if (whole := _halved(reported, USUAL)) is not None and SMALLEST_WORKABLE <= whole <= ceiling:
            return whole
        if most >= SMALLEST_WORKABLE:
            return SMALLEST_WORKABLE
    return usual[-1] if usual else max(1, min(ceiling, reported))


def dropped(read: int, sizes: Sequence[int]) -> int:
    """The tokens of the message that was dropped last: the largest one near the place from where *read* are left.

    Where exactly the server stopped is uncertain by a message or two.
    """
    left = sum(sizes)
    for index, size in enumerate(sizes):
        if left <= read:
            return max(sizes[max(0, index - 2) : index + 2], default=0)
        left -= size
    return max(sizes[-2:], default=0)


def _halved(reported: int, windows: Sequence[int] = POWERS) -> int | None:
    """The window of which *reported* is one half and a little."""
    return next((size for size in windows if 0 < reported - size // 2 <= KEPT_WHEN_HALVED), None)
