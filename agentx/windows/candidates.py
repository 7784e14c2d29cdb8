"""Every place where a link's window may come from, in the order in which they are believed, and what each says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentx.config.links import Link
from agentx.windows.known import Heard, Held, Learned
from agentx.windows.record import Confidence, Source, Window, believable

HOSTED_AGE_SECONDS = 24 * 3600.0
LEARNED_AGE_SECONDS = 24 * 3600.0
GUESSED_AGE_SECONDS = 3600.0
"""A guess is given up sooner than a proof: then more is tried again."""
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
    right after such a request. `silence` is why the server said nothing lately. `now` is in epoch seconds.
    """

    now: float
    heard: Heard | None = None
    cached: Heard | None = None
    learned: Learned | None = None
    guess: Learned | None = None
    held: Held | None = None
    table: Window | None = None
    catalogue: Window | None = None
    num_ctx: int | None = None
    granted: int | None = None
    silence: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What one source says. `barred` is why it says nothing, or why what it says may not count."""

    source: Source
    window: Window | None = None
    barred: str = ""


def everything(link: Link, facts: Facts) -> Sequence[Said]:
    """What each source says of *link*, the most important first; each stands there once."""
    return [
        _config(link, facts),
        _learned(link, facts),
        _served(link, facts),
        _requested(link, facts),
        _listed(link, facts),
        _cache(link, facts),
        _found("windows.yaml", facts.table, lambda: "has no entry for it"),
        _found("catalogue", facts.catalogue, lambda: _no_catalogue(link)),
        Said("assumed", _assumed(link, facts.now)),
    ]


def embedded_window(link: Link) -> int | None:
    """The window that the embedded server is started with; None where there is no embedded server."""
    if link.provider.card != "local":
        return None
    return link.window or believable(link.provider.options.get("window"))


def held_window(facts: Facts) -> Window | None:
    """What the endpoint was seen to hold in a whole reply, where that is fresh."""
    held = facts.held
    if held is None or facts.now - held.at >= LEARNED_AGE_SECONDS:
        return None
    return Window(served=held.tokens, source="learned", detail=held.evidence, confidence="proven", seen_at=held.at)


def _config(link: Link, facts: Facts) -> Said:
    if not link.window:
        return Said("config", barred="`window` is not set on the link")
    if link.provider.card == "local":
        return Said("config", barred="is what the embedded server is started with: requested")
    value = facts.num_ctx if _asks(link) and facts.num_ctx else link.window
    detail = "`window` of the link" + (f", {link.window_origin}" if link.window_origin else "")
    return Said(
        "config", Window(served=value, source="config", detail=detail, confidence="listed", seen_at=facts.now)
    )


def _learned(link: Link, facts: Facts) -> Said:
    """The lower of what the endpoint proved and what it made probable; what may count goes before what may not."""
    found: list[Said] = []
    if facts.learned is not None:
        found.append(_limit(link, facts, facts.learned, "proven"))
    if facts.guess is not None:
        found.append(_limit(link, facts, facts.guess, "assumed"))
    if not found:
        return Said("learned", barred="the endpoint proved no limit")
    return min(found, key=lambda one: (bool(one.barred), one.window.size if one.window else 0))


def _limit(link: Link, facts: Facts, learned: Learned, confidence: Literal["proven", "assumed"]) -> Said:
    window = Window(
        served=learned.limit, source="learned", detail=learned.evidence, confidence=confidence, seen_at=learned.at
    )
    if confidence == "assumed" and facts.now - learned.at >= GUESSED_AGE_SECONDS:
        return Said("learned", window, "was a guess an hour ago: more is tried again")
    if facts.now - learned.at >= LEARNED_AGE_SECONDS:
        return Said("learned", window, "is a day old: it may have changed")
    if link.force and link.window:
        return Said("learned", window, "`force: true` keeps your window")
    return Said("learned", window)


def _served(link: Link, facts: Facts) -> Said:
    heard = facts.heard
    if heard is None or heard.reading.kind != "served":
        if not link.provider.self_hosted:
            return Said("served", barred="only a server of one's own says what it holds now")
        return Said("served", barred=facts.silence or "no server says what it holds now")
    reading = heard.reading
    if _asks(link):
        return _served_as_asked(facts, heard)
    if reading.found:
        return Said("served", _of(heard, "served", "served"))
    if reading.default:
        return Said("served", _of(heard, "served", "listed", served=reading.default))
    return Said("served", barred="the model is not loaded, and nothing says with how much it will be")


def _served_as_asked(facts: Facts, heard: Heard) -> Said:
    """Where agentx says how much to hold, another client's load does not bind: the next request replaces it."""
    asked, granted, served = facts.num_ctx, facts.granted, heard.reading.served
    if asked and granted and granted < asked:
        return Said("served", _of(heard, "served", "served", served=granted))
    if not served:
        return Said("served", barred="the model is not loaded now")
    window = _of(heard, "served", "served")
    if served == asked:
        return Said("served", window)
    return Said("served", window, f"was loaded for somebody else; agentx asks for {asked or 0:,}")


def _requested(link: Link, facts: Facts) -> Said:
    if size := embedded_window(link):
        detail = "what the embedded server is started with"
        if link.window:
            detail = f"`window` of the link: {detail}"
        return Said("requested", Window(served=size, source="requested", detail=detail, confidence="listed",
                                        seen_at=facts.now))  # fmt: skip
    heard, asked = facts.heard, facts.num_ctx
    if not _asks(link):
        return Said("requested", barred="a request cannot set it at this server")
    if not asked or not heard:
        return Said("requested", barred="the server has to be heard first")
    if link.window:
        return Said("requested", barred=f"agentx asks for your window ({asked:,}): config")
    detail = f"num_ctx that agentx asks for; {heard.reading.detail}"
    return Said(
        "requested",
        Window(served=asked, source="requested", detail=detail, confidence="listed", seen_at=heard.at),
    )


def _listed(link: Link, facts: Facts) -> Said:
    heard = facts.heard
    if heard and heard.reading.kind == "listed":
        if heard.reading.found:
            return Said("listed", _of(heard, "listed", "listed"))
        return Said("listed", barred="the list has no window for it")
    if link.provider.self_hosted:
        return Said("listed", barred="one's own server has no account list")
    return Said("listed", barred=facts.silence or "not asked: what is in the cache is fresh enough")


def _cache(link: Link, facts: Facts) -> Said:
    cached = facts.cached
    if not cached or not cached.reading.found:
        return Said("cache", barred="nothing is kept of it")
    window = _of(cached, "cache", "listed")
    if not link.provider.self_hosted and facts.now - cached.at >= HOSTED_AGE_SECONDS:
        return Said("cache", window, "is a day old")
    return Said("cache", window)


def _found(source: Source, window: Window | None, missing: Callable[[], str]) -> Said:
    return Said(source, window) if window and window.size else Said(source, barred=missing())


def _no_catalogue(link: Link) -> str:
    if link.provider.self_hosted:
        return "not for one's own server: the same name holds less or more there"
    return "has no entry for it"


def _assumed(link: Link, now: float) -> Window:
    size = ASSUMED_WHERE_CUT if link.provider.may_truncate else ASSUMED
    return Window(served=size, source="assumed", detail="nobody says", confidence="assumed", seen_at=now)


def _asks(link: Link) -> bool:
    """agentx itself says how much the server shall hold."""
    return link.provider.wire == "ollama"


def _of(heard: Heard, source: Source, confidence: Confidence, *, served: int | None = None) -> Window:
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
