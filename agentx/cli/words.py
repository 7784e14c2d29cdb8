"""Numbers for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def short(tokens: int) -> str:
    """Tokens for people: `950`, `4.1k`, `131k`, `1.0M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 10_000:
        return f"{tokens / 1_000:.1f}k"
    return f"{tokens // 1_000}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"


def meter(used: int, window: int | None, *, about: bool = False) -> str:
    """`ctx 61k/200k (31 %)`; without a window only what is used; `~61k` when it is but *about* that."""
    mark = "~" if about else ""
    if not window:
        return f"ctx {mark}{short(used)}"
    return f"ctx {mark}{short(used)}/{short(window)} ({percent(used, window)} %)"


def percent(part: int, whole: int) -> int:
    """Whole percent, rounded down."""
    return 100 * part // whole


def count(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `2 switches`, `2 replies`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def duration(seconds: float) -> str:
    """`41 s`, `34 min`, `7 h 02 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def dollars(amount: float) -> str:
    """`$1.20`; a small amount with two digits that say something: `$0.0034`."""
    return f"${amount:.2f}" if amount >= 0.1 or amount <= 0 else f"${amount:.2g}"


def lost(totals: Mapping[str, Any]) -> str:
    """What was lost to links that failed: `12 min waiting, 0.3 s retrying, 1.2 s switching`; empty for nothing."""
    seconds: Mapping[str, float] = totals.get("lost", {})
    parts = [
        f"{gone:.1f} s {what}" if gone < 10 else f"{duration(gone)} {what}"
        for what, gone in seconds.items()
        if gone >= 0.05
    ]
    return ", ".join(parts)


def failures(totals: Mapping[str, Any]) -> str:
    """Attempts that brought no reply: `3 failed attempts (2 rate_limit, 1 network)`; empty for none."""
    failed: Mapping[str, Any] = totals.get("failed", {})
    attempts: Mapping[str, int] = failed.get("attempts", {})
    if not attempts:
        return ""
    kinds = sorted(attempts.items(), key=lambda pair: (-pair[1], pair[0]))
    return f"{count(sum(attempts.values()), 'failed attempt')} ({', '.join(f'{n} {kind}' for kind, n in kinds)})"


def instructed(tokens: int) -> str:
    """What AGENTS.md costs: ` · AGENTS.md: about 312 tokens of each request`; empty where there is none."""
    return f" · AGENTS.md: about {count(tokens, 'token')} of each request" if tokens else ""
