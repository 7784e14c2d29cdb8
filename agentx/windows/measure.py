"""Measuring a window: which request to send next, and what the answers prove. Pure; `measuring` does the asking.

Evidence is the server's own count of what it read, a refusal that names its limit, and two planted words. Small
models fail to repeat words that they have read, so a word that is missing proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.windows.overflow import Overflow

SIZES = (300, 1_000, 2_560)
"""Tokens of the first requests, which teach how the server counts; from there they double."""
BEYOND = 1.12
"""So far beyond what is believed the window is tried: a server that holds just that would show it."""
READ, READ_COUNTED = 0.95, 0.98
"""Less than this share of what was expected was read: cut. The expectation is a line through earlier samples, or
the server's own count."""
READ_FIRST, SURELY_CUT = 0.8, 0.7
"""The same where one small request is all that the expectation is made of: in between nothing is certain."""
REPLY = 64
"""Tokens that each reply may have."""
MARGIN = 0.97
WORTH = 1.25
"""A request that is not larger than the last one by this teaches nothing."""
CLOSE = 1.15
"""Two sizes so near each other need no third between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request and what came of it; all numbers are tokens.

    `estimate` is the plain guess at what was sent, `counted` the server's own count of it where it has a counter,
    `read` what it reported to have read. `granule` is the guess at the largest message. `first` and `last` say
    whether the planted words came back, None where no reply could be read.
    """

    estimate: int
    counted: int | None = None
    read: int | None = None
    output: int = 0
    granule: int = 0
    first: bool | None = None
    last: bool | None = None
    refusal: Overflow | None = None
    said_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A sample with the tokens that it must have had. `whole`: all of it was read. `cut`: certainly not."""

    sample: Sample
    expected: int
    whole: bool
    cut: bool

    @property
    def tokens(self) -> int:
        """What it used at most: prompt and reply."""
        return max(self.expected, self.sample.read or 0) + REPLY


def judged(samples: Sequence[Sample]) -> list[Judged]:
    """Each sample in the light of those before it: what one token of estimate counts is learned from them."""
    made: list[Judged] = []
    for sample in samples:
        whole = [one for one in made if one.whole]
        expected = sample.counted or expectation(sample.estimate, whole)
        share = sample.read / expected if sample.read else None
        exact = sample.counted is not None or len(whole) > 1
        least = READ_COUNTED if sample.counted else READ if exact else READ_FIRST
        lost = sample.first is False and any(one.sample.first for one in whole)
        cut = sample.said_truncated or (
            share is not None and bool(made) and (share < SURELY_CUT or (share < least and (exact or lost)))
        )
        read = sample.refusal is None and share is not None and not sample.said_truncated
        made.append(Judged(sample, expected, read and (not made or (share or 0) >= least), cut))
    return made


def expectation(estimate: int, whole: Sequence[Judged]) -> int:
    """The tokens that a plain *estimate* stands for, by the samples that were read whole."""
    points = sorted({(one.sample.estimate, one.sample.read or 0) for one in whole})
    if not points:
        return estimate
    (x0, y0), (x1, y1) = points[0], points[-1]
    if x1 - x0 < x0:  # too near for a line
        return max(1, round(estimate * y1 / x1))
    return max(1, round(y0 + (estimate - x0) * (y1 - y0) / (x1 - x0)))


def estimate_for(tokens: int, samples: Sequence[Sample]) -> int:
    """The plain estimate of a request of *tokens*: the other way round."""
    whole = [one for one in judged(samples) if one.whole]
    return round(tokens * tokens / max(1, expectation(tokens, whole)))


def next_size(samples: Sequence[Sample], believed: int, budget: int) -> int | None:
    """The tokens of the next request; None when enough is known or *budget* (tokens, all requests) is used up.

    Sizes double until something happens. What reaches beyond the *believed* window is kept for that.
    """
    made = judged(samples)
    if not made:
        return min(SIZES[0], budget - REPLY)
    left = int((budget - sum(one.tokens for one in made)) * MARGIN) - REPLY
    if any(one.sample.refusal for one in made):
        size = _between(made)
    elif any(not one.whole for one in made):
        size = _confirming(made)
    else:
        return _growing(made[-1].expected, believed, left)
    return size if size and size <= left else None


def _growing(last: int, believed: int, left: int) -> int | None:
    # At most twice the last one: what is then read of it can be the window or, if less, half of the window.
    size = next((step for step in SIZES if step >= last * WORTH), 2 * last - 8)
    goal = int(believed * BEYOND)
    if last * 1.05 < goal <= left:
        return goal if size >= 0.8 * goal or left - size - REPLY < goal else size
    size = min(size, left)
    return size if size >= last * WORTH else None


def _between(made: Sequence[Judged]) -> int | None:
    """Half-way between what was read and what was refused, where no refusal named the limit."""
    refused = [one for one in made if one.sample.refusal]
    if any(
        one.sample.refusal and (one.sample.refusal.limit or one.sample.refusal.cause != "input") for one in refused
    ):
        return None
    low = max((one.expected for one in made if one.whole), default=1)
    high = min(one.expected for one in refused)
    return int((low * high) ** 0.5) if high > low * CLOSE else None


def _confirming(made: Sequence[Judged]) -> int | None:
    """One request more where a cut may have been to the window or to half of it."""
    cuts = [one for one in made if one.cut]
    if len(cuts) != 1 or cuts[0] is not made[-1] or not cuts[0].sample.read:
        return None
    read = cuts[0].sample.read
    return int(read * WORTH) if read >= largest_whole(made) and 2 * read <= cuts[0].expected else None


def largest_whole(made: Sequence[Judged]) -> int:
    """The most tokens that were read whole."""
    return max((one.sample.read or 0 for one in made if one.whole), default=0)
