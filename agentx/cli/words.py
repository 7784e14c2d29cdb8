"""Numbers for people."""

from __future__ import annotations


def short(tokens: int) -> str:
    """Tokens for people: `950`, `4.1k`, `131k`, `1.0M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 10_000:
        return f"{tokens / 1_000:.1f}k"
    return f"{tokens // 1_000}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"


def meter(used: int, window: int | None) -> str:
    """`ctx 61k/200k (31 %)`; without a window only what is used."""
    if not window:
        return f"ctx {short(used)}"
    return f"ctx {short(used)}/{short(window)} ({100 * used // window} %)"


def count(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `2 switches`."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def duration(seconds: float) -> str:
    """`41 s`, `34 min`, `7 h 02 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
