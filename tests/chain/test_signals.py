"""Every signal of the field, as providers send it and with their shipped cards: what it means, and how long."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agentx.chain.classify import classify
from agentx.config.links import Provider
from agentx.errors import RequestFailed

NOW = 1_800_000_000.0
THEN = datetime.fromtimestamp(NOW, UTC)


def error(message: str = "", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def iso(seconds: float) -> str:
    return (THEN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def http_date(seconds: float) -> str:
    return format_datetime(THEN + timedelta(seconds=seconds), usegmt=True)


def asctime(seconds: float) -> str:
    return (THEN + timedelta(seconds=seconds)).strftime("%a %b %d %H:%M:%S %Y")


def gemini(message: str, quota_id: str = "", delay: str = "") -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    if quota_id:
        details.append(
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}
        )
    if delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}}


MIDNIGHT = (THEN.astimezone(ZoneInfo("America/Los_Angeles")) + timedelta(days=1)).replace(
    hour=0, minute=0, second=0, microsecond=0
)
TO_MIDNIGHT = MIDNIGHT.timestamp() - NOW
BUSY = error("Rate limit reached", code="rate_limit_exceeded")

ROWS: list[tuple[str, int, dict[str, str], Any, str, float | None]] = [
    # `Retry-After` in all its forms
    ("openai", 429, {"retry-after": "7"}, BUSY, "rate_limit", 7),
    ("openai", 429, {"retry-after": "1.5"}, BUSY, "rate_limit", 1.5),
    ("openai", 429, {"retry-after": http_date(90)}, BUSY, "rate_limit", 90),
    ("openai", 429, {"retry-after": asctime(90)}, BUSY, "rate_limit", 90),
    ("openai", 429, {"retry-after": "0"}, BUSY, "rate_limit", None),
    ("openai", 429, {"retry-after": "3600"}, BUSY, "rate_limit", 3600),
    ("anthropic", 429, {"retry-after": "73801"}, BUSY, "rate_limit", 73801),
    # Milliseconds come before seconds
    ("openai", 429, {"retry-after-ms": "274579000"}, BUSY, "rate_limit", 274579),
    ("azure", 429, {"x-ms-retry-after-ms": "2500", "retry-after": "3"}, BUSY, "rate_limit", 2.5),
    # The limit that is used up
    ("openai", 429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s",
                     "x-ratelimit-remaining-tokens": "500", "x-ratelimit-reset-tokens": "1s"}, BUSY,
     "rate_limit", 360),
    ("azure", 429, {"x-ratelimit-reset-requests": "-1"}, BUSY, "rate_limit", None),
    ("azure", 429, {"x-ratelimit-reset-requests": "30"}, BUSY, "rate_limit", 30),
    ("openrouter", 429, {"x-ratelimit-reset": str(int(NOW + 60) * 1000)}, BUSY, "rate_limit", 60),
    ("openrouter", 429, {"x-ratelimit-reset": str(int(NOW + 60))}, BUSY, "rate_limit", 60),
    ("anthropic", 429, {"anthropic-ratelimit-requests-remaining": "0",
                        "anthropic-ratelimit-requests-reset": iso(30),
                        "anthropic-ratelimit-tokens-remaining": "9", "anthropic-ratelimit-tokens-reset": iso(5)},
     {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, "rate_limit", 30),
    # Gemini says it in the body
    ("gemini", 429, {}, gemini("quota", "GenerateRequestsPerMinutePerProjectPerModel", "14s"), "rate_limit", 14),
    ("gemini", 429, {}, gemini("quota", delay="0.5s"), "rate_limit", 1),
    ("gemini", 429, {}, gemini("quota", delay="1976.365s"), "rate_limit", 1976.365),
    ("gemini", 429, {}, gemini("quota", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "quota",
     TO_MIDNIGHT),
    # Plans
    ("codex", 429, {}, error("limit", type="usage_limit_reached", resets_at=NOW + 5000), "quota", 5000),
    ("codex", 429, {}, error("no", type="usage_not_included"), "quota", None),
    # Text only
    ("openai-compatible", 429, {}, error("Your limit will reset at 2027-01-15 18:00:00 +0800 CST"), "rate_limit",
     7200),
    ("openai", 429, {}, error("Rate limit is exceeded. Try again in 17 seconds."), "rate_limit", 17),
    ("anthropic", 400, {}, error("You have reached your specified API usage limits. You will regain access on "
                                 "2027-01-16 at 00:00 UTC."), "quota", 57600),
    # Quota under 429
    *[("openai", 429, {}, error("no", code=code), "quota", None) for code in (
        "insufficient_quota", "billing_hard_limit_reached", "credit_balance_exhausted", "billing_not_active",
        "organization_spend_limit_exceeded", "project_usage_limit_reached")],
    *[("zai", 429, {}, error("no", code=code), "quota", None) for code in ("1113", "1308", "1310", "1321")],
    ("moonshot", 429, {}, error("no", type="exceeded_current_quota_error"), "quota", None),
    # ... under 400, 403 and 404
    ("anthropic", 400, {}, error("Your credit balance is too low to access the Anthropic API."), "quota", None),
    ("anthropic", 400, {}, error("This would exceed your workspace spend limit"), "quota", None),
    ("zai", 400, {}, error("Weekly/Monthly limit exhausted", code="1310"), "quota", None),
    ("bedrock", 400, {}, {"__type": "ServiceQuotaExceededException", "message": "no"}, "quota", None),
    ("openrouter", 403, {}, error("Key limit exceeded (total limit)", code=403), "quota", None),
    ("openai-compatible", 404, {}, error("Your free tier credits are depleted"), "quota", None),
    # Overload
    ("zai", 429, {}, error("The service may be temporarily overloaded", code="1305"), "overloaded", None),
    ("anthropic", 529, {}, error("Overloaded", type="overloaded_error"), "overloaded", None),
    ("anthropic", 200, {}, error("Overloaded", type="overloaded_error"), "overloaded", None),
    ("openai", 503, {}, error("Slow down", code="slow_down"), "overloaded", None),
    ("openai", 503, {}, error("busy", code="server_is_overloaded"), "overloaded", None),
    # Keys
    ("openai", 401, {}, "", "auth", None),
    ("gemini", 400, {}, error("API key not valid.", details=[{"reason": "API_KEY_INVALID"}]), "auth", None),
    *[("bedrock", 403, {}, {"__type": name, "message": "no"}, "auth", None) for name in (
        "UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException",
        "InvalidSignatureException")],
    # Overflow
    ("openai", 400, {}, error("too long", code="context_length_exceeded"), "overflow", None),
    ("sglang", 200, {}, error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
     "overflow", None),
    # What is called a fault of the server and is none, or the other way round
    ("openai-compatible", 500, {}, error("messages: field required", type="invalid_request_error"), "bad_request",
     None),
    ("openai", 400, {"x-should-retry": "true"}, "", "server", None),
    ("openai", 409, {"x-should-retry": "true"}, "", "server", None),
    # Walls in between
    ("openai", 403, {"content-type": "text/html"}, "<!DOCTYPE html><title>Just a moment...</title>", "server",
     None),
    ("openai", 407, {}, "", "network", None),
    ("openai", 511, {}, "<html><title>Hotel</title></html>", "network", None),
]  # fmt: skip


@pytest.mark.parametrize(("card", "status", "headers", "body", "expected", "seconds"), ROWS)
def test_what_it_means_and_when_to_come_back(
    shipped_card: Callable[[str], Provider],
    card: str,
    status: int,
    headers: dict[str, str],
    body: Any,
    expected: str,
    seconds: float | None,
) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    phase = "stream" if status == 200 else "status"
    failure = RequestFailed("no", phase=phase, status=status, headers=headers, body=text)
    found = classify(failure, shipped_card(card), NOW)
    back = None if found.retry_at is None else pytest.approx(found.retry_at - NOW, abs=0.01)
    assert (found.error_class, seconds) == (expected, back)


@pytest.mark.parametrize("card", ["cerebras", "mistral"])
@pytest.mark.parametrize("status", [400, 413])
def test_a_refusal_without_a_word_is_marked(
    shipped_card: Callable[[str], Provider], card: str, status: int
) -> None:
    failure = RequestFailed("no", phase="status", status=status)
    assert classify(failure, shipped_card(card), NOW).wordless


def test_a_server_that_says_not_to_ask_again_is_believed(shipped_card: Callable[[str], Provider]) -> None:
    failure = RequestFailed("no", phase="status", status=500, headers={"x-should-retry": "false"})
    assert not classify(failure, shipped_card("openai"), NOW).may_repeat
