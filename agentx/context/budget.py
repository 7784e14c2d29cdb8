"""How many tokens a view may hold, and how many stay free for the reply. Pure arithmetic (DESIGN.md section 4).

The formulas stand here once. Three bugs of the field, all of which ended at 16K, are why: a borrowed window,
a forgotten one, and an output budget that ate the input.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentx.errors import WindowTooSmall

FRACTION = 0.5
CAP = 256_000
FLOOR = 2_000
DEFAULT_OUTPUT = 8_192
SMALLEST_REPLY = 256
SMALLEST_WINDOW = FLOOR + SMALLEST_REPLY
LARGEST_UNASKED = 32_000


def threshold(
    window: int,
    max_tokens: int | None = None,
    *,
    fraction: float = FRACTION,
    cap: int = CAP,
    floor: int = FLOOR,
) -> int:
    """How many tokens a view may hold before compaction starts.

    *fraction* of the window (the window capped at *cap* for that), never so late that the reserved output does
    not fit the real window, never under *floor*. Raises WindowTooSmall below *floor* + 256.
    """
    if window < floor + SMALLEST_REPLY:
        raise WindowTooSmall(
            f"a window of {window:,} tokens cannot hold {floor:,} and a reply of {SMALLEST_REPLY}",
            hint=f"give the model a window of {floor + SMALLEST_REPLY:,} tokens or more",
            limit=window,
            actual=floor + SMALLEST_REPLY,
        )
    by_fraction = int(min(window, cap) * fraction)
    wanted = min(max_tokens or DEFAULT_OUTPUT, window // 2)
    return max(floor, min(by_fraction, window - wanted))


def reserve(window: int, max_tokens: int | None = None, *, floor: int = FLOOR) -> int:
    """How many tokens are kept free for the reply: at most half the window, less where the floor needs it.

    Raises WindowTooSmall as `threshold` does.
    """
    threshold(window, max_tokens, floor=floor)
    return min(max_tokens or DEFAULT_OUTPUT, window // 2, window - floor)


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
    cap: int = CAP,
    floor: int = FLOOR,
) -> Budget:
    """The budget of a link with this *window*. Raises WindowTooSmall."""
    asked = min(max_tokens, output_cap) if max_tokens and output_cap else max_tokens
    return Budget(
        window=window,
        reserve=reserve(window, asked, floor=floor),
        threshold=threshold(window, asked, fraction=fraction, cap=cap, floor=floor),
        max_tokens=asked,
        output=output_cap,
    )
