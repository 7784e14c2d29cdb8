"""Every form of "come back later" that was seen, as one absolute time."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.chain.waits import retry_at

NOW = datetime(2026, 7, 30, 1, 0, 0, tzinfo=UTC).timestamp()
"""A Thursday, 01:00 UTC: 18:00 the day before in California."""

DAY = 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - NOW


def gemini(quota: str, delay: str) -> str:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    return json.dumps({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "73801"}, 73_801),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0.2"}, 1),
        ({"retry-after": "Thu, 30 Jul 2026 01:00:30 GMT"}, 30),
        ({"retry-after": "Thu Jul 30 01:02:00 2026"}, 120),
        ({"retry-after": "Thu, 30 Jul 2026 00:00:00 GMT"}, None),
        ({"retry-after": "2026-07-30T01:00:17Z"}, 17),
        ({"retry-after": str(int(NOW) + 40)}, 40),
        ({"retry-after-ms": "1500", "retry-after": "60"}, 1.5),
        ({"x-ms-retry-after-ms": "274579000"}, 274_579),
        ({"retry-after": "6m0s"}, 360),
        ({"retry-after": "99999999"}, 8 * DAY),
        ({"x-ratelimit-reset-requests": "10s", "x-ratelimit-reset-tokens": "6m0s"}, 10),
        (
            {
                "x-ratelimit-remaining-requests-day": "900",
                "x-ratelimit-reset-requests-day": "33011",
                "x-ratelimit-remaining-tokens-minute": "120",
                "x-ratelimit-reset-tokens-minute": "11",
            },
            11,
        ),
        (
            {
                "anthropic-ratelimit-unified-5h-reset": str(int(NOW) + 500),
                "anthropic-ratelimit-unified-5h-status": "allowed",
                "anthropic-ratelimit-unified-7d-reset": str(int(NOW) + 5000),
                "anthropic-ratelimit-unified-7d-status": "rejected",
            },
            5000,
        ),
        ({"ratelimit": '"default";r=0;t=50'}, 50),
        ({"ratelimit": '"minute";r=3;t=50, "day";r=0;t=5000'}, 5000),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50),
        ({"retry-after": "120, 120"}, 120),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "nan"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-tokens": "100",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            1,
        ),
        ({"x-ratelimit-reset-tokens": "7"}, 7),
        ({"x-ratelimit-reset-tokens": "-1"}, None),
        ({"x-ratelimit-reset": str(int(NOW) + 55)}, 55),
        ({"x-ratelimit-reset": str((int(NOW) + 55) * 1000)}, 55),
        ({"ratelimit-reset": "20"}, 20),
        (
            {
                "anthropic-ratelimit-requests-remaining": "12",
                "anthropic-ratelimit-requests-reset": "2026-07-30T01:30:00Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-07-30T01:00:41Z",
            },
            41,
        ),
        ({"date": "Thu, 30 Jul 2026 01:00:30 GMT"}, None),
        ({}, None),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_at(headers, "", NOW)
    assert (None if found is None else found - NOW) == pytest.approx(seconds)  # pyright: ignore[reportUnknownMemberType]  pytest's own typing


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (gemini("GenerateRequestsPerMinutePerProjectPerModel", "14s"), 14),
        (gemini("GenerateRequestsPerMinutePerProjectPerModel", "0.5s"), 1),
        (gemini("GenerateRequestsPerMinutePerProjectPerModel", "1976.365s"), 1976.365),
        (gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "14s"), at("2026-07-30T07:00:00+00:00")),
        (json.dumps({"error": {"type": "usage_limit_reached", "resets_at": int(NOW) + 7200}}), 7200),
        (json.dumps({"error": {"type": "usage_limit_reached", "resets_in_seconds": 90}}), 90),
        (json.dumps({"message": "slow", "retry_after": 4.2}), 4.2),
        (json.dumps({"error": json.dumps({"error": {"retry_after_ms": 2500}})}), 2.5),
        (json.dumps({"error": {"metadata": {"headers": {"X-RateLimit-Reset": str((int(NOW) + 9) * 1000)}}}}), 9),
        (json.dumps({"error": {"details": [{"metadata": {"quotaResetDelay": "13h19m1.2s"}}]}}), 47_941.2),
        (
            json.dumps({"error": {"details": [{"metadata": {"quotaResetTimeStamp": "2026-07-30T02:00:00Z"}}]}}),
            3600,
        ),
        ("{}", None),
        ("", None),
    ],
)
def test_bodies(body: str, seconds: float | None) -> None:
    found = retry_at({}, body, NOW)
    assert (None if found is None else found - NOW) == pytest.approx(seconds)  # pyright: ignore[reportUnknownMemberType]  pytest's own typing


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit is exceeded. Try again in 17 seconds.", 17),
        ("Please try again in 20ms.", 1),
        ("Please try again in 2h39m52s. Need more tokens?", 9592),
        ("Please retry in 1 hour and 5 minutes", 3900),
        ("please wait 30s before you ask again", 30),
        ("Retry after: 45 seconds", 45),
        ("usage limit reached, resets in 3h", 10_800),
        ("You've hit your limit · resets 3am (Europe/London)", 3600),
        ("Your limit will reset at 5pm", 16 * 3600),
        ("limit reached - resets Aug 3 at 9am (America/New_York)", at("2026-08-03T13:00:00+00:00")),
        ("Your limit will reset at 2026-07-30 16:11:46 +0800 CST", at("2026-07-30T08:11:46+00:00")),
        ("You will regain access on 2026-08-01 at 00:00 UTC.", 2 * DAY - 3600),
        ("You will regain access on 2026-09-01.", 8 * DAY),
        ("limit reached, try again at 2026-07-30T03:00:00Z", 7200),
        ("usage limit reached|" + str(int(NOW) + 77), 77),
        ("Too many requests: 100 requests in 1 day. Please try again in 20 minutes.", 1200),
        ("Rate limit: 5 requests within 24 hours. Retry after 30 seconds", 30),
        ("Rate limit: 5 requests within 24 hours.", None),
        ("Limit reached for gpt-4o-2024-08-06; resets 3am (Europe/London)", 3600),
        ("Limit reached for gpt-4o-2026-08-01 this minute", None),
        ("Your limit was reset at 2026-07-29 16:11:46; it is reached again", None),
        ("Your limit will reset at 2026-07-30 16:11:46 UTC+8", at("2026-07-30T08:11:46+00:00")),
        ("Your limit will reset at 2026-07-30 16:11:46 (UTC+08:00)", at("2026-07-30T08:11:46+00:00")),
        ("Your limit will reset at 2026-07-30 16:11:46 -0530", at("2026-07-30T21:41:46+00:00")),
        ("Your limit will reset at 2026-07-30 03:00 PST", at("2026-07-30T10:00:00+00:00")),
        ("resets 3am (PST)", at("2026-07-30T10:00:00+00:00")),
        ("resets 3am PT", at("2026-07-30T10:00:00+00:00")),
        ("resets Mon 9am (UTC)", at("2026-08-03T09:00:00+00:00")),
        ("resets Thursday at 3am", 7200),
        ("resets Thu 12:30am", None),
        ("resets monthly", None),
        ("try again at Aug 1st, 2026 3:00 PM.", at("2026-08-01T15:00:00+00:00")),
        ("try again at Nov 30th, 2026 3:00 PM.", 8 * DAY),
        ("resets Jul 30, 3am (UTC)", 7200),
        ("resets Jul 29, 3am (UTC)", None),
        ("available again on August 3, 2026", at("2026-08-03T00:00:00+00:00")),
        ("resets at 15:00 UTC", 14 * 3600),
        ("resets at 03:30", 9000),
        ("resets at 27:30", None),
        ("try again in ~30 seconds", 30),
        ("try again in about 1 minute, 30 seconds", 90),
        ("Please wait 1,200 seconds", 1200),
        ("try again in a minute", 60),
        ("try again in an hour", 3600),
        ("try again in 00:17:30", 1050),
        ("the model version 2026-08-01 is not known", None),
        ("limit reached on 2026-02-31", None),
        ("the answer has 30 seconds of audio", None),
        ("try again later", None),
    ],
)
@pytest.mark.parametrize("shape", ["plain", "json", "nested"])
def test_sentences(text: str, seconds: float | None, shape: str) -> None:
    body = {"plain": text, "json": json.dumps({"error": {"message": text}})}.get(shape)
    found = retry_at({}, body or json.dumps({"error": json.dumps({"message": text})}), NOW)
    assert (None if found is None else found - NOW) == pytest.approx(seconds)  # pyright: ignore[reportUnknownMemberType]  pytest's own typing


def test_the_state_of_a_limit_is_no_information_about_another_failure() -> None:
    headers = {"x-ratelimit-reset-requests": "6m0s"}
    assert retry_at(headers, "", NOW, limits=False) is None
    assert retry_at(headers, "try again in 5 minutes", NOW, limits=False) == NOW + 300
    assert retry_at(headers, "try again in 5 minutes", NOW, limits=False, sentences=False) is None
    assert retry_at({**headers, "retry-after": "7"}, "", NOW, limits=False) == NOW + 7


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]),
        st.text(alphabet="0123456789.-+eE:smhd TZGMTJulThu,", max_size=30) | st.floats().map(str),
    ),
    st.text(max_size=80) | st.text(alphabet="try again in resets at 0123456789:-amphs()/UTC", max_size=60),
)
def test_whatever_is_said_the_time_is_near_and_ahead_or_none(headers: dict[str, str], body: str) -> None:
    found = retry_at(headers, body, NOW)
    assert found is None or 1 <= found - NOW <= 8 * DAY
