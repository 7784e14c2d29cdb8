"""What to do after a failure: pure, from the failure and what was already tried at this link (issue: the table).

Switch before you sleep: nothing here waits longer than half a second; a link that needs longer rests, and the
next one is asked meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from agentx.chain.classify import Failure
from agentx.chain.images import LEAVES_OUT_IMAGES
from agentx.chain.parameters import NAMES, Changes, changed
from agentx.errors import ErrorClass

Action = Literal["again", "lower", "raise", "tell", "rebuild", "change", "lighten", "repair", "next"]
Fate = Literal["ready", "rest", "out", "unfit"]
"""What becomes of the link. `unfit`: it is not asked again for this request, and is otherwise well."""

QUICK: frozenset[ErrorClass] = frozenset({"network", "server", "timeout"})
BROKEN: frozenset[ErrorClass] = frozenset({"invalid_reply", "empty_reply"})
TOO_LARGE: frozenset[ErrorClass] = frozenset({"overflow", "truncated", "too_many_bytes", "output_cap"})
REFUSED: frozenset[ErrorClass] = frozenset({"bad_request", "content_filter"})
MOST_REBUILDS = 3
MOST_GUESSES = 2
"""Smaller requests that are tried where only a size speaks for an overflow."""
MOST_LOWERINGS = 3
MOST_LIGHTENED = 8
"""How often the images of one request are halved before another link is asked."""
MOST_TOLD = 3
"""How often a model is told to write less at a time before another link is asked."""
LARGER = 4
"""A cut reply gets so many times its output budget, once."""
MOST_BROKEN = 6
"""Broken replies that one link may give to one request: after that it is unfit for it."""
QUICK_PAUSE, QUICK_SPREAD = 0.1, 0.4
SMALLEST_OUTPUT = 64
OUTPUT_MARGIN = 16
"""What `Failure.output_cap` leaves free below a stated limit."""
UNASKED_OUTPUT = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """What was tried for one request at one link. `sent` is its size, `max_tokens` its output budget (tokens)."""

    sent: int
    max_tokens: int | None = None
    most_tokens: int | None = None
    """What the output budget may be raised to."""
    fresh: bool = True
    """The link did not fail before this request."""
    alone: bool = True
    """No other link is ready."""
    quick: int = 0
    rebuilt: int = 0
    shrank: bool = True
    """The last rebuild made the request smaller."""
    large: bool = False
    """One of the requests was more than half of what may be sent to this link at all."""
    images: bool = False
    """The request shows images."""
    image_bytes: int = 0
    """What they take of it, where they are most of it."""
    lightened: int = 0
    lowered: int = 0
    repaired: bool = False
    """Its history was put in order already."""
    raised: bool = False
    told: int = 0
    """How often the model was told to write less at a time, by any link; MOST_TOLD where nobody can tell it."""
    changes: Changes = field(default_factory=dict[str, str | None])
    """What the last request left out or renamed."""
    broken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`again`: the same request, after `pause` seconds. `lower` and `raise`: with `max_tokens`. `rebuild`: made
    anew by the caller, after the window `learn` was learned or `guess` supposed. `tell`: made anew, after the
    model was told to write less at a time. `change`: with the `changes` of its parameters. `lighten`: without its
    oldest images, so that half of their bytes is left. `repair`: with a history in better order. `next`: the next
    link, and this one gets its `fate`."""

    action: Action
    fate: Fate = "ready"
    pause: float = 0.0
    max_tokens: int | None = None
    learn: int | None = None
    guess: int | None = None
    changes: Changes | None = None


def suspected(failure: Failure, attempts: Attempts) -> Failure:
    """*failure* as a probable overflow, where nothing was said and the request was large: else as it is."""
    if failure.error_class == "too_many_bytes" and attempts.image_bytes:
        return failure
    if not failure.wordless or not attempts.large or attempts.rebuilt >= MOST_GUESSES:
        return failure
    text = f"answered {failure.status} without a word to about {attempts.sent:,} tokens: probably too many"
    return replace(failure, error_class="overflow", scope="request", message=text, known=True, guessed=True)


@dataclass(frozen=True, slots=True)
class Room:
    """What refusals of an output budget said, for those of later requests alone. `limit` is what prompt and output
    may have together, in tokens, `ratio` how many of them the prompt had for each that was estimated; `most` is
    what was accepted where only the output was too much."""

    limit: int | None = None
    ratio: float = 1.0
    most: int | None = None

    def left(self, asked: int, estimate: int) -> int:
        """The output budget for who *asked* for one, beside a prompt of *estimate* tokens; a little less, to be
        safe."""
        budgets = [asked] if self.most is None else [asked, self.most]
        if self.limit is not None:
            beside = self.limit - round(estimate * self.ratio * 1.05) - OUTPUT_MARGIN
            budgets.append(max(SMALLEST_OUTPUT, beside))
        return min(budgets)


def decide(failure: Failure, attempts: Attempts, chance: float) -> Step:
    """The next step; *chance* (0 to 1) spreads the pause."""
    found = failure.error_class
    can_change = failure.refuses is not None and (attempts.images or failure.refuses.name not in LEAVES_OUT_IMAGES)
    if failure.refuses is not None and can_change and len(attempts.changes) <= len(NAMES):
        new = changed(attempts.changes, failure.refuses)
        if new is not None:
            return Step(action="change", changes=new)
    if found in QUICK:
        return _quick(failure, attempts, chance)
    if found in BROKEN:
        if attempts.broken % 2 == 0:
            return Step(action="again")
        return Step(action="next", fate="unfit" if attempts.broken + 1 >= MOST_BROKEN else "rest")
    if found == "malformed_history" and not attempts.repaired:
        return Step(action="repair")
    if found == "cut":
        return _longer(attempts)
    if found in ("overflow", "truncated"):
        return _rebuild(failure, attempts)
    if found == "output_cap":
        return _lower(failure, attempts)
    if found == "too_many_bytes" and attempts.image_bytes and attempts.lightened < MOST_LIGHTENED:
        return Step(action="lighten")
    if failure.out:
        return Step(action="next", fate="out")
    if found in REFUSED or found in ("malformed_history", "too_many_bytes"):
        return Step(action="next", fate="unfit")
    return Step(action="next", fate="rest")


def _quick(failure: Failure, attempts: Attempts, chance: float) -> Step:
    """One quick repeat for a blip: not for a link that was failing already, nor after a long wait for nothing, nor
    for a server that is not there while another link is ready."""
    refused = failure.status is not None and failure.status >= 400
    waited_long = failure.error_class == "timeout" and failure.connected and not refused
    absent = not failure.connected and not attempts.alone
    hopeless = absent or waited_long or failure.retry_at is not None or not failure.may_repeat
    if attempts.fresh and attempts.quick == 0 and not hopeless:
        return Step(action="again", pause=QUICK_PAUSE + QUICK_SPREAD * chance)
    return Step(action="next", fate="rest")


def _longer(attempts: Attempts) -> Step:
    """A reply that was cut is nobody's failure: more room for it, else the model is asked for less."""
    asked, most = attempts.max_tokens, attempts.most_tokens
    if not attempts.raised and asked is not None and most is not None and asked < most:
        return Step(action="raise", max_tokens=min(most, asked * LARGER))
    if attempts.told < MOST_TOLD:
        return Step(action="tell")
    if attempts.alone and not attempts.raised and attempts.quick == 0:
        return Step(action="again")  # the same words are seldom chosen twice
    return Step(action="next", fate="unfit")


def _rebuild(failure: Failure, attempts: Attempts) -> Step:
    if attempts.rebuilt >= (MOST_GUESSES if failure.guessed else MOST_REBUILDS):
        return Step(action="next", fate="unfit")
    if failure.error_class == "truncated":  # whoever found it out has learned the window already
        if attempts.rebuilt and not attempts.shrank:
            return Step(action="next", fate="unfit")
        return Step(action="rebuild")
    limit = proven_limit(failure, attempts)
    return Step(action="rebuild", guess=limit) if failure.guessed else Step(action="rebuild", learn=limit)


def proven_limit(failure: Failure, attempts: Attempts) -> int | None:
    """The window that this refusal proves, in tokens: as stated, else three quarters of what was too much.

    Where the stated limit did not make the request smaller, the estimate was wrong: then three quarters of it.
    """
    if failure.limit is not None and attempts.shrank:
        return failure.limit
    too_much = attempts.sent if failure.limit is not None else failure.actual or attempts.sent
    return too_much * 3 // 4 or None


def _lower(failure: Failure, attempts: Attempts) -> Step:
    """A smaller output budget, which teaches nothing about the window. Where a stated prompt leaves no room for a
    reply, the prompt is what is too long."""
    asked = attempts.max_tokens or UNASKED_OUTPUT
    wanted = failure.output_cap if failure.output_cap and failure.output_cap < asked else asked // 2
    if attempts.lowered < MOST_LOWERINGS and wanted >= SMALLEST_OUTPUT:
        return Step(action="lower", max_tokens=wanted)
    room = None if failure.limit is None or failure.actual is None else failure.limit - failure.actual
    if room is not None and room < SMALLEST_OUTPUT + OUTPUT_MARGIN:
        return _rebuild(failure, attempts)
    return Step(action="next", fate="unfit")
