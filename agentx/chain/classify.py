"""What a failed request means: its class, how far it reaches, when to come back. Pure and table-driven.

In order: what the wire is certain of, the card's own patterns, codes in the body, overflow, sentences, the
status, the phase in which it broke. So quota comes before rate limit, overload before rate limit, overflow
before bad request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from agentx.chain.body import Said, one_line, read
from agentx.chain.health import Reach
from agentx.chain.images import refused_images
from agentx.chain.parameters import Refusal, lacks_tools, refused_parameter
from agentx.chain.rules import CODES, LAST, STATUSES, TEXTS, Rule
from agentx.chain.waits import retry_at
from agentx.config.links import Provider
from agentx.errors import ErrorClass, RequestFailed
from agentx.windows.overflow import Cause, Overflow, read_overflow, read_own

Scope = Literal["request", "model", "key", "account", "provider", "network"]

CLASSES = frozenset(get_args(ErrorClass))
SCOPES: dict[ErrorClass, Scope] = {
    "rate_limit": "model",
    "quota": "account",
    "overloaded": "model",
    "auth": "key",
    "not_found": "model",
    "timeout": "provider",
    "network": "network",
    "offline": "network",
    "server": "provider",
    "invalid_reply": "model",
    "empty_reply": "model",
}
"""What is not listed is about the request itself."""

BY_CAUSE: dict[Cause, ErrorClass] = {"input": "overflow", "output": "output_cap", "bytes": "too_many_bytes"}
CAUSES: dict[ErrorClass, Cause] = {found: cause for cause, found in BY_CAUSE.items()}
MODELS_QUOTA = re.compile(
    r"per.?day|per.?model|(for|of) model|this model|free-models|(requests|tokens) per|\b[tr]pd\b|limit: 0"
    r"|afford|premium",
    re.IGNORECASE,
)
"""Words of a quota that only one model, or one kind of them, has used up."""
ABOUT_KEYS = re.compile(r"api.?key|credential|token|signature|authenticat|account|expired|log.?in", re.IGNORECASE)
BROKEN: frozenset[ErrorClass] = frozenset({"invalid_reply", "empty_reply", "cut"})
LIMITED: frozenset[ErrorClass] = frozenset({"rate_limit", "overloaded"})
"""What a rate limit's headers describe. With an empty account they say milliseconds, and mean another limit."""
TOOLS_HINT = "choose a model that can call tools, or switch them on at its server"
SAYS_WHEN: frozenset[ErrorClass] = frozenset({"rate_limit", "overloaded", "quota"})
"""What sentences for people give a time for."""
IN_BETWEEN = frozenset({407, 511})
"""Statuses of a proxy or a captive portal: the provider was not reached."""
UNFIT: frozenset[ErrorClass] = frozenset({"bad_request", "server", "not_found"})
"""What servers call a request that their model is not made for."""
UNEXPLAINED: frozenset[ErrorClass] = frozenset({"bad_request", "too_many_bytes"})
"""What a 400 and a 413 are taken for when nothing else speaks."""
WORDLESS = re.compile(r"(?:4\d\d(?: status code)?)?\s*(?:\(no body\)|\{\}|null|\"\")?", re.IGNORECASE)
"""An empty body, or what gateways make of one."""
CAP = re.compile(
    r"(?:at most|less than or equal to|<=|maximum(?: allowed)?(?: value)?(?: is| of|:)?|not exceed|between \d+ and"
    r"|\[\d+, ?|>)\s*(\d[\d,]{0,14})(?![\d,])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed request, understood. `limit`, `actual` and `output_cap` are tokens, as the refusal said them."""

    error_class: ErrorClass
    scope: Scope
    message: str
    """One clean line."""
    status: int | None = None
    retry_at: float | None = None
    """Epoch seconds."""
    limit: int | None = None
    actual: int | None = None
    output_cap: int | None = None
    connected: bool = True
    """False when the connection never stood."""
    known: bool = True
    """False when nothing in the tables fitted and only the status spoke."""
    wordless: bool = False
    """Nothing at all was said but a 400 or 413, as Cerebras and Mistral do with some prompts that are too long."""
    guessed: bool = False
    """Only the size of the request speaks for the class."""
    may_repeat: bool = True
    """False when the server said that asking again is of no use."""
    hint: str | None = None
    refuses: Refusal | None = None
    """A parameter that the request can do without, or its images."""
    toolless: bool = False
    """The model cannot be given tools."""

    @property
    def out(self) -> bool:
        """Asking again is of no use before something is changed."""
        return self.toolless or self.error_class in ("auth", "not_found")

    @property
    def reach(self) -> Reach:
        """Who else would fail for the same reason."""
        if not self.connected and self.status is None:
            return "address"
        return "key" if self.scope in ("key", "account") else "link"

    @property
    def keyless(self) -> bool:
        """The key is not there at all: nothing was sent."""
        return self.error_class == "auth" and self.status is None


@dataclass(frozen=True, slots=True)
class OwnWords:
    """What a card's own pattern made of a failure."""

    means: ErrorClass
    overflow: Overflow | None
    scope: Scope | None = None


def classify(failure: RequestFailed, provider: Provider, now: float) -> Failure:
    """What *failure* means at *provider*. Never raises."""
    said = read(failure.body)
    status = _status(failure, said)
    own = _own_words(provider, status, said) if _refused(status) or said.is_error else None
    overflow = _sizes(own, status, failure.body)
    found, known = _class_of(failure, said, status, own, overflow)
    toolless = found in UNFIT and lacks_tools(said)
    images = refused_images(said) if found in UNFIT and not toolless else None
    refuses = images or (refused_parameter(said) if found == "bad_request" and not toolless else None)
    found = "bad_request" if toolless or images else found
    known = known or toolless or refuses is not None
    return Failure(
        error_class=found,
        scope="model" if toolless or images else (own.scope if own else None) or _scope(found, status, said),
        message=_message(failure, said, provider),
        status=failure.status,
        retry_at=retry_at(
            failure.headers, failure.body, now, limits=found in LIMITED, sentences=found in SAYS_WHEN
        ),
        limit=overflow.limit if overflow else None,
        actual=overflow.actual if overflow else None,
        output_cap=_output_cap(said, overflow) if found == "output_cap" else None,
        connected=found == "auth" or _connected(failure),
        known=known,
        wordless=found in UNEXPLAINED and WORDLESS.fullmatch((said.message or failure.body).strip()) is not None,
        may_repeat=failure.headers.get("x-should-retry", "").lower() != "false",
        hint=failure.hint or (TOOLS_HINT if toolless else None),
        refuses=refuses,
        toolless=toolless,
    )


def _class_of(
    failure: RequestFailed, said: Said, status: int | None, own: OwnWords | None, overflow: Overflow | None
) -> tuple[ErrorClass, bool]:
    """The class, and whether more than the status spoke for it."""
    if failure.error_class is not None:
        return failure.error_class, True
    refused = _refused(status)
    if (refused or said.is_error) and (found := _by_words(said, status, own, overflow)) is not None:
        return found, True
    if failure.timed_out:
        return "timeout", True
    by_type = _first(LAST, status, said)
    if status is not None and refused:
        if status == 403 and _is_page(failure.body):  # a gateway's wall: the key was not even looked at
            return "server", True
        by_status = STATUSES.get(status, "server" if status >= 500 else "bad_request")
        if by_status == "bad_request" and failure.headers.get("x-should-retry", "").lower() == "true":
            return "server", True
        if by_status == "server" and status >= 500 and by_type == "bad_request":  # a relay's: it stays so
            return "bad_request", True
        return by_status, by_status != "bad_request" or by_type is not None
    if said.is_error:
        return by_type or "server", by_type is not None
    if failure.phase == "reply" or (failure.status is not None and failure.phase in ("body", "status")):
        return "invalid_reply", True
    return "network", True


def _by_words(
    said: Said, status: int | None, own: OwnWords | None, overflow: Overflow | None
) -> ErrorClass | None:
    """What the body says; None where it is silent."""
    if own is not None:
        return own.means
    if (by_code := _first(CODES, status, said)) is not None:
        return by_code
    return BY_CAUSE[overflow.cause] if overflow else _first(TEXTS, status, said)


def _sizes(own: OwnWords | None, status: int | None, body: str) -> Overflow | None:
    """What is said of sizes: by the card's own words, else by those that are known of all servers."""
    if own is None:
        return read_overflow(status, body)
    if own.overflow is None or own.overflow.limit or own.overflow.actual:
        return own.overflow
    known = read_overflow(status, body)
    return known if known and known.cause == own.overflow.cause else own.overflow


def _own_words(provider: Provider, status: int | None, said: Said) -> OwnWords | None:
    """What the card says of it: its first pattern that matches, and the numbers in that."""
    numbers = (f"{name}: {value}" for name, value in said.pairs if not isinstance(value, str))
    text = "\n".join([said.text, *numbers])
    for pattern in provider.errors:
        narrowed = pattern.status is not None and pattern.status != status
        if narrowed or pattern.means not in CLASSES:
            continue
        if match := re.search(pattern.match, text, re.IGNORECASE):
            means = cast("ErrorClass", pattern.means)
            sizes = read_own(match, CAUSES[means]) if means in CAUSES else None
            return OwnWords(means, sizes, pattern.scope)
    return None


def _scope(found: ErrorClass, status: int | None, said: Said) -> Scope:
    """A 404 is about the model, even where what it lacks is only what this request asks for; so is a refusal that
    is called the server's fault, a 403 that does not speak of keys, and a quota that others have not used up."""
    if found == "bad_request" and status is not None and (status == 404 or status >= 500):
        return "model"
    if found == "quota" and MODELS_QUOTA.search(said.text):
        return "model"
    if found == "auth" and status == 403 and not ABOUT_KEYS.search(said.text):
        return "model"
    return SCOPES.get(found, "request")


def _connected(failure: RequestFailed) -> bool:
    if failure.status is None:
        return failure.phase != "connect"
    return failure.status not in IN_BETWEEN


def _is_page(body: str) -> bool:
    return body.lstrip().startswith("<")


def _refused(status: int | None) -> bool:
    return status is not None and status >= 400


def _first(rules: tuple[Rule, ...], status: int | None, said: Said) -> ErrorClass | None:
    return next((rule.means for rule in rules if rule.fits(status, said.words, said.text)), None)


def _status(failure: RequestFailed, said: Said) -> int | None:
    """The status that counts: the one in the body where the answer itself began with a 200 or was cut."""
    if failure.status is not None and failure.status >= 400:
        return failure.status
    return said.status or failure.status


def _message(failure: RequestFailed, said: Said, provider: Provider) -> str:
    """What the server said; of a reply that is none, what is wrong with it: its body is the model's words."""
    own = failure.phase == "reply" and failure.error_class in BROKEN
    return ("" if own else said.message) or _without_name(one_line(failure.message), provider)


def _without_name(message: str, provider: Provider) -> str:
    """*message* without the link that it begins with: whoever shows it names the link already."""
    return re.sub(rf"^{re.escape(provider.name)}(/\S+)?: ", "", message)


def _output_cap(said: Said, overflow: Overflow | None) -> int | None:
    """The largest output budget that fits, where the refusal lets one tell."""
    if overflow is not None and overflow.limit is not None:
        return None if overflow.actual is None else max(1, overflow.limit - overflow.actual - 16)
    found = CAP.search(said.text)
    return int(found.group(1).replace(",", "")) if found else None
