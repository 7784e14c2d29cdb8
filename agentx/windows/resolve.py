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
    held_window,
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
    base = _base(link, free)
    window = _filled(base, [one.window for one in free if one.window], facts)
    proofs: list[Window] = []
    held = held_window(facts)
    if held and held.size > window.size and not _firm(base):
        window = _proven(window.at_least(held.size), held)
        proofs.append(held)
    limit = next((one.window for one in said if one.source == "learned" and one.window and not one.barred), None)
    lowered = limit is not None and (
        limit.size < window.size or (limit.size == window.size and base.source == "assumed")
    )
    if limit and lowered:
        window = _proven(window.at_most(limit.size), limit)
        proofs.append(limit)
    return Resolution(
        window,
        tuple(_judged(one, base, proofs[-1] if proofs else None) for one in said),
        tuple(advice(link, facts, window, limit if lowered else None)),
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


def _firm(base: Window) -> bool:
    """What a reply that fitted cannot raise: what the server says of the loaded model, what the user chose, and
    what agentx asks for and would get more of only by a cut."""
    return base.confidence == "served" or base.source in ("config", "requested")


def _proven(window: Window, proof: Window) -> Window:
    return replace(
        window, source="learned", detail=proof.detail, confidence=proof.confidence, seen_at=proof.seen_at
    )


def _judged(one: Said, base: Window, proof: Window | None) -> Candidate:
    """What became of *one*; *proof* is what the endpoint proved, when that is the window."""
    window, won = one.window, False
    if one.source == "learned" and proof:
        window, won, reason = proof, True, _proves(base, proof)
    elif window is None or one.barred:
        reason = one.barred
    elif one.source == "learned":
        reason = f"{_limit(window)} only lowers, and {base.source} says {base.size:,}"
        if base.size == window.size:
            reason = f"proves what {base.source} says"
    elif one.source != base.source:
        less = one.source == "config" and base.source == "served"
        reason = f"the server holds only {base.size:,}" if less else f"{base.source} goes first"
    elif proof:
        reason = f"the endpoint {_showed(proof)} {proof.size:,}"
    else:
        won, reason = True, "nobody says" if one.source == "assumed" else "the first that says a number"
    return Candidate(source=one.source, window=window, won=won, reason=reason)


def _proves(base: Window, proof: Window) -> str:
    if proof.size == base.size:
        return f"proves what {base.source} says"
    if proof.size > base.size:
        return f"a reply that fitted raises a belief, and {base.source} says {base.size:,}"
    return f"{_limit(proof)} always lowers, and {base.source} says {base.size:,}"


def _limit(window: Window) -> str:
    return "a proven limit" if window.confidence == "proven" else "a guessed limit"


def _showed(proof: Window) -> str:
    return "proved" if proof.confidence == "proven" else "seems to hold"


def _refused(facts: Facts, window: Window) -> Iterator[str]:
    if facts.heard:
        yield from facts.heard.reading.refused
    if window.trained and window.trained > window.size:
        yield f"the trained length, {window.trained:,}, is a ceiling and no window"
