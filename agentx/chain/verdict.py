"""The error that ends a request which no link could answer: it says what each link said, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.chain.classify import Failure
from agentx.chain.decide import TOO_LARGE
from agentx.chain.health import Rest
from agentx.config.links import Link
from agentx.errors import AgentxError, ChainExhausted, ContextOverflow, ErrorClass, LimitReached, NoUsableModel

WINDOW_BLAMED = ("overflow", "truncated")
CAP_HINT = "go on with more: a higher `max_cost` of the link, then `agentx resume JOB`"
CHECK_HINT = "`agentx chain --check` asks every link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended at one link. `out` and `keyless` as in Rest and Failure."""

    link: str
    error_class: ErrorClass
    message: str
    hint: str | None = None
    out: bool = False
    keyless: bool = False
    capped: bool = False
    """It may not be asked: it would cost more than it may."""

    @property
    def line(self) -> str:
        return f"{self.link}: {self.error_class}: {self.message}"


def of_failure(link: Link, failure: Failure) -> Ended:
    return Ended(
        link=link.name,
        error_class=failure.error_class,
        message=failure.message,
        hint=failure.hint or _hint_of(link, failure.error_class),
        out=failure.out,
        keyless=failure.keyless,
    )


def _hint_of(link: Link, error_class: ErrorClass) -> str | None:
    if error_class == "cut" and link.max_tokens is not None:
        return f"allow {link.name} more than `max_tokens: {link.max_tokens}`"
    return link.window_hint if error_class in WINDOW_BLAMED or error_class == "cut" else None


def of_overflow(link: Link, error: ContextOverflow) -> Ended:
    """No request could be made for *link*."""
    hint = "; or ".join(part for part in (link.window_hint, error.hint) if part)
    return Ended(link=link.name, error_class="overflow", message=error.message, hint=hint or None)


def of_cap(link: Link, why: str, hint: str | None = None) -> Ended:
    """*link* was not asked: it would cost more than it may."""
    return Ended(link=link.name, error_class="quota", message=f"not asked: {why}", hint=hint, capped=True)


def of_rest(link: Link, rest: Rest) -> Ended:
    """*link* was not asked at all."""
    return Ended(link=link.name, error_class=rest.error_class, message=rest.message, out=rest.out)


def nothing_left(links: Sequence[Ended], *, answered: bool) -> AgentxError:
    """No link may be asked any more, and none comes back by waiting.

    NoUsableModel when no link has its key, or when none ever *answered* and all are out; ContextOverflow when
    those that could be asked cannot hold the conversation; else ChainExhausted.
    """
    hint = _hint(links)
    if links and all(link.capped for link in links):
        return LimitReached("cost", f"no link may cost more: {_said(links)}", hint=hint or CAP_HINT)
    usable = [link for link in links if not link.out]
    if links and all(link.keyless for link in links):
        return NoUsableModel(f"no link of the chain has its key: {_said(links)}", hint=hint)
    if usable and all(link.error_class in TOO_LARGE for link in usable):
        text = "the conversation cannot be made to fit any link"
        return ContextOverflow(f"{text}: {_said(links)}", hint=_hint(usable) or hint)
    if usable and all(link.error_class == "cut" for link in usable):
        return _exhausted("every reply was cut before it was whole", links)
    if not usable and not answered:
        return NoUsableModel(f"no link of the chain can be used: {_said(links)}", hint=hint or CHECK_HINT)
    return _exhausted("no link of the chain can answer", links)


def waited_enough(links: Sequence[Ended], *, wanted_seconds: float, allowed_seconds: float) -> AgentxError:
    """The next link would be ready in *wanted_seconds*, which is longer than may be waited."""
    wanted, allowed = _span(wanted_seconds), _span(allowed_seconds)
    return _exhausted(f"every link rests for {wanted} or longer, and {allowed} may be waited", links)


def nobody_there(links: Sequence[Ended]) -> AgentxError:
    """No link could be connected to, and none ever answered."""
    hint = _hint(links) or f"start the server or check the address; {CHECK_HINT}"
    return NoUsableModel(f"nothing answers: {_said(links)}", hint=hint)


def refused(links: Sequence[Ended]) -> AgentxError:
    """Two links refused the very same request: a third would, too."""
    return _exhausted("the request itself is refused", links)


def _exhausted(text: str, links: Sequence[Ended]) -> ChainExhausted:
    lines = [link.line for link in links]
    return ChainExhausted(f"{text}: {_said(links)}", tried=lines, hint=_hint(links) or CHECK_HINT)


def _said(links: Sequence[Ended]) -> str:
    return "; ".join(link.line for link in links)


def _hint(links: Sequence[Ended]) -> str | None:
    return next((link.hint for link in links if link.hint), None)


def _span(seconds: float) -> str:
    if seconds <= 0:
        return "nothing"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5_400 else f"{seconds / 3600:.1f} hours"
