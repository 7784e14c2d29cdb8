"""Which of the things that are known of a link is its window: pure, in the order of DESIGN.md section 5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentx.config.links import Link
from agentx.windows.known import Heard, Held, Learned
from agentx.windows.record import Confidence, Source, Window, believable

HOSTED_AGE_SECONDS = 24 * 3600.0
LEARNED_AGE_SECONDS = 24 * 3600.0
ASSUMED = 32_768
ASSUMED_WHERE_CUT = 4_096
"""Where the server may truncate in silence, too high a belief loses the task, too low a one costs a summary."""
LARGEST_UNASKED_NUM_CTX = 32_768
"""What agentx asks of an Ollama where nothing else is known: the server's own middle default; the trained length
(often 131,072 and more) would not fit the memory of most machines, the lowest default (4,096) no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of one link. `heard` is what the server said to this process, `cached` what it once said.

    `num_ctx` is what agentx itself asks of the server, in tokens; `granted` is what the server was seen to hold
    right after such a request. `now` is in epoch seconds.
    """

    now: float
    heard: Heard | None = None
    cached: Heard | None = None
    learned: Learned | None = None
    held: Held | None = None
    table: Window | None = None
    catalogue: Window | None = None
    num_ctx: int | None = None
    granted: int | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """`warnings` are for the user; `rejected` has a line for each thing that was known and not believed."""

    window: Window
    warnings: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()


def resolve(link: Link, facts: Facts) -> Window:
    """The window of *link*: the first that answers, never above a proven limit."""
    return decide(link, facts).window


def decide(link: Link, facts: Facts) -> Resolution:
    """The window, and why it is not another one."""
    candidates = [*_candidates(link, facts), _assumed(link, facts.now)]
    base = candidates[0]
    warnings: list[str] = []
    served = next((one for one in candidates if one.source == "served"), None)
    if link.window and served and served.size < base.size and not link.force:
        warnings.append(
            f"`window: {base.size}` is more than the server holds now ({served.size:,}; {served.detail}):"
            f" {served.size:,} is used"
        )
        base = served
    window = _filled(base, candidates, facts)
    if (held := _held(facts, base)) and held.tokens > window.size:
        window = replace(
            window.at_least(held.tokens),
            source="learned",
            detail=held.evidence,
            confidence="proven",
            seen_at=held.at,
        )
    limit = _proven(link, facts)
    if limit and limit.limit < window.size:
        if base.source == "config":
            warnings.append(
                f"`window: {base.size}` is more than the endpoint proved ({limit.limit:,}) and is not used"
            )
        window = replace(
            window.at_most(limit.limit),
            source="learned",
            detail=limit.evidence,
            confidence="proven",
            seen_at=limit.at,
        )
    warnings += _hints(link, facts, window)
    return Resolution(window, tuple(warnings), tuple(_rejected(facts, window, candidates)))


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


def _candidates(link: Link, facts: Facts) -> Iterator[Window]:
    """What is known, the most important first; learned limits and assumptions aside."""
    heard, now = facts.heard, facts.now
    asks = link.provider.wire == "ollama"
    if link.window:
        yield _configured(link, facts, asks)
    if asks:
        yield from _asked_for(link, facts)
    elif heard and heard.reading.kind == "served":
        if heard.reading.found:
            yield _of_reading(heard, "served", "served")
        elif heard.reading.default:
            yield _of_reading(heard, "served", "listed", served=heard.reading.default)
    if (embedded := _embedded(link)) and not link.window:
        detail = "what the embedded server is started with"
        yield Window(served=embedded, source="requested", detail=detail, confidence="listed", seen_at=now)
    if heard and heard.reading.kind == "listed" and heard.reading.found:
        yield _of_reading(heard, "listed", "listed")
    cached = facts.cached
    if cached and cached.reading.found and (link.provider.self_hosted or now - cached.at < HOSTED_AGE_SECONDS):
        yield _of_reading(cached, "cache", "listed")
    for known in (facts.table, facts.catalogue):
        if known and known.size:
            yield known


def _asked_for(link: Link, facts: Facts) -> Iterator[Window]:
    """Where agentx says how much to hold, another client's load does not bind: the next request replaces it."""
    asked, granted, heard = facts.num_ctx, facts.granted, facts.heard
    if not asked or not heard:
        return
    if granted and granted < asked:
        yield _of_reading(heard, "served", "served", served=granted)
    elif heard.reading.served == asked:
        yield _of_reading(heard, "served", "served")
    if not link.window:
        detail = f"num_ctx that agentx asks for; {heard.reading.detail}"
        yield Window(served=asked, source="requested", detail=detail, confidence="listed", seen_at=heard.at)


def _configured(link: Link, facts: Facts, asks: bool) -> Window:
    value = facts.num_ctx if asks and facts.num_ctx else link.window
    if _embedded(link):
        detail = "`window` of the link: what the embedded server is started with"
        return Window(served=value, source="requested", detail=detail, confidence="listed", seen_at=facts.now)
    return Window(
        served=value, source="config", detail="`window` of the link", confidence="listed", seen_at=facts.now
    )


def _embedded(link: Link) -> int | None:
    """The window that the embedded server is started with; None where there is no embedded server."""
    if link.provider.card != "local":
        return None
    return link.window or believable(link.provider.options.get("window"))


def _of_reading(heard: Heard, source: Source, confidence: Confidence, *, served: int | None = None) -> Window:
    reading = heard.reading
    return Window(
        served=served or reading.served,
        trained=reading.trained,
        prompt=reading.prompt,
        output=reading.output,
        shared=reading.shared,
        source=source,
        detail=reading.detail,
        confidence=confidence,
        seen_at=heard.at,
    )


def _assumed(link: Link, now: float) -> Window:
    size = ASSUMED_WHERE_CUT if link.provider.may_truncate else ASSUMED
    return Window(served=size, source="assumed", detail="nobody says", confidence="assumed", seen_at=now)


def _filled(base: Window, candidates: list[Window], facts: Facts) -> Window:
    """*base* with the trained length and the output limit that others know of the same model."""
    readings = [heard.reading for heard in (facts.heard, facts.cached) if heard]
    others = [one for one in (*readings, *candidates, facts.table) if one is not None]
    trained = base.trained or next((one.trained for one in others if one.trained), None)
    output = base.output or next((one.output for one in others if one.output), None)
    shared = base.shared
    if base.source in ("config", "assumed") and len(candidates) > 2:
        shared = candidates[1].shared
    return replace(base, trained=trained, output=output, shared=shared)


def _proven(link: Link, facts: Facts) -> Learned | None:
    learned = facts.learned
    if learned is None or facts.now - learned.at >= LEARNED_AGE_SECONDS or (link.force and link.window):
        return None
    return learned


def _held(facts: Facts, base: Window) -> Held | None:
    """What the endpoint was seen to hold, where *base* is a belief: not what the server says of the loaded model,
    not what the user chose, and not what agentx asks for and would get more of only by a cut."""
    held = facts.held
    if held is None or facts.now - held.at >= LEARNED_AGE_SECONDS:
        return None
    firm = base.confidence == "served" or base.source in ("config", "requested")
    return None if firm else held


def _hints(link: Link, facts: Facts, window: Window) -> Iterator[str]:
    reading = facts.heard.reading if facts.heard else None
    asks = link.provider.wire == "ollama"
    if asks and link.window and window.trained and link.window > window.trained:
        yield f"`window: {link.window}` is more than the model was trained for: {window.trained:,} is asked for"
    served, trained = (reading.served or 0, reading.trained or 0) if reading else (0, 0)
    if asks and not link.window and 0 < served < min(trained, ASSUMED):
        yield (
            f"the model is loaded with {served:,} of {trained:,} tokens;"
            f" set `window: {min(trained, ASSUMED)}` on the link to ask for more"
        )
    if window.source == "assumed":
        yield f"nobody says how much it holds; {window.size:,} tokens are assumed; set `window` on the link"


def _rejected(facts: Facts, window: Window, candidates: list[Window]) -> Iterator[str]:
    if facts.heard:
        yield from facts.heard.reading.refused
    for other in candidates[:-1]:
        if other.size > window.size and other.source != window.source:
            yield f"{other.source} says {other.size:,} ({other.detail}): {window.source} goes first"
    if window.trained and window.trained > window.size:
        yield f"the trained length, {window.trained:,}, is a ceiling and no window"
