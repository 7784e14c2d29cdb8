"""The table of failures: which codes, statuses and sentences mean which class. First match wins, so order is meaning.

Quota before rate limit, overload before rate limit (facts: fallback, section 2). What only one provider says
stands in its card instead, and comes before all of this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentx.errors import ErrorClass


@dataclass(frozen=True, slots=True)
class Rule:
    """`words` must be the whole of one code, type or reason; `text` must occur; `statuses` narrows both."""

    means: ErrorClass
    words: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    statuses: frozenset[int] = frozenset()

    def fits(self, status: int | None, words: tuple[str, ...], text: str) -> bool:
        if self.statuses and status not in self.statuses:
            return False
        if self.words is not None and any(self.words.fullmatch(word) for word in words):
            return True
        return self.text is not None and self.text.search(text) is not None


def _words(means: ErrorClass, pattern: str, *statuses: int) -> Rule:
    return Rule(means, words=re.compile(pattern, re.IGNORECASE), statuses=frozenset(statuses))


def _text(means: ErrorClass, pattern: str, *statuses: int) -> Rule:
    return Rule(means, text=re.compile(pattern, re.IGNORECASE), statuses=frozenset(statuses))


CODES: tuple[Rule, ...] = (
    _words("quota", r".*perday.*"),
    _text("quota", r"\bquota\b.*\blimit: 0\b"),
    _words(
        "quota",
        r"insufficient_(quota|balance|credits?|funds)|billing_.*|credit_balance_.*|.*_spend_limit.*|.*usage_limit_.*"
        r"|spend_limit.*|payment_required|exceeded_current_quota_error|quota_exceeded|usage_not_included"
        r"|(daily|monthly|weekly)_.*limit.*|out_of_credits|account_overdue|arrearage",
    ),
    _words("quota", r"1113|13(0[89]|1\d|2[01])", 429),  # Z.ai: balance, plan and package limits
    _words(
        "overloaded",
        r"overloaded(_error)?|.*_?overloaded(_error)?|slow_down|unavailable|server_busy|over_capacity"
        r"|service_?unavailable(_?(error|exception))?|modelnotreadyexception|capacity_exceeded|1305",
    ),
    _words(
        "auth",
        r"invalid_api_key|api_key_invalid|incorrect_api_key|missing_api_key|authentication_error|unauthenticated"
        r"|invalid_authentication(_error)?|account_deactivated|access_terminated_error|unrecognizedclientexception"
        r"|expiredtokenexception|invalidsignatureexception|incompletesignature|token_expired|unauthorized",
    ),
    _words(
        "rate_limit",
        r"rate_limit(ed)?|rate_limit_(exceeded|error|reached)(_error)?|resource_exhausted|throttling.*"
        r"|too_?many_?requests(_?(error|exception))?|ratelimit(error|exceeded|reached)?|.*_tokens_per_minute.*",
    ),
    _words(
        "content_filter",
        r"content_filter(ed)?|content_policy_violation|moderation_.*|responsibleaipolicyviolation"
        r"|data_inspection_failed|prohibited_content|safety|cyber_policy_violation",
    ),
    _words(
        "not_found",
        r"model_not_(found|available|exist)|unknown_model|invalid_model|deploymentnotfound|model_decommissioned"
        r"|resourcenotfoundexception|not_found_error|model_terms_required",
    ),
    _words("malformed_history", r"invalid_encrypted_content|invalid_tool_call_id|invalid_request_message_order"),
)
"""What codes and types say, before anything else is read."""

TEXTS: tuple[Rule, ...] = (
    _text(
        "quota",
        r"credit balance|exceeded your current quota|insufficient (balance|credits?|funds|quota)|out of credits"
        r"|(key|daily|monthly|weekly|spend(ing)?|usage|free.tier|billing)[\w -]{0,20} limit[\w ]{0,20}"
        r"(exceeded|reached|exhausted|hit)|reached your[\w ,]{0,30}(usage|spend|quota|credit)|regain access"
        r"|(requires?|need) more credits|add[\w ]{0,20} credits|payment required|no (remaining )?credits|quota (is )?exhausted"
        r"|(free[- ]tier|credits?|balance)[\w -]{0,30}(depleted|exhausted|used up)",
        400, 402, 403, 404, 429, 503,
    ),
    _text(
        "overloaded",
        r"overloaded|over(?: |-)?capacity|at capacity|server (is )?busy|temporarily unavailable|no (healthy|available) "
        r"(upstream|provider|instances)|loading model|currently loading|queue is full|high demand",
    ),
    _text(
        "auth",
        r"api[ _]?key (is )?(not valid|invalid|missing|incorrect|expired|disabled)|(invalid|incorrect|missing|no|expired|disabled)"
        r" (x-)?api[ _-]?key|invalid (auth|bearer|token|credential)|token (has )?expired|unauthori[sz]ed|not authenticated"
        r"|account (has been |is )?(deactivated|disabled|suspended)",
        400, 401, 403,
    ),
    _text(
        "content_filter",
        r"content[ _](policy|filter|management|moderation)|moderation|flagged (as|by|for)|guardrail|safety (system|polic|filter)"
        r"|violat\w+ [\w ]{0,30}polic",
        200, 400, 403, 422,
    ),
    _text(
        "rate_limit",
        r"rate.?limit|too many requests|(requests|tokens) per (second|minute|hour|day)|\b[tr]p[md]\b|throttl"
        r"|try again in \d|too many (concurrent|tokens, please wait)",
    ),
    _text(
        "output_cap",
        r"max_(completion_|output_|new_)?tokens\W{0,3} ?(is too (large|high)|must be|should be|cannot|exceed|:? ?\d+ ?>)"
        r"|(invalid|range of|maximum) max_(completion_)?tokens|maximum (allowed )?(number of )?(output|completion) tokens",
        400, 422,
    ),
    _text(
        "malformed_history",
        r"tool_use.{0,60}without.{0,40}tool_result|tool_result.{0,80}(corresponding|previous) |tool_calls?\W.{0,60}must be followed"
        r"|must be a response to a prec|thinking.{0,40}(block|signature)|thought_signature|invalid.{0,12}signature"
        r"|roles? must alternate|alternate user/assistant|number of function (call|response)|function call turn comes"
        r"|unexpected role|tool_call_id|tool call ids?|encrypted content|expected last role|text content blocks must be",
        400, 422, 500,
    ),
    _text(
        "not_found",
        r"model\b.{0,80}(not found|does not exist|doesn't exist|not supported|no longer|decommissioned|deprecated|not available)"
        r"|(unknown|invalid|no such) model|not a valid model|try pulling it|no endpoints found for",
        400, 403, 404, 410, 422,
    ),
)
"""What sentences say; overflow has been ruled out by then."""

STATUSES: dict[int, ErrorClass] = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    410: "not_found",
    413: "too_many_bytes",
    422: "bad_request",
    425: "server",
    429: "rate_limit",
    498: "overloaded",  # Groq: flex tier is out of capacity
    503: "overloaded",
    504: "timeout",
    524: "timeout",  # Cloudflare waited for the origin
    529: "overloaded",
}

LAST: tuple[Rule, ...] = (
    _words("timeout", r"timeout(_error)?|deadline_exceeded|request_timeout"),
    _words("auth", r"permission_(error|denied)|accessdeniedexception|forbidden"),
    _words("not_found", r"not_found"),
    _words("server", r"(api|server|internal|internal_server|upstream)_?error|internal|internalserverexception"),
    _words("bad_request", r"(invalid_request|bad_request|validation|invalid_argument).*|validationexception|badrequesterror"),
)
"""Types that are too general to come first; they decide where no status does (an event in a stream)."""
