"""Every error that agentx raises on purpose: what happened, where, what to type next, and the exit code.

    AgentxError                 1
    ├── UsageError              2   the command line asks for something that makes no sense
    ├── ConfigError             3   a config file, card or windows file is wrong
    ├── NoUsableModel           4   no model, no key, or nothing answers
    ├── ChainExhausted          5   every link failed, and waiting was not allowed or too long
    ├── LimitReached            6   cost, hours, turns or tokens
    │   └── CapReached          6   what one link may cost in a job
    ├── ContextOverflow         7   the conversation cannot be made to fit any link
    │   └── WindowTooSmall      7   a window that cannot hold the floor and a reply
    ├── NoSuchJob               8   no such job, or more than one fits
    ├── StopRequested           9   somebody asked the job to stop
    ├── StateError              1   the state folder cannot be read or written, or the disk is full
    ├── RequestFailed           1   a request to a model failed; the chain reads it, users rarely see it
    └── ToolFailed              1   a tool call failed; the model reads it, the job goes on

An error never logs, prints or exits by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

ErrorClass = Literal[
    "rate_limit",
    "quota",
    "overloaded",
    "auth",
    "not_found",
    "timeout",
    "network",
    "offline",
    "server",
    "overflow",
    "output_cap",
    "too_many_bytes",
    "malformed_history",
    "bad_request",
    "content_filter",
    "invalid_reply",
    "empty_reply",
    "cut",
    "truncated",
]
"""What can go wrong with a request, by what has to be done about it (DESIGN.md section 9)."""


class AgentxError(Exception):
    """The root. `message` says what happened with the place first; `hint` can be typed."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AgentxError):
    kind = "usage"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file: `where` is `file:line:column`, or the variable or option."""

    where: str
    what: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ConfigError(AgentxError):
    """All problems that were found, not only the first."""

    kind = "config"
    exit_code = 3

    def __init__(self, problems: Sequence[Problem]) -> None:
        hints = [problem.hint for problem in problems if problem.hint]
        super().__init__("\n".join(map(str, problems)), hint="\n".join(dict.fromkeys(hints)) or None)
        self.problems = tuple(problems)


class NoUsableModel(AgentxError):
    kind = "no_usable_model"
    exit_code = 4


class ChainExhausted(AgentxError):
    """Keeps one line for each link that was tried, in order."""

    kind = "chain_exhausted"
    exit_code = 5

    def __init__(self, message: str, *, tried: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.tried = tuple(tried)


class LimitReached(AgentxError):
    """`limit` is `cost`, `hours`, `turns` or `tokens`."""

    kind = "limit_reached"
    exit_code = 6

    def __init__(self, limit: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit


class CapReached(LimitReached):
    """The next request could cost more than its link may: another link may still answer."""

    kind = "cap_reached"


class ContextOverflow(AgentxError):
    """`limit` is what there is room for, `actual` what is needed, in tokens, where both are known."""

    kind = "context_overflow"
    exit_code = 7

    def __init__(
        self, message: str, *, hint: str | None = None, limit: int | None = None, actual: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit
        self.actual = actual


class WindowTooSmall(ContextOverflow):
    kind = "window_too_small"


class NoSuchJob(AgentxError):
    kind = "no_such_job"
    exit_code = 8


class StopRequested(AgentxError):
    kind = "stopped"
    exit_code = 9


class StateError(AgentxError):
    kind = "state"


Phase = Literal["connect", "headers", "body", "stream", "status", "reply"]
"""Where a request broke: before the connection stood, before the first byte of the answer, while reading a
body, while reading a stream after a 200, by a status that is not 2xx, or in a reply that is no reply."""


@dataclass(eq=False)
class RequestFailed(AgentxError):
    """What a wire saw, whole: nothing is classified yet (that is `agentx.chain.classify`).

    `status` is the HTTP status, or None when there was no answer. `body` is the text of the answer, at most
    64 KiB of it. `headers` have lower-case names. `timed_out` is true when one of our own timers ended it.
    `error_class` is set only by who is certain without reading provider texts: a reply that was checked
    (`invalid_reply`, `empty_reply`, `cut`, `truncated`), or a missing key (`auth`). `usage` is what the server
    counted (the fields of `Usage`), where it counted before it failed: that is paid for all the same.
    """

    kind: ClassVar[str] = "request_failed"

    message: str
    phase: Phase
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""
    timed_out: bool = False
    error_class: ErrorClass | None = None
    hint: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    @property
    def prompt_tokens(self) -> int | None:
        """What the server said that it read."""
        return self.usage.get("input")


class ToolFailed(AgentxError):
    """Written for the model: it becomes the result of the tool call."""

    kind = "tool_failed"
