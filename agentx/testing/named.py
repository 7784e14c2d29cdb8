"""Every fault by a name, in the words of real services: for `python -m agentx.testing --fault NAME`, for
`agentx doctor --fault`, and for a test of one's own that wants to see them all.

With a second server to go to, a client can survive each of them. The last few are `harmless`: the answer is right
and only comes in an odd way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentx.testing.faces import Face
from agentx.testing.faults import (
    RATE_LIMIT,
    Blanks,
    Close,
    CutReply,
    CutStream,
    Drip,
    EmptyChoices,
    EmptyStream,
    ErrorIn200,
    ErrorInStream,
    FakeUsage,
    Fault,
    Garbage200,
    HalfToolCall,
    Hang,
    HeadersThenHang,
    Html200,
    KeepaliveForever,
    NoDone,
    NoFinish,
    NullContent,
    ReasoningOnly,
    Refused,
    Reset,
    RetryOn,
    ShortBody,
    Slow,
    Stall,
    Status,
    TlsCut,
    Unreachable,
    Unresolvable,
    always,
)
from agentx.testing.server import FaultServer


@dataclass(frozen=True, slots=True)
class Named:
    """A fault and what it does, in one line. `endless`: a client ends it by its own timers or never."""

    fault: Fault | Unreachable
    says: str
    harmless: bool = False
    endless: bool = False


PHRASES = {
    400: "bad request",
    401: "the key is wrong",
    402: "payment required",
    403: "forbidden",
    404: "not found",
    408: "the server waited too long for the request",
    409: "conflict",
    413: "the request is too large",
    422: "the request cannot be processed",
    429: "too many requests, without a word on when to come back",
    500: "internal error",
    502: "bad gateway",
    503: "overloaded",
    504: "the gateway waited too long for the server",
    529: "overloaded, as Anthropic says it",
}


def _error(message: str, **more: Any) -> Mapping[str, Any]:
    return {"error": {"message": message, **more}}


def _quota(status: int, message: str, **more: Any) -> Named:
    said = Status(status, body=_error(message, **more))
    return Named(said, f"{status}, and its text says that the account is empty")


def _later(header: str, value: str) -> Named:
    return Named(Status(429, {header: value}, RATE_LIMIT), f"429 with `{header}: {value}`")


STATUSES = {f"status-{status}": Named(Status(status), f"{status}: {text}") for status, text in PHRASES.items()}

QUOTAS = {
    "quota-429": _quota(
        429, "You exceeded your current quota, please check your plan.", code="insufficient_quota"
    ),
    "quota-400": _quota(400, "Your credit balance is too low to access the API.", type="invalid_request_error"),
    "quota-403": _quota(403, "Key limit exceeded (total limit). Manage it in your settings.", code=403),
    "quota-404": _quota(404, "The free tier is depleted: add credits to go on.", code=404),
}

LATER = {
    "no-retry": Named(Status(500, {"x-should-retry": "false"}), "500 with `x-should-retry: false`"),
    **{f"retry-after-{seconds}": _later("retry-after", str(seconds)) for seconds in (0, 3, 130, 3600)},
    "retry-after-date": Named(RetryOn(130), "429 with `retry-after` as an HTTP date, 130 s from now"),
    "retry-after-ms": _later("retry-after-ms", "1500"),
}

NO_WAY_THERE = {
    "refused": Named(Refused(), "nobody listens at the port"),
    "unresolvable": Named(Unresolvable(), "no DNS knows the server's name"),
    "tls-cut": Named(TlsCut(), "closed in the middle of the TLS handshake"),
    "close": Named(Close(), "closed without a byte of an answer"),
    "reset": Named(Reset(), "reset (a RST) instead of an answer"),
    "short-body": Named(ShortBody(), "half of the body that `content-length` says, then closed"),
}

NO_SUCCESS = {
    "html-200": Named(Html200(), "200 with a web page"),
    "garbage-200": Named(Garbage200(), "200 with half a JSON document"),
    "error-200": Named(ErrorIn200(), "200 with an error in it: overloaded"),
    "empty-choices": Named(EmptyChoices(), "200 with `choices: []`"),
    "null-content": Named(NullContent(), "an answer without text and without calls"),
    "reasoning-only": Named(ReasoningOnly(), "an answer that only thought"),
    "half-tool-call": Named(HalfToolCall(), "a tool call whose JSON stops half way"),
}

STREAMS = {
    "cut-stream": Named(CutStream(), "a stream that breaks after three pieces"),
    "error-event": Named(ErrorInStream(), "a stream with an error after three pieces"),
    "overloaded-event": Named(
        ErrorInStream(message="Overloaded", type="overloaded_error"),
        "a stream that says it is overloaded after three pieces",
    ),
    "no-finish": Named(NoFinish(), "a stream that ends without a finish reason"),
    "empty-stream": Named(EmptyStream(), "a stream of nothing at all"),
}

ENDLESS = {
    "hang": Named(Hang(), "no answer, not even headers", endless=True),
    "headers-then-hang": Named(HeadersThenHang(), "200 and its headers, then silence", endless=True),
    "keepalives": Named(KeepaliveForever(after=0), "a stream of nothing but comments", endless=True),
    "keepalives-later": Named(KeepaliveForever(), "comments for ever after three pieces", endless=True),
    "empty-deltas": Named(
        KeepaliveForever(kind="empty"), "empty deltas for ever after three pieces", endless=True
    ),
    "blanks": Named(Blanks(), "blanks for ever after three pieces", endless=True),
    "drip": Named(Drip(), "the right answer, one byte each 20 s", endless=True),
    "stall": Named(Stall(), "silence after three pieces", endless=True),
}

HARMLESS = {
    "no-done": Named(NoDone(), "a whole stream without its `[DONE]`", harmless=True),
    "cut-reply": Named(CutReply(tokens=1), "an answer cut at its length limit, and it says so", harmless=True),
    "no-usage": Named(FakeUsage(), "an answer without token counts", harmless=True),
    "slow": Named(Slow(1.0), "an answer after 1 s of silence", harmless=True),
}

NAMED: Mapping[str, Named] = {
    **STATUSES, **QUOTAS, **LATER, **NO_WAY_THERE, **NO_SUCCESS, **STREAMS, **ENDLESS, **HARMLESS,
}  # fmt: skip


def failing(fault: Fault | Unreachable, *, face: Face = "openai") -> FaultServer:
    """A server whose every chat ends in *fault*."""
    if isinstance(fault, Refused | Unresolvable | TlsCut):
        return FaultServer(face=face, unreachable=fault)
    return FaultServer(face=face, schedule=always(fault))
