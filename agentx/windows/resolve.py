"""Which of the things that are known of a link is its window: pure, in the order of DESIGN.md section 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentx.config.links import Link
from agentx.windows.candidates import (
    ASSUMED,
    ASSUMED_WHERE_CUT,
    HOSTED_AGE_SECONDS,
    LARGEST_UNASKED_NUM_CTX,
    LEARNED_AGE_SECONDS,
    Facts,
    Said,
    everything,
)
from agentx.windows.cures import Advice, advice
from agentx.windows.known import Heard
from agentx.windows.record import Source, Window

__all__ = [
    "ASSUMED",
    "ASSUMED_WHERE_CUT",
    "HOSTED_AGE_SECONDS",
    "LARGEST_UNASKED_NUM_CTX",
    "LEARNED_AGE_SECONDS",
    "Candidate",
    "Facts",
    "Resolution",
    "choose_num_ctx",
    "decide",
    "resolve",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One place where a window may come from, and what became of it. `window` is None where it says nothing."""

    source: Source
    window: Window | None
    won: bool
    reason: str
    """Why it won or lost, or why it says nothing."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The window, every candidate in the order of resolution, what a user should do, and what was not believed."""

    window: Window
    candidates: tuple[Candidate, ...] = ()
    advice: tuple[Advice, ...] = ()
    refused: tuple[str, ...] = ()
    """A line for each number that was read and is no window, with the reason."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The advice, one line each."""
        return tuple(map(str, self.advice))


def resolve(link: Link, facts: Facts) -> Window:
    """The window of *link*: the first that answers, never above a proven limit."""
    return decide(link, facts).window


def decide(link: Link, facts: Facts) -> Resolution:
    """The window, and why it is not another one."""
    said = everything(link, facts)
    free = [one for one in said if one.window and not one.barred and one.source != "learned"]
    base, lowered = _base(link, free), None
    window = _filled(base, [one.window for one in free if one.window], facts)
    limit = next((one.window for one in said if one.source == "learned" and one.window and not one.barred), None)
    if limit and (limit.size < window.size or (limit.size == window.size and base.source == "assumed")):
        lowered = limit
        window = replace(
            window.at_most(limit.size),
            source="learned",
            detail=limit.detail,
            confidence="proven",
            seen_at=limit.seen_at,
        )
    return Resolution(
        window,
        tuple(_judged(one, base, lowered) for one in said),
        tuple(advice(link, facts, window, lowered)),
        tuple(_refused(facts, window)),
    )


def choose_num_ctx(link: Link, heard: Heard | None) -> int | None:
    """What to ask of an Ollama for *link*: one value for the whole job; None while nothing is known.

    The link's own window; else what is loaded, since another value would reload the model under its other users;
    else the Modelfile's; else the trained length, at most 32,768. Never above the trained length.
    """
    reading = heard.reading if heard else None
    trained = reading.trained if reading else None
    wanted = link.window or (reading and (reading.served or reading.default))
    if not wanted:
        return min(trained, LARGEST_UNASKED_NUM_CTX) if trained else None
    return min(wanted, trained or wanted)


def _base(link: Link, free: Sequence[Said]) -> Window:
    """The first that says a number; the served one where that is lower than the user's."""
    windows = [one.window for one in free if one.window]
    first = windows[0]
    served = next((one for one in windows if one.source == "served"), None)
    return served if link.window and served and served.size < first.size and not link.force else first


def _filled(base: Window, windows: Sequence[Window], facts: Facts) -> Window:
    """*base* with the trained length and the output limit that others know of the same model."""
    readings = [heard.reading for heard in (facts.heard, facts.cached) if heard]
    others = [one for one in (*readings, *windows, facts.table) if one is not None]
    trained = base.trained or next((one.trained for one in others if one.trained), None)
    output = base.output or next((one.output for one in others if one.output), None)
    shared = base.shared
    if base.source == "config":
        shared = next((one.shared for one in windows if one.source not in ("config", "assumed")), shared)
    return replace(base, trained=trained, output=output, shared=shared)


def _judged(one: Said, base: Window, lowered: Window | None) -> Candidate:
    window = one.window
    if window is None or one.barred:
        return Candidate(source=one.source, window=window, won=False, reason=one.barred)
    if one.source == "learned":
        if base.size == window.size:
            reason = f"proves what {base.source} says"
        else:
            what = "always" if lowered else "only"
            reason = f"a proven limit {what} lowers, and {base.source} says {base.size:,}"
        return Candidate(source=one.source, window=window, won=lowered is not None, reason=reason)
    if one.source != base.source:
        less = one.source == "config" and base.source == "served"
        reason = f"the server holds only {base.size:,}" if less else f"{base.source} goes first"
        return Candidate(source=one.source, window=window, won=False, reason=reason)
    if lowered:
        return Candidate(
            source=one.source, window=window, won=False, reason=f"the endpoint proved {lowered.size:,}"
        )
    reason = "nobody says" if one.source == "assumed" else "the first that says a number"
    return Candidate(source=one.source, window=window, won=True, reason=reason)


def _refused(facts: Facts, window: Window) -> Iterator[str]:
    if facts.heard:
        yield from facts.heard.reading.refused
    if window.trained and window.trained > window.size:
        yield f"the trained length, {window.trained:,}, is a ceiling and no window"
