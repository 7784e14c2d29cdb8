"""Every form of "come back later" that providers use, as one absolute time.

Headers, fields of the body and plain sentences (facts: fallback, section 2). Zero, negative and past times are
no information; what is left is kept between one second and eight days from now.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from agentx.chain.body import Said, read
from agentx.chain.moments import moment_of, moments_in, next_midnight

SHORTEST, LONGEST = 1.0, 8 * 86_400.0

RESET_HEADER = re.compile(
    r"^(?:anthropic-ratelimit-[a-z0-9-]+?-reset|x-ratelimit-reset-[a-z0-9-]+|(?:x-ratelimit|x-rate-limit|ratelimit)-reset)$"
)
POLICY = re.compile(r"\b(?:t|reset)=(\d{1,9})\b")
POLICY_LEFT = re.compile(r"\b(?:r|remaining)=(\d+)")
"""The parts of `RateLimit: "default";r=0;t=50`, and of its older form `limit=100, remaining=0, reset=50`."""

MILLISECOND_FIELDS = ("retry_after_ms", "retryafterms", "retry-after-ms")
SECOND_FIELDS = (
    *("retry_after", "retryafter", "retry_after_seconds", "resets_in_seconds", "reset_after", "retry-after"),
    *("retrydelay", "quotaresetdelay"),
)
MOMENT_FIELDS = (
    *("resets_at", "reset_at", "resetsat", "resetat", "reset_time", "resettime", "x-ratelimit-reset"),
    "quotaresettimestamp",
)


def retry_at(
    headers: Mapping[str, str], body: str, now: float, *, limits: bool = True, sentences: bool = True
) -> float | None:
    """When to come back, in epoch seconds; None where nothing (believable) was said.

    *limits* False leaves out the headers that describe a rate limit's state: they come with answers, too, that no
    such limit caused. *sentences* False leaves out the text for people.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    for moment in _said(lower, read(body), now, limits, sentences):
        if moment is not None and now < moment < math.inf:
            return min(max(moment, now + SHORTEST), now + LONGEST)
    return None


def _said(
    headers: Mapping[str, str], said: Said, now: float, limits: bool, sentences: bool
) -> Iterator[float | None]:
    """What each source says, the surest first."""
    if any("perday" in word for word in said.words):
        # Gemini sends a `retryDelay` of seconds with a daily quota too; it resets at midnight Pacific.
        yield next_midnight(now, "America/Los_Angeles")
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        yield _number_after(headers.get(name, ""), now, 0.001)
    stated = headers.get("retry-after", "")
    yield moment_of(stated, now)
    yield moment_of(stated.partition(",")[0], now)  # two proxies: `120, 120`
    yield from _fields(said, now)
    if limits:
        yield _limit_headers(headers, now)
    if sentences:
        yield from moments_in(said.text, now)


def _fields(said: Said, now: float) -> Iterator[float | None]:
    for key, value in said.pairs:
        if key in MILLISECOND_FIELDS:
            yield _number_after(str(value), now, 0.001)
        elif key in SECOND_FIELDS or key in MOMENT_FIELDS:
            yield moment_of(str(value), now)


def _number_after(text: str, now: float, unit: float) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return now + number * unit if 0 < number < 1e15 else None


def _limit_headers(headers: Mapping[str, str], now: float) -> float | None:
    """The latest reset of those dimensions that are used up; where none says that it is, the earliest of all.

    A day of which much is left says nothing about a minute that is nearly used up.
    """
    used_up: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        moment = moment_of(value, now) if RESET_HEADER.match(name) else None
        if moment is not None and moment > now:
            (used_up if _is_used_up(headers, name) else others).append(moment)
    for policy in headers.get("ratelimit", "").split(', "'):
        if found := POLICY.search(policy):
            left = POLICY_LEFT.search(policy)
            (used_up if left and _is_zero(left.group(1)) else others).append(now + int(found.group(1)))
    return max(used_up) if used_up else min(others, default=None)


def _is_used_up(headers: Mapping[str, str], name: str) -> bool:
    """What the reset header *name* belongs to has nothing left (Anthropic's plans say `rejected` instead)."""
    remaining, status = name.replace("reset", "remaining"), name.replace("reset", "status")
    return _is_zero(headers.get(remaining, "")) or headers.get(status, "") == "rejected"


def _is_zero(text: str) -> bool:
    try:
        return float(text) <= 0
    except ValueError:
        return False
