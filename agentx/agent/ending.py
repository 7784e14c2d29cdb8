"""How a run ends: one name, one exit code, one sentence, and what to type next (DESIGN.md section 9)."""

from __future__ import annotations

from dataclasses import dataclass

from agentx.errors import AgentxError, StopRequested


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """`answer` is the text of the last reply, where there is one."""

    name: str
    exit: int
    message: str
    hint: str | None = None
    answer: str | None = None


def done(answer: str) -> Ending:
    return Ending(name="done", exit=0, message="the task is finished", answer=answer)


def unfinished(message: str, *, answer: str | None = None, hint: str | None = None) -> Ending:
    return Ending(name="unfinished", exit=1, message=message, answer=answer, hint=hint)


def interrupted(signal_number: int) -> Ending:
    """Ended by a signal: 130 for SIGINT, 143 for SIGTERM."""
    return Ending(
        name="interrupted",
        exit=128 + signal_number,
        message="interrupted by a signal; nothing is lost",
        hint="go on with `agentx resume JOB`",
    )


def ending_of(error: AgentxError) -> Ending:
    """The ending that *error* stands for."""
    hint = error.hint
    if isinstance(error, StopRequested):
        hint = hint or "go on with `agentx resume JOB`"
    names = {1: "unfinished", 5: "chain_exhausted", 6: "limit_reached", 7: "context_overflow", 9: "stopped"}
    return Ending(
        name=names.get(error.exit_code, error.kind),
        exit=error.exit_code,
        message=error.message,
        hint=hint,
    )
