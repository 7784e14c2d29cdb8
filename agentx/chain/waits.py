"""Every form of "come back later" that providers use, as one absolute time.

Headers, fields of the body and plain sentences (facts: fallback, section 2). Zero, negative and past times are
no information; what is left is kept between one second and eight days from now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentx.chain.body import Said, read

SHORTEST, LONGEST = 1.0, 8 * 86_400.0
EPOCH_SECONDS, EPOCH_MILLISECONDS = 1e9, 1e11

UNITS = {
    "ms": 0.001, "msec": 0.001, "msecs": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
}  # fmt: skip
PIECE = rf"\d+(?:\.\d+)?\s*(?:{'|'.join(sorted(UNITS, key=len, reverse=True))})(?![a-z])"
# `2h39m52s` has no blanks: a unit may be followed by the next number at once.
DURATION = rf"{PIECE}(?:(?:\s*,?\s*(?:and\s+)?){PIECE})*"
ONE_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)

ABOUT_TIME = re.compile(r"again|retry|wait|reset|available|access|until|refresh|renew|limit", re.IGNORECASE)
IN_A_WHILE = re.compile(rf"\b(?:in|after|wait(?: for)?|within)\s*:?\s*(?:about\s+)?({DURATION})", re.IGNORECASE)
STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
CLOCK = re.compile(
    rf"\b(?:resets?|again|available|until|access|back|retry)\b[^.\n]{{0,20}}?"
    rf"\b(?:(?P<month>{'|'.join(MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s*(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)\b"
    r"(?:\s*\(?(?P<zone>[A-Za-z]+(?:/[A-Za-z_+-]+)+|UTC|GMT)\)?)?",
    re.IGNORECASE,
)
EPOCH_IN_TEXT = re.compile(r"\|\s*(\d{10,13})\b")
RESET_HEADER = re.compile(
    r"^(?:anthropic-ratelimit-(?P<a>[a-z-]+?)-reset"
    r"|x-ratelimit-reset-(?P<b>[a-z-]+)"
    r"|(?:x-ratelimit|x-rate-limit|ratelimit)-reset(?P<c>))$"
)

MILLISECOND_FIELDS = ("retry_after_ms", "retryafterms", "retry-after-ms")
SECOND_FIELDS = (
    "retry_after", "retryafter", "retry_after_seconds", "resets_in_seconds", "reset_after", "retry-after",
)  # fmt: skip
MOMENT_FIELDS = ("resets_at", "reset_at", "resetsat", "resetat", "reset_time", "resettime", "x-ratelimit-reset")


def retry_at(headers: Mapping[str, str], body: str, now: float, *, limits: bool = True) -> float | None:
    """When to come back, in epoch seconds; None where nothing (believable) was said.

    *limits* False leaves out what only describes a rate limit's state: such headers also come with answers
    that no limit caused.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    said = read(body)
    for moment in _said(lower, said, now, limits):
        if moment is not None and moment > now:
            return min(max(moment, now + SHORTEST), now + LONGEST)
    return None


def _said(headers: Mapping[str, str], said: Said, now: float, limits: bool) -> Iterator[float | None]:
    """What each source says, the surest first."""
    if any("perday" in word for word in said.words):
        # Gemini sends a `retryDelay` of seconds with a daily quota too; it resets at midnight Pacific.
        yield _next_midnight(now, _zone("America/Los_Angeles", -8))
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        yield _number_after(headers.get(name, ""), now, 0.001)
    yield moment_of(headers.get("retry-after", ""), now)
    yield from _fields(said, now)
    if limits:
        yield _limit_headers(headers, now)
        yield in_text(said.text, now)


def _fields(said: Said, now: float) -> Iterator[float | None]:
    for key, value in said.pairs:
        text = str(value)
        if key in MILLISECOND_FIELDS:
            yield _number_after(text, now, 0.001)
        elif key == "retrydelay" or key in SECOND_FIELDS or key in MOMENT_FIELDS:
            yield moment_of(text, now)


def moment_of(text: str, now: float) -> float | None:
    """*text* as a time: seconds, epoch seconds or milliseconds, `6m0s`, an HTTP or ISO date; else None."""
    text = text.strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        if number >= EPOCH_MILLISECONDS:
            return number / 1000
        if number >= EPOCH_SECONDS:
            return number
        return now + number if 0 < number < EPOCH_SECONDS else None
    if re.fullmatch(DURATION, text, re.IGNORECASE):
        return now + seconds_of(text)
    if STAMP.fullmatch(text):
        return _stamp(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def seconds_of(duration: str) -> float:
    """Seconds in a text like `2h39m52s`, `20ms` or `1 hour and 5 minutes`."""
    return sum(
        float(number) * UNITS[unit.lower()]
        for number, unit in ONE_PIECE.findall(duration)
        if unit.lower() in UNITS
    )


def in_text(text: str, now: float) -> float | None:
    """The time that a sentence names, where the sentence is about coming back; else None."""
    if not ABOUT_TIME.search(text):
        return None
    if found := IN_A_WHILE.search(text):
        return now + seconds_of(found.group(1))
    if found := STAMP.search(text):
        return _stamp(found.group(0))
    if found := CLOCK.search(text):
        return _clock(found, now)
    if found := EPOCH_IN_TEXT.search(text):
        return moment_of(found.group(1), now)
    return None


def _number_after(text: str, now: float, unit: float) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return now + number * unit if 0 < number < 1e15 else None


def _limit_headers(headers: Mapping[str, str], now: float) -> float | None:
    """The latest reset of those dimensions that are used up; of all of them where none says that it is."""
    used_up: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        found = RESET_HEADER.match(name)
        moment = moment_of(value, now) if found else None
        if moment is None or moment <= now:
            continue
        remaining = headers.get(name.replace("reset", "remaining"), "")
        (used_up if _is_zero(remaining) else others).append(moment)
    return max(used_up or others, default=None)


def _is_zero(text: str) -> bool:
    try:
        return float(text) <= 0
    except ValueError:
        return False


def _stamp(text: str) -> float | None:
    found = STAMP.match(text)
    assert found is not None
    day, time, zone = found.groups()
    zone = (zone or "Z").upper()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}")
    except ValueError:
        return None
    if zone in ("Z", "UTC", "GMT"):
        return moment.replace(tzinfo=UTC).timestamp()
    sign = -1 if zone[0] == "-" else 1
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return moment.replace(tzinfo=UTC).timestamp() - sign * offset.total_seconds()


def _clock(found: re.Match[str], now: float) -> float | None:
    """The next time that a clock in the named zone (UTC where none is named) shows that hour."""
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if not 1 <= hour <= 12 or minute > 59:
        return None
    hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    here = datetime.fromtimestamp(now, _zone(found["zone"] or "UTC", 0))
    moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if found["month"]:
        try:
            moment = moment.replace(month=MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
            if moment < here:
                moment = moment.replace(year=moment.year + 1)
        except ValueError:
            return None
    elif moment <= here:
        moment += timedelta(days=1)
    return moment.timestamp()


def _next_midnight(now: float, zone: tzinfo) -> float:
    tomorrow = datetime.fromtimestamp(now, zone) + timedelta(days=1)
    return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _zone(name: str, hours: int) -> tzinfo:
    """The zone *name*, or a fixed offset of *hours* where the machine has no zone data."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone(timedelta(hours=hours))
