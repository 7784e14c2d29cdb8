"""How many tokens a view may hold, and how many stay free for the reply. Pure arithmetic (DESIGN.md section 4).

The formulas stand here once. Three bugs of the field, all of which ended at 16K, are why: a borrowed window,
a forgotten one, and an output budget that ate the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentx.errors import WindowTooSmall

FRACTION = 0.5
CAP = 256_000
FLOOR = 2_000
DEFAULT_OUTPUT = 8_192
DEFAULT_OUTPUT_SHARE = 0.5
SMALLEST_REPLY = 256
SMALLEST_WINDOW = FLOOR + SMALLEST_REPLY
LARGEST_UNASKED = 32_000

Basis = Literal["window", "usable"]
"""What a fraction is taken of: the whole window, or what the reply leaves of it."""


def threshold(
    window: int,
    max_tokens: int | None = None,
    *,
    fraction: float = FRACTION,
    of: Basis = "window",
    cap: int | None = CAP,
    floor: int = FLOOR,
    reserve_share: float = DEFAULT_OUTPUT_SHARE,
) -> int:
    """How many tokens a view may hold before compaction starts.

    *fraction* of the window, or of what the reserve leaves (either capped at *cap* for that), never so late that
    the reserved output does not fit the real window, never under *floor* (which leaves 256 tokens for a reply).
    Raises WindowTooSmall below 2,256.
    """
    check_window(window)
    usable = window - held_free(window, max_tokens, reserve_share)
    basis = window if of == "window" else usable
    by_fraction = int((basis if cap is None else min(basis, cap)) * fraction)
    return max(lowest(window, floor), min(by_fraction, usable), 1)


def reserve(
    window: int,
    max_tokens: int | None = None,
    *,
    floor: int = FLOOR,
    reserve_share: float = DEFAULT_OUTPUT_SHARE,
) -> int:
    """How many tokens are kept free for the reply: at most a share of the window, less where the floor needs it.

    Raises WindowTooSmall as `threshold` does.
    """
    check_window(window)
    return min(held_free(window, max_tokens, reserve_share), window - lowest(window, floor))


def held_free(window: int, max_tokens: int | None, share: float) -> int:
    """What a reply of *max_tokens* asks for, and *share* of the window at most."""
    return max(1, min(max_tokens or DEFAULT_OUTPUT, int(window * share)))


def lowest(window: int, floor: int) -> int:
    """The lowest threshold that *floor* allows in this *window*."""
    return min(floor, window - SMALLEST_REPLY)


def check_window(window: int) -> None:
    """Raises WindowTooSmall for a window in which no work can be done, whatever the policy."""
    if window < SMALLEST_WINDOW:
        raise WindowTooSmall(
            f"a window of {window:,} tokens cannot hold {FLOOR:,} and a reply of {SMALLEST_REPLY}",
            hint=f"give the model a window of {SMALLEST_WINDOW:,} tokens or more",
            limit=window,
            actual=SMALLEST_WINDOW,
        )


def output_budget(
    window: int, measured: int, *, asked: int | None, cap: int | None, margin: int | None = None
) -> int:
    """The `max_tokens` to send: what was asked, the model's cap, and what the prompt leaves; never below 1.

    *measured* is the prompt, *margin* what the measure may be wrong by (5 % of it, at least 16). Where nothing
    was asked, a model may use its cap up to 32,000: the view is at most half of the window, so room is there.
    """
    room = window - measured - (max(16, measured // 20) if margin is None else margin)
    wanted = asked or min(cap or DEFAULT_OUTPUT, LARGEST_UNASKED)
    return max(1, min(wanted, cap or room, room))


@dataclass(frozen=True, slots=True)
class Budget:
    """What one link may be sent: all numbers are tokens."""

    window: int
    reserve: int
    threshold: int
    max_tokens: int | None = None
    """What the link asks for, at most the model's output cap."""
    output: int | None = None
    """The model's output cap, where it is known."""

    @property
    def usable(self) -> int:
        """What the view may hold at the very most."""
        return self.window - self.reserve


def budget_for(
    window: int,
    max_tokens: int | None = None,
    *,
    output_cap: int | None = None,
    fraction: float = FRACTION,
    of: Basis = "window",
    cap: int | None = CAP,
    floor: int = FLOOR,
    reserve_share: float = DEFAULT_OUTPUT_SHARE,
    sends_reserve: bool = False,
) -> Budget:
    """The budget of a link with this *window*; with *sends_reserve* the reserve is what the link asks for.

    Raises WindowTooSmall.
    """
    asked = min(max_tokens, output_cap) if max_tokens and output_cap else max_tokens
    free = reserve(window, asked, floor=floor, reserve_share=reserve_share)
    most = min(free, output_cap or free) if sends_reserve else asked
    return Budget(
        window=window,
        reserve=free,
        threshold=threshold(
            window, asked, fraction=fraction, of=of, cap=cap, floor=floor, reserve_share=reserve_share
        ),
        max_tokens=most,
        output=output_cap,
    )
