"""The table of failures: which codes, statuses and sentences mean which class.

The first match wins, so order is meaning: quota before rate limit, overload before rate limit (facts: fallback,
section 2). What only one provider says stands in its card instead, and comes before all of this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentx.errors import ErrorClass


@dataclass(frozen=True, slots=True)
class Rule:
    """`words` must be the whole of one code, type or reason; `text` must occur somewhere.

    `statuses` narrows; an error that came after a 200 has none and passes.
    """

    means: ErrorClass
    words: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    statuses: frozenset[int] = frozenset()

    def fits(self, status: int | None, words: Sequence[str], text: str) -> bool:
        if self.statuses and status is not None and status >= 400 and status not in self.statuses:
            return False
        if self.words is not None:
            return any(self.words.fullmatch(word) for word in words)
        return self.text is not None and self.text.search(text) is not None


def _words(means: ErrorClass, *patterns: str, statuses: Sequence[int] = ()) -> Rule:
    return Rule(means, words=re.compile("|".join(patterns), re.IGNORECASE), statuses=frozenset(statuses))


def _text(means: ErrorClass, *patterns: str, statuses: Sequence[int] = ()) -> Rule:
    pattern = re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)
    return Rule(means, text=pattern, statuses=frozenset(statuses))


CODES: tuple[Rule, ...] = (
    _words("quota", r".*perday.*"),
    _text("quota", r"\bquota\b.{0,400}\blimit: 0\b"),  # Gemini: not in the free tier at all
    _words(
        "quota",
        r"insufficient_(quota|balance|credits?|funds)",
        r"billing_.*",
        r"credit_balance_.*",
        r".*_?spend(ing)?_limit.*",
        r".*usage_limit_.*",
        r"payment_required",
        r"exceeded_current_quota_error",
        r"quota_exceeded",
        r"usage_not_included",
        r"(daily|monthly|weekly)_.*limit.*",
        r"out_of_credits",
        r"account_overdue|arrearage",
        r"servicequotaexceededexception",
    ),
    _words("quota", r"1113|13(0[89]|1\d|2[01])", statuses=(400, 403, 429)),  # Z.ai: balance, plan, package
    _words(
        "overloaded",
        r"(.*_)?overloaded(_error)?",
        r"slow_down",
        r"unavailable",
        r"server_busy",
        r"over_capacity|capacity_exceeded",
        r"service_?unavailable(_?(error|exception))?",
        r"modelnotreadyexception",
        r"1305",  # Z.ai says it with a 429
    ),
    _words(
        "auth",
        r"(invalid|incorrect|missing)_api_key|api_key_invalid",
        r"authentication_error|invalid_authentication(_error)?",
        r"unauthenticated|unauthorized|token_expired",
        r"account_deactivated|access_terminated_error",
        r"unrecognizedclientexception|expiredtokenexception|invalidsignatureexception|incompletesignature",
    ),
    _words(
        "rate_limit",
        r"rate_?limit(ed|_?error|_?exceeded|_?reached)?(_error)?",
        r"resource_exhausted",
        r"throttling.*",
        r"too_?many_?requests(_?(error|exception))?",
        statuses=(400, 403, 413, 429, 503),
    ),
    _words(
        "content_filter",
        r"content_filter(ed)?|content_policy_violation",
        r"moderation_.*",
        r"responsibleaipolicyviolation",
        r"data_inspection_failed",
        r"prohibited_content|safety|cyber_policy_violation",
    ),
    _words(
        "not_found",
        r"model_not_(found|available|exist)|unknown_model|invalid_model|model_decommissioned",
        r"deploymentnotfound|resourcenotfoundexception|model_terms_required",
    ),
    # Groq: the model wrote a call that cannot be read; the request is well, and another try may be, too
    _words("invalid_reply", r"tool_use_failed|output_parse_failed|json_validate_failed", statuses=(400, 422)),
    _words("malformed_history", r"invalid_encrypted_content|invalid_tool_call_id|invalid_request_message_order"),
)
"""What codes and types say, before anything else is read."""

TEXTS: tuple[Rule, ...] = (
    _text(
        "quota",
        r"credit balance",
        r"exceeded your current quota|quota (is |has been )?exhausted",
        r"insufficient (balance|credits?|funds|quota)",
        r"(out of|no|no remaining|requires? more|need more) credits|add [\w ]{0,20}credits",
        r"\b(daily|monthly|weekly|spend(ing)?|free[- ]tier|billing|(key|usage)(?![\w -]{0,20}\brate\b))"
        r"[\w -]{0,20} limit[\w ]{0,20}(exceeded|reached|exhausted|hit)",
        r"reached your [\w ,]{0,30}(usage|spend|quota|credit)|regain access",
        r"payment required",
        r"(free[- ]tier|credits?|balance)[\w -]{0,30}(depleted|exhausted|used up)",
        statuses=(400, 402, 403, 404, 429, 503),
    ),
    _text(
        "overloaded",
        r"overloaded|over[ -]?capacity|at capacity|high demand",
        r"server (is )?busy|temporarily unavailable|queue is full",
        r"no (healthy|available) (upstream|provider|instances)",
        r"loading model|currently loading",
        statuses=(408, 429, 498, 500, 502, 503, 504, 529),
    ),
    _text(
        "auth",
        r"api[ _]?key (is )?(not valid|invalid|missing|incorrect|expired|disabled)",
        r"(invalid|incorrect|missing|expired|disabled) (x-)?api[ _-]?key|no api[ _-]?key",
        r"invalid (auth|bearer|token|credential)|token (has )?expired",
        r"unauthori[sz]ed|not authenticated",
        r"account (has been |is )?(deactivated|disabled|suspended)",
        statuses=(400, 401, 403),
    ),
    _text(
        "content_filter",
        r"content[ _](policy|filter|management|moderation)|moderation",
        r"flagged (as|by|for)|guardrail|safety (system|polic|filter)",
        r"violat\w+ [\w ]{0,30}polic",
        statuses=(400, 403, 422),
    ),
    _text(
        "rate_limit",
        r"rate.?limit|too many (concurrent )?requests|throttl",
        r"(requests|tokens) per (second|minute|hour|day)|\b[tr]p[md]\b",
        r"try again in \d|too many tokens, please wait",
        statuses=(400, 403, 413, 429, 500, 503),
    ),
    _text(
        "output_cap",
        r"max_(completion_|output_|new_)?tokens\W{0,3} ?(is too (large|high)|must be|should be|cannot|exceed)",
        r"max_(completion_|output_|new_)?tokens:? ?\d+ ?>",
        r"(invalid|range of|maximum) max_(completion_)?tokens",
        r"maximum (allowed )?(number of )?(output|completion) tokens",
        statuses=(400, 422),
    ),
    _text(
        "malformed_history",
        r"tool_use.{0,60}without.{0,40}tool_result|tool_result.{0,80}(corresponding|previous) ",
        r"tool_calls?\W.{0,60}must be followed|must be a response to a prec",
        r"thinking.{0,40}(block|signature)|thought_signature|invalid.{0,12}signature|encrypted content",
        r"roles? must alternate|alternate user/assistant|unexpected role|expected last role",
        r"number of function (call|response)|function call turn comes",
        r"tool_call_id|tool call ids?|text content blocks must be",
        r"tool_(use|calls?)\S{0,12}id\b.{0,30}(string too long|match pattern)|tool_use_id|toolresult blocks",
        r"reasoning_content|no tool (call|output) found for function call",
        r"content \W{0,2}(must|should|cannot|can not|can't) ?(not )?be (empty|null)|non-?empty content",
        r"must not be empty",
        r"must have either content or tool_calls|system message must be|must start with a user message",
        r"messages (parameter )?(is )?illegal|(invalid|incorrect) role",
        statuses=(400, 422, 500),
    ),
    _text("bad_request", r"no endpoints found (that|matching)", statuses=(404,)),  # OpenRouter: not with that
    _text(
        "not_found",
        r"\bmodels? [`'\"\w./:@-]{0,80} ?(is |was )?(not|no longer) (found|available|supported)",
        r"\bmodels? [`'\"\w./:@-]{0,80} ?(does not|doesn't) exist",
        r"model.{0,60}(decommissioned|deprecated|retired)",
        r"(unknown|invalid|no such) model|not a valid model|try pulling it",
        statuses=(400, 403, 404, 410, 422),
    ),
)
"""What sentences say; overflow has been ruled out by then."""

STATUSES: dict[int, ErrorClass] = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    407: "network",  # a proxy in between wants a login of its own: nobody was reached
    408: "timeout",
    409: "server",
    410: "not_found",
    413: "too_many_bytes",
    422: "bad_request",
    425: "server",
    429: "rate_limit",
    498: "overloaded",  # Groq: the flex tier is out of capacity
    503: "overloaded",
    504: "timeout",
    511: "network",  # the page of a captive portal
    524: "timeout",  # Cloudflare waited for the origin
    529: "overloaded",
}

LAST: tuple[Rule, ...] = (
    _words("timeout", r"timeout(_error)?|deadline_exceeded|request_timeout"),
    _words("auth", r"permission_(error|denied)|accessdeniedexception|forbidden"),
    _words("not_found", r"not_found(_error)?"),
    _words("server", r"(api|server|internal|internal_server|upstream)_?error|internal|internalserverexception"),
    _words("bad_request", r"(invalid_request|bad_?request|validation|invalid_argument).*"),
)
"""Types that are too general to come first; they decide where no status does (an event in a stream)."""
