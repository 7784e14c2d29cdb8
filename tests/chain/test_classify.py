"""Each signal that was seen in the field maps to its class (facts: fallback, section 2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.chain.body import ECHOES, MESSAGE_KEYS, WORD_KEYS
from agentx.chain.classify import classify
from agentx.chain.waits import MILLISECOND_FIELDS, MOMENT_FIELDS, SECOND_FIELDS
from agentx.config.links import ErrorPattern, Provider
from agentx.errors import ErrorClass, Phase, RequestFailed

PROVIDER = Provider(name="p", card="p", wire="openai", base_url="https://p.example/v1")
NOW = 1_800_000_000.0


def failed(status: int | None, body: Any = "", *, phase: Phase = "status", **more: Any) -> RequestFailed:
    text = body if isinstance(body, str) else json.dumps(body)
    return RequestFailed(f"p/m: {status}", phase=phase, status=status, body=text, **more)


def class_of(failure: RequestFailed, provider: Provider = PROVIDER) -> ErrorClass:
    return classify(failure, provider, NOW).error_class


def error(message: str = "", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        # Quota, under whatever status
        (429, error("You exceeded your current quota", code="insufficient_quota"), "quota"),
        (429, error(code="billing_hard_limit_reached"), "quota"),
        (429, error(code="credit_balance_exhausted"), "quota"),
        (429, error("余额不足或无可用资源包", code="1113"), "quota"),
        (429, error("limit", code="1308"), "quota"),
        (429, error("x", type="exceeded_current_quota_error"), "quota"),
        (429, {"error": {"type": "usage_limit_reached", "resets_at": NOW + 100}}, "quota"),
        (429, {"error": {"type": "usage_not_included"}}, "quota"),
        (400, error("Your credit balance is too low to access the API", type="invalid_request_error"), "quota"),
        (400, error("You have reached your API usage limits. You will regain access on 2027-03-01"), "quota"),
        (402, error("Insufficient credits"), "quota"),
        (402, "", "quota"),
        (403, error("Key limit exceeded (total limit)", code=403), "quota"),
        (404, error("the free tier is depleted, add credits to go on"), "quota"),
        (429, {"error": {"message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED",
                         "details": [{"violations": [{"quotaId": "RequestsPerDayPerProject"}]}]}}, "quota"),
        (429, {"error": {"message": "You exceeded your current quota, limit: 0", "status": "RESOURCE_EXHAUSTED"}},
         "quota"),
        (400, error("limit", code="1310"), "quota"),
        (400, {"__type": "ServiceQuotaExceededException", "message": "x"}, "quota"),
        # Overload, also under 429
        (429, error("temporarily overloaded", code="1305"), "overloaded"),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        (503, error("slow", code="slow_down"), "overloaded"),
        (503, error("", type="server_is_overloaded"), "overloaded"),
        (503, error("The model is overloaded", code=503, status="UNAVAILABLE"), "overloaded"),
        (429, error("x", type="engine_overloaded_error"), "overloaded"),
        (503, error("Loading model", type="unavailable_error", code=503), "overloaded"),
        (500, error("server busy, please try again"), "overloaded"),
        # Rate limits
        (429, "", "rate_limit"),
        (429, error("API key rate limit exceeded"), "rate_limit"),
        (429, error("Per-key rate limit exceeded, slow down"), "rate_limit"),
        (429, error("Per-key token rate limit exceeded"), "rate_limit"),
        (429, error("Usage rate limit exceeded"), "rate_limit"),
        (429, error("Your API key usage limit is exceeded"), "quota"),
        (429, error("Rate limit reached for gpt in requests per day", code="rate_limit_exceeded"), "rate_limit"),
        (429, error("x", status="RESOURCE_EXHAUSTED"), "rate_limit"),
        (429, {"error": {"message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED",
                         "details": [{"violations": [{"quotaId": "RequestsPerMinutePerProject"}]}]}},
         "rate_limit"),
        (413, error("Request too large on tokens per minute (TPM): Limit 6000, Requested 9000", type="tokens",
                    code="rate_limit_exceeded"), "rate_limit"),
        (400, {"__type": "ThrottlingException", "message": "Too many tokens, please wait"}, "rate_limit"),
        # Keys
        (401, "", "auth"),
        (403, "", "auth"),
        (400, {"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT",
                         "details": [{"reason": "API_KEY_INVALID"}]}}, "auth"),
        (403, {"__type": "UnrecognizedClientException", "message": "bad token"}, "auth"),
        (401, error("Incorrect API key provided", code="invalid_api_key"), "auth"),
        # Models
        (404, "", "not_found"),
        (404, error("The model `x` does not exist", code="model_not_found"), "not_found"),
        (410, "", "not_found"),
        (400, error("model x has been decommissioned", code="model_decommissioned"), "not_found"),
        (404, {"error": "model 'qwen3:14b' not found"}, "not_found"),
        (404, error("No endpoints found that support image input", code=404), "bad_request"),
        # Overflow before bad request, the output budget apart from the input
        (400, error("prompt is too long: 205000 tokens > 200000 maximum", type="invalid_request"), "overflow"),
        (400, error("x", code="context_length_exceeded"), "overflow"),
        (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
         "too_many_bytes"),
        (400, error("max_tokens must be less than or equal to 8192"), "output_cap"),
        # The history
        (400, error("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"),
         "malformed_history"),
        (400, error("An assistant message with 'tool_calls' must be followed by tool messages"),
         "malformed_history"),
        (400, error("Invalid `signature` in `thinking` block"), "malformed_history"),
        (400, error("x", code="invalid_encrypted_content"), "malformed_history"),
        (500, error("Conversation roles must alternate user/assistant/user"), "malformed_history"),
        # Content
        (400, error("The response was filtered", code="content_filter"), "content_filter"),
        (403, error("Your input was flagged by moderation", code=403), "content_filter"),
        # A call that the model wrote wrongly
        (400, error("Failed to call a function.", type="invalid_request_error", code="tool_use_failed"),
         "invalid_reply"),
        # Gateways, proxies and portals in between
        (403, "<html><title>Just a moment...</title></html>", "server"),
        (407, "", "network"),
        (511, "<html><title>Hotel</title></html>", "network"),
        # Plain statuses
        (400, "", "bad_request"),
        (400, error("unknown field", type="invalid_request_error"), "bad_request"),
        (422, "", "bad_request"),
        (408, "", "timeout"),
        (409, "", "server"),
        (500, "", "server"),
        (502, "<html><title>502 Bad Gateway</title></html>", "server"),
        (504, "", "timeout"),
        (524, "", "timeout"),
        (418, "", "bad_request"),
    ],
)  # fmt: skip
def test_refusals(status: int, body: Any, expected: ErrorClass) -> None:
    assert class_of(failed(status, body)) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, error("x", code="insufficient_quota"), "quota"),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        (400, error("prompt is too long: 205000 tokens > 200000 maximum"), "overflow"),
        (400, {"error": {"message": "model x not found"}}, "not_found"),
    ],
)
@pytest.mark.parametrize("wrapping", ["metadata.raw", "error text", "words before", "event"])
def test_a_gateway_in_between_hides_nothing(status: int, body: Any, expected: ErrorClass, wrapping: str) -> None:
    inner = json.dumps(body)
    outer = {
        "metadata.raw": json.dumps(error("Provider returned error", code=status, metadata={"raw": inner})),
        "error text": json.dumps({"error": inner}),
        "words before": json.dumps(error(f"SomeError: UpstreamException - {inner}")),
        "event": f"event: error\ndata: {inner}\n\n",
    }[wrapping]
    found = classify(failed(status, outer), PROVIDER, NOW)
    assert found.error_class == expected
    assert "{" not in found.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        (error("Provider disconnected", code=502), "server"),
        (error("slow down", code=429), "rate_limit"),
        (error("x", code="context_length_exceeded"), "overflow"),
        (error("something new"), "server"),
        (error("something", type="invalid_request_error"), "bad_request"),
    ],
)
@pytest.mark.parametrize("status", [200, None])
def test_an_error_after_a_200_is_what_it_says(body: Any, expected: ErrorClass, status: int | None) -> None:
    assert class_of(failed(status, body, phase="stream")) == expected


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (failed(None, phase="connect"), "network"),
        (failed(None, phase="connect", timed_out=True), "timeout"),
        (failed(None, phase="headers"), "network"),
        (failed(None, phase="headers", timed_out=True), "timeout"),
        (failed(200, phase="stream"), "network"),
        (failed(200, phase="stream", timed_out=True), "timeout"),
        (failed(200, "<html>rate limit exceeded</html>", phase="body"), "invalid_reply"),
        (failed(200, '{"choices": []}', phase="body"), "invalid_reply"),
        (failed(200, '{"choices": [{"text": "a rate limit of 5"}]}', phase="stream"), "network"),
        (failed(200, phase="reply", error_class="empty_reply"), "empty_reply"),
        (failed(429, error_class="truncated"), "truncated"),
    ],
)
def test_failures_without_a_refusal(failure: RequestFailed, expected: ErrorClass) -> None:
    assert class_of(failure) == expected


def test_a_card_knows_its_provider_best() -> None:
    pattern = ErrorPattern(match="come BACK tomorrow", means="quota", status=400)
    provider = Provider(name="p", card="p", wire="openai", errors=(pattern,))
    assert class_of(failed(400, error("please come back tomorrow")), provider) == "quota"
    assert class_of(failed(500, error("please come back tomorrow")), provider) == "server"


@pytest.mark.parametrize(
    ("card", "status", "body", "expected"),
    [
        ("openrouter", 404, error("No endpoints found that support image input", code=404), "bad_request"),
        ("openrouter", 404, error("No endpoints found that support tool use", code=404), "bad_request"),
        ("openrouter", 404, error("No endpoints found matching your data policy", code=404), "bad_request"),
        ("openrouter", 404, error("No endpoints found for qwen/nothing.", code=404), "not_found"),
        ("openrouter", 429, error("API key rate limit exceeded", code=429), "rate_limit"),
        ("openrouter", 403, error("Key limit exceeded (total limit)", code=403), "quota"),
        ("groq", 400, error("Failed to call a function. Please adjust your prompt.", type="invalid_request_error",
                            code="tool_use_failed", failed_generation="rate limit"), "invalid_reply"),
        ("zai", 400, error("Weekly/Monthly limit exhausted.", code="1310"), "quota"),
        ("bedrock", 400, {"__type": "ServiceQuotaExceededException", "message": "x"}, "quota"),
    ],
)  # fmt: skip
def test_the_shipped_cards_agree_with_the_table(
    shipped_card: Callable[[str], Provider], card: str, status: int, body: Any, expected: ErrorClass
) -> None:
    assert class_of(failed(status, body), shipped_card(card)) == expected


def test_an_empty_account_does_not_come_back_with_the_next_millisecond(
    shipped_card: Callable[[str], Provider],
) -> None:
    """The headers of a rate limit come with every answer; what is used up here is another thing."""
    headers = {"x-ratelimit-reset-requests": "6ms", "x-ratelimit-reset-tokens": "1s"}
    body = error("You exceeded your current quota", type="insufficient_quota", code="insufficient_quota")
    empty = failed(429, body, headers=headers)
    assert classify(empty, shipped_card("openai"), NOW).retry_at is None
    stated = failed(429, body, headers={**headers, "retry-after": "7200"})
    assert classify(stated, shipped_card("openai"), NOW).retry_at == NOW + 7200
    text = error("Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 7m12s.")
    assert classify(failed(429, text, headers=headers), shipped_card("groq"), NOW).retry_at == NOW + 432


def test_behind_a_proxy_that_lets_nobody_through_nobody_was_reached() -> None:
    assert not classify(failed(407), PROVIDER, NOW).connected
    assert classify(failed(403), PROVIDER, NOW).connected


def test_what_is_not_known_is_marked_so() -> None:
    assert not classify(failed(418, error("teapot")), PROVIDER, NOW).known
    assert not classify(failed(400, error("teapot")), PROVIDER, NOW).known
    assert classify(failed(400, error("x", type="invalid_request_error")), PROVIDER, NOW).known
    assert classify(failed(401), PROVIDER, NOW).known


def test_the_message_is_one_clean_line() -> None:
    text = "first\n\tsecond \x1b[31mred\x1b[0m " + "long " * 100
    found = classify(failed(400, error(text)), PROVIDER, NOW).message
    assert found.startswith("first second")
    assert found.isprintable()
    assert len(found) <= 300
    assert (
        classify(failed(502, "<html><title>502 Bad\nGateway</title></html>"), PROVIDER, NOW).message
        == "502 Bad Gateway"
    )
    assert classify(failed(None, phase="connect"), PROVIDER, NOW).message == "None"
    named = RequestFailed("p/qwen3:14b: cannot connect: refused", phase="connect")
    assert classify(named, PROVIDER, NOW).message == "cannot connect: refused"


def test_scopes_tell_how_far_a_failure_reaches() -> None:
    scopes = {code: classify(failed(code), PROVIDER, NOW).scope for code in (400, 401, 402, 404, 429, 500)}
    assert scopes == {400: "request", 401: "key", 402: "account", 404: "model", 429: "model", 500: "provider"}
    assert classify(failed(None, phase="connect"), PROVIDER, NOW).scope == "network"


@pytest.mark.parametrize(
    ("card", "status", "body", "reach"),
    [
        ("openai", 401, error("Incorrect API key provided", code="invalid_api_key"), "key"),
        ("openai", 403, error("You have no access to this model."), "link"),
        ("openai", 429, error("You exceeded your current quota", code="insufficient_quota"), "key"),
        ("openai", 429, error("Rate limit reached for gpt-5", code="rate_limit_exceeded"), "link"),
        ("openai", 404, error("The model does not exist", code="model_not_found"), "link"),
        ("openai", 503, error("overloaded", code="slow_down"), "link"),
        ("openai", 500, "", "link"),
        ("anthropic", 400, error("Your credit balance is too low to access the API"), "key"),
        ("gemini", 400, error("API key not valid", details=[{"reason": "API_KEY_INVALID"}]), "key"),
        ("gemini", 429, error("You exceeded your current quota", status="RESOURCE_EXHAUSTED", details=[
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]), "link"),
        ("groq", 429, error("Rate limit reached for model `x` on tokens per day (TPD): Limit 100000"), "link"),
        ("openrouter", 402, error("This request requires more credits, or fewer max_tokens. You requested up to "
                                  "64000 tokens, but can only afford 1234."), "link"),
        ("openrouter", 402, error("Insufficient credits"), "key"),
        ("openrouter", 429, error("Rate limit exceeded: free-models-per-day", code=429), "link"),
        ("openrouter", 403, error("Key limit exceeded (total limit)", code=403), "key"),
        ("copilot", 402, error("quota exceeded", code="quota_exceeded"), "link"),
        ("bedrock", 403, {"__type": "AccessDeniedException", "message": "You don't have access to the model"},
         "link"),
        ("bedrock", 403, {"__type": "UnrecognizedClientException", "message": "The security token is invalid"},
         "key"),
        ("zai", 429, error("limit", code="1308"), "key"),
    ],
)  # fmt: skip
def test_a_failure_reaches_as_far_as_its_words_say(
    shipped_card: Callable[[str], Provider], card: str, status: int, body: Any, reach: str
) -> None:
    assert classify(failed(status, body), shipped_card(card), NOW).reach == reach


def test_an_address_that_cannot_be_reached_cannot_for_any_model() -> None:
    assert classify(failed(None, phase="connect"), PROVIDER, NOW).reach == "address"
    assert classify(failed(None, phase="connect", timed_out=True), PROVIDER, NOW).reach == "address"
    assert classify(failed(None, phase="headers"), PROVIDER, NOW).reach == "link"
    assert classify(failed(407), PROVIDER, NOW).reach == "link"
    assert classify(failed(None, phase="connect", error_class="auth"), PROVIDER, NOW).reach == "key"


def test_a_refused_connection_never_stood_and_a_missing_key_sent_nothing() -> None:
    refused = classify(failed(None, phase="connect"), PROVIDER, NOW)
    assert (refused.connected, refused.keyless) == (False, False)
    keyless = classify(failed(None, phase="connect", error_class="auth"), PROVIDER, NOW)
    assert (keyless.connected, keyless.keyless) == (True, True)


def test_the_largest_output_that_fits_is_read() -> None:
    found = classify(failed(400, error("max_tokens must be less than or equal to 8,192")), PROVIDER, NOW)
    assert (found.error_class, found.output_cap) == ("output_cap", 8192)
    text = "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens"
    assert classify(failed(400, error(text)), PROVIDER, NOW).output_cap == 32_000


TIME_FIELDS = {*MILLISECOND_FIELDS, *SECOND_FIELDS, *MOMENT_FIELDS, "retrydelay"}
OTHERS = {"metadata", "details", "errors", "choices", "n_ctx", "n_prompt_tokens", "status_code"}
KEYS = st.sampled_from(sorted({*WORD_KEYS, *MESSAGE_KEYS, *ECHOES, *TIME_FIELDS, *OTHERS}))
"""The keys that are read: under any other an odd value does not matter."""
ODD_TEXTS = (
    *("", "²", "٤٠٠", "444", "9" * 5000, "-1", "1e999", "inf", "nan", "{", "[", "data: {", '{"code": "²"}'),
    *("Thu, 30 Jul 99999999999 01:00:30 GMT", "resets 3am (America/Argentina)", "0000-00-00T00:00:00Z"),
    *("max_tokens must be at most " + "9" * 5000, "try again in " + "9" * 400 + "h", "2026-07-30T01:00:00+99:99"),
    chr(0xD800),
)
ODD = st.sampled_from(ODD_TEXTS) | st.text(max_size=20) | st.floats() | st.integers() | st.booleans() | st.none()


@settings(deadline=None)
@given(
    st.sampled_from([None, 200, 400, 403, 413, 429, 500]),
    st.dictionaries(KEYS, st.recursive(ODD, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), ODD.map(str)),
)
def test_no_odd_value_under_a_key_that_is_read_breaks_it(
    status: int | None, body: dict[str, Any], headers: dict[str, str]
) -> None:
    found = classify(failed(status, body, headers=headers), PROVIDER, NOW)
    assert found.message.isprintable()
    assert found.retry_at is None or found.retry_at > NOW


@pytest.mark.parametrize("body", ["[" * 30_000, '{"a":' * 30_000, json.dumps(error("x", code="9" * 5000))])
def test_a_body_that_is_too_deep_or_too_long_to_be_true_breaks_nothing(body: str) -> None:
    assert class_of(failed(400, body)) == "bad_request"


def test_an_error_that_is_nested_as_deep_as_json_goes_is_read_as_far_as_makes_sense() -> None:
    body: Any = "slow down"
    for _ in range(900):
        body = {"error": body}
    assert class_of(failed(429, json.dumps(body))) == "rate_limit"


@settings(deadline=None)
@given(st.integers(100, 599) | st.none(), st.text() | st.dictionaries(st.text(), st.text()).map(json.dumps))
def test_nothing_that_a_server_can_say_breaks_it(status: int | None, body: str) -> None:
    found = classify(failed(status, body), PROVIDER, NOW)
    assert found.message.isprintable()


@settings(deadline=None)
@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_json_breaks_it(value: Any) -> None:
    classify(failed(400, json.dumps(value)), PROVIDER, NOW)
