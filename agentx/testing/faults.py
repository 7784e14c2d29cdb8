"""What can go wrong with a chat request, as values, and when it does.

A schedule is asked with the number of the chat request (from 1) and gives a fault or None. `always(fault)`,
`first(n, fault)`, `at({2: fault})` and `after(n, fault)` make the usual ones. What keeps a client from ever
sending a request is no matter of schedules: `FaultServer(unreachable=TlsCut())`. `agentx.testing.named` gives
each its name and real words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Instead of an answer ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Status:
    """Answers with *status*; `body` None is the server's own words for it, a text is sent as it stands."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | str | None = None


@dataclass(frozen=True, slots=True)
class RetryOn:
    """429 with `Retry-After` as an HTTP date, *seconds* from now."""

    seconds: int = 130


@dataclass(frozen=True, slots=True)
class Hang:
    """Takes the request and never answers, not even with headers."""


@dataclass(frozen=True, slots=True)
class HeadersThenHang:
    """200 and all headers, then nothing, and the connection stays open."""


@dataclass(frozen=True, slots=True)
class Close:
    """Takes the request and closes the connection without a byte."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Takes the request and resets the connection (a RST, as a crashed or killed server's machine sends it)."""


@dataclass(frozen=True, slots=True)
class Html200:
    """200 with a page: a proxy or a captive portal in between."""


@dataclass(frozen=True, slots=True)
class Garbage200:
    """200 `application/json` that is no JSON."""


@dataclass(frozen=True, slots=True)
class ErrorIn200:
    """200 with an error body; for a stream, an error event as the first and only one."""

    message: str = "The model is overloaded. Please try again later."
    type: str = "overloaded_error"


@dataclass(frozen=True, slots=True)
class EmptyStream:
    """200 and nothing at all: no event, no error (llama-cpp-python on a streamed overflow)."""


# A wrong answer ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmptyChoices:
    """200 with `choices: []`; on Ollama's own route an empty message."""


@dataclass(frozen=True, slots=True)
class NullContent:
    """A reply without text and without calls."""


@dataclass(frozen=True, slots=True)
class ReasoningOnly:
    """A reply that only thought."""


@dataclass(frozen=True, slots=True)
class HalfToolCall:
    """A tool call whose arguments stop in the middle of the JSON, said to be whole.

    Where the brain calls no tool, it is a call of the first one that was offered."""


@dataclass(frozen=True, slots=True)
class CutReply:
    """A reply that was cut at its length limit after *tokens* tokens."""

    tokens: int = 5


@dataclass(frozen=True, slots=True)
class FakeUsage:
    """A right answer with a wrong count of prompt tokens; None leaves the usage out. Of them `cached` came from a
    cache."""

    prompt_tokens: int | None = None
    cached: int = 0


# A broken way there -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slow:
    """Waits *seconds* before the first byte; a right answer then."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CutStream:
    """The connection breaks after *after* pieces of the stream; a plain answer is as with `ShortBody`."""

    after: int = 3


@dataclass(frozen=True, slots=True)
class ShortBody:
    """A plain body, even where a stream was asked for: half of what `Content-Length` says, then the end."""


@dataclass(frozen=True, slots=True)
class NoFinish:
    """A stream that ends cleanly without a finish reason or a last event."""


@dataclass(frozen=True, slots=True)
class NoDone:
    """A stream that gives its finish reason and ends cleanly, without `[DONE]`: the answer is whole."""


@dataclass(frozen=True, slots=True)
class KeepaliveForever:
    """After *after* pieces only signs of life: comments, or `empty` pieces without content."""

    after: int = 3
    every: float = 0.02
    kind: Literal["comment", "empty"] = "comment"


@dataclass(frozen=True, slots=True)
class Blanks:
    """After *after* pieces only blanks, as text of the answer, for ever."""

    after: int = 3
    every: float = 0.02


@dataclass(frozen=True, slots=True)
class Drip:
    """The right answer, one byte each *every* seconds."""

    every: float = 20.0


@dataclass(frozen=True, slots=True)
class Stall:
    """After *after* pieces nothing more comes, and the connection stays open."""

    after: int = 3


@dataclass(frozen=True, slots=True)
class ErrorInStream:
    """An error event after *after* good pieces of a 200."""

    after: int = 3
    message: str = "The server had an error while processing your request."
    type: str = "server_error"


# No way there -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """Nobody listens at the port: a connection is refused."""


@dataclass(frozen=True, slots=True)
class Unresolvable:
    """The name of the server is known to no DNS."""


@dataclass(frozen=True, slots=True)
class TlsCut:
    """The address is `https`; the connection is closed in the middle of the TLS handshake."""


Instead = (
    Status | RetryOn | Hang | HeadersThenHang | Close | Reset | Html200 | Garbage200 | ErrorIn200 | EmptyStream
)
Wrong = EmptyChoices | NullContent | ReasoningOnly | HalfToolCall | CutReply | FakeUsage
Broken = (
    Slow | CutStream | ShortBody | NoFinish | NoDone | KeepaliveForever | Blanks | Drip | Stall | ErrorInStream
)
Fault = Instead | Wrong | Broken
Unreachable = Refused | Unresolvable | TlsCut
Schedule = Callable[[int], Fault | None]


def healthy(_number: int) -> Fault | None:
    return None


def always(fault: Fault) -> Schedule:
    return lambda _number: fault


def first(count: int, fault: Fault) -> Schedule:
    """The first *count* chat requests fail."""
    return lambda number: fault if number <= count else None


def after(count: int, fault: Fault) -> Schedule:
    """Every chat request after the first *count* fails."""
    return lambda number: fault if number > count else None


def at(faults: Mapping[int, Fault]) -> Schedule:
    """Fails by the number of the chat request, from 1."""
    return faults.get


RATE_LIMIT = {
    "error": {
        "message": "Rate limit reached for requests",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }
}


def rate_limited(seconds: int = 30) -> Status:
    """A 429 as OpenAI-style services send it."""
    return Status(429, {"retry-after": str(seconds)}, RATE_LIMIT)
