"""A time as people and servers write it: seconds, dates, durations, and the sentences that hold them.

Where no zone is named it is UTC. An hour that is read too early costs one request; one that is read too late
costs the night, so nothing is guessed that could be late.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

EPOCH_SECONDS, EPOCH_MILLISECONDS = 1e9, 1e11
HALF_A_DAY, HALF_A_YEAR = timedelta(hours=12), timedelta(days=183)
"""What is past by less than this is past; by more, the next one is meant."""

UNITS = {
    "ms": 0.001, "msec": 0.001, "msecs": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400, "week": 604_800, "weeks": 604_800,
}  # fmt: skip
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
PIECE = rf"{NUMBER}\s*(?:{UNIT})(?![a-z])"
# `2h39m52s` has no blanks: a unit may be followed by the next number at once.
DURATION = rf"{PIECE}(?:(?:\s*,?\s*(?:and\s+)?){PIECE})*"
ONE_PIECE = re.compile(rf"({NUMBER})\s*([a-z]+)", re.IGNORECASE)

ABOUT_TIME = re.compile(r"again|retry|wait|reset|available|access|until|refresh|renew|limit", re.IGNORECASE)
IN_A_WHILE = re.compile(
    r"\b(?:in|after|wait(?: for)?|within)\s*:?\s*(?:(?:about|around|approximately)\s+|~\s*)?"
    rf"(?:(?P<duration>{DURATION})|(?P<clock>\d{{1,3}}:\d{{2}}:\d{{2}})\b"
    r"|(?:an?|one)\s+(?P<unit>second|minute|hour|day|week)\b)",
    re.IGNORECASE,
)
COMING_BACK = re.compile(
    r"\b(?:again|retry|wait|resets?|available|access|back|refresh\w*|renew\w*)\b", re.IGNORECASE
)
COUNTED = re.compile(
    r"(?:requests?|tokens?|messages?|calls?|prompts?|quer(?:y|ies)|generations?|images?|credits?) *$",
    re.IGNORECASE,
)
"""`100 requests in 1 day` is the size of a limit, not the time of its end."""

STAMP = re.compile(
    r"(?<![\w-])(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?"
    r"(?:\s*\(?(?:(?:UTC|GMT)?([+-]\d{1,2}(?::?\d{2})?)|([A-Z]{1,4}))\b)?)?(?![\w-])",
    re.IGNORECASE,
)
"""A date with or without an hour; not the one in a model's name (`gpt-4o-2024-08-06`)."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
WEEKDAY = r"mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
ZONES = {
    "PT": "America/Los_Angeles", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
    "MT": "America/Denver", "MST": "America/Denver", "MDT": "America/Denver",
    "CT": "America/Chicago", "CDT": "America/Chicago",
    "ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York",
    "CET": "Europe/Berlin", "CEST": "Europe/Berlin", "BST": "Europe/London", "JST": "Asia/Tokyo",
}  # fmt: skip
"""`CST` is Chicago, Shanghai and Havana: it is not here."""
CLOCK = re.compile(
    r"\b(?:resets?|again|available|until|access|back|retry)\b[^.\n]{0,20}?"
    rf"\b(?<! in )(?=(?:{MONTH})\.?\s+\d|(?:{WEEKDAY})\b|\d{{1,2}}(?::\d{{2}}|\s*[ap]m\b))"
    rf"(?:(?:(?P<month>{MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>20\d{{2}})\b)?"
    rf"|(?P<weekday>{WEEKDAY})\b),?\s*(?:at\s+)?)?"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s*(?P<half>am|pm)\b"
    r"|(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::\d{2})?)?"
    r"(?:\s*\(?(?P<zone>[A-Za-z]+(?:/[A-Za-z_+-]+)+|[A-Z]{2,4}\b)\)?)?",
    re.IGNORECASE,
)
EPOCH_IN_TEXT = re.compile(r"\|\s*(\d{10,13})\b")


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
        return _of_number(number, now)
    if re.fullmatch(DURATION, text, re.IGNORECASE):
        return now + seconds_of(text)
    if found := STAMP.fullmatch(text):
        return _stamp(found)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def seconds_of(duration: str) -> float:
    """Seconds in a text like `2h39m52s`, `20ms` or `1 hour and 5 minutes`."""
    return sum(
        float(number.replace(",", "")) * UNITS[unit.lower()]
        for number, unit in ONE_PIECE.findall(duration)
        if unit.lower() in UNITS
    )


def moments_in(text: str, now: float) -> Iterator[float | None]:
    """The times that a sentence names, where it is about coming back; the likeliest first; some are past."""
    if not ABOUT_TIME.search(text):
        return
    yield from _durations(text, now)
    for stamp in STAMP.finditer(text):
        yield _stamp(stamp)
    if clock := CLOCK.search(STAMP.sub(" ", text)):
        yield _clock(clock, now)
    if epoch := EPOCH_IN_TEXT.search(text):
        yield moment_of(epoch.group(1), now)


def next_midnight(now: float, zone: str) -> float:
    """When the next day begins in *zone*."""
    tomorrow = datetime.fromtimestamp(now, _zone(zone)) + timedelta(days=1)
    return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _of_number(number: float, now: float) -> float | None:
    if not math.isfinite(number) or number <= 0:
        return None
    if number >= EPOCH_MILLISECONDS:
        return number / 1000
    return number if number >= EPOCH_SECONDS else now + number


def _durations(text: str, now: float) -> Iterator[float]:
    """Those that are no measure of a limit; where some stand behind a word for coming back, only these."""
    found = [match for match in IN_A_WHILE.finditer(text) if not COUNTED.search(text[: match.start()])]
    sure = [match for match in found if COMING_BACK.search(_sentence_up_to(match))]
    for match in sure or found:
        if match["duration"]:
            yield now + seconds_of(match["duration"])
        elif match["unit"]:
            yield now + UNITS[match["unit"].lower()]
        else:
            hours, minutes, seconds = map(int, match["clock"].split(":"))
            yield now + hours * 3600 + minutes * 60 + seconds


def _sentence_up_to(match: re.Match[str]) -> str:
    """Its sentence, from a few words before it to its end."""
    before = match.string[max(0, match.start() - 40) : match.start()] + match.group(0)
    return re.split(r"[.;!?\n]\s", before)[-1]


def _stamp(found: re.Match[str]) -> float | None:
    day, time, offset, name = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}")
        if offset:
            digits = re.sub(r"\D", "", offset)
            digits = digits if len(digits) > 2 else f"{digits}00"
            away = timedelta(hours=int(digits[:-2]), minutes=int(digits[-2:]))
            return moment.replace(tzinfo=UTC).timestamp() - (-1 if offset[0] == "-" else 1) * away.total_seconds()
        return moment.replace(tzinfo=_zone(name or "UTC")).timestamp()
    except (ValueError, OverflowError):
        return None


def _clock(found: re.Match[str], now: float) -> float | None:
    """The next time that a clock in the named zone shows that hour, on that day where one is named."""
    hour = int(found["hour"] or found["hour24"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    minute = int(found["minute"] or found["minute24"] or 0)
    here = datetime.fromtimestamp(now, _zone(found["zone"] or "UTC"))
    try:
        moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if found["month"]:
            return _on_date(found, moment).timestamp()
    except (ValueError, OverflowError):
        return None
    if found["weekday"]:
        ahead = (WEEKDAYS.index(found["weekday"].lower()[:3]) - here.weekday()) % 7
        moment += timedelta(days=ahead)
        just_now = here - moment < HALF_A_DAY
        return (moment if just_now else moment + timedelta(days=7)).timestamp()
    return (moment if moment > here else moment + timedelta(days=1)).timestamp()


def _on_date(found: re.Match[str], here: datetime) -> datetime:
    """*here* on the named day; without a year in the one that makes it near. Raises ValueError for no such day."""
    month, day = MONTHS.index(found["month"].lower()[:3]) + 1, int(found["day"])
    moment = here.replace(year=int(found["year"] or here.year), month=month, day=day)
    if not found["year"] and here - moment > HALF_A_YEAR:
        return moment.replace(year=here.year + 1)
    return moment


def _zone(name: str) -> tzinfo:
    """The zone *name*; where the machine has no data of it, eight hours behind for Pacific time, and UTC."""
    name = ZONES.get(name.upper(), name)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone(timedelta(hours=-8 if name == "America/Los_Angeles" else 0))
