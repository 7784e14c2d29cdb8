"""What is known of one link: what its server said and when, what its endpoint proved; to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from agentx.windows.probes.reading import Reading
from agentx.windows.record import believable


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A reading, the name of the probe that made it, and when (epoch seconds)."""

    reading: Reading
    probe: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A limit that the endpoint proved or, as a guess, made probable, in tokens. `served` is what it served then:
    a new value means a reload."""

    limit: int
    evidence: str
    at: float
    served: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How many tokens the endpoint was seen to hold, in a reply that was whole."""

    tokens: int
    evidence: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    heard: Heard | None = None
    learned: Learned | None = None
    guess: Learned | None = None
    held: Held | None = None

    @property
    def newest(self) -> float:
        """When anything was last heard or proved (epoch seconds)."""
        return max((one.at for one in (self.heard, self.learned, self.guess, self.held) if one), default=0.0)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {}
        if self.heard:
            reading = {f.name: getattr(self.heard.reading, f.name) for f in fields(Reading)}
            data["heard"] = {"probe": self.heard.probe, "at": self.heard.at, "reading": reading}
        if self.learned:
            data["learned"] = {f.name: getattr(self.learned, f.name) for f in fields(Learned)}
        if self.guess:
            data["guess"] = {f.name: getattr(self.guess, f.name) for f in fields(Learned)}
        if self.held:
            data["held"] = {f.name: getattr(self.held, f.name) for f in fields(Held)}
        return data


def lowered(known: Known, new: Learned, *, guessed: bool, lasts: float) -> Known:
    """*known* after a limit was proved, or guessed. A lower proof stays that is younger than *lasts* seconds."""
    if guessed:
        return replace(known, guess=new)
    old = known.learned
    held = known.held and replace(known.held, tokens=min(known.held.tokens, new.limit))
    keeps = old is not None and old.limit < new.limit and new.at - old.at < lasts
    return replace(known, learned=old if keeps else new, held=held)


def raised(known: Known, held: Held) -> Known:
    """*known* after more was held: what is below that was wrong."""
    learned, guess = (None if one and one.limit < held.tokens else one for one in (known.learned, known.guess))
    return replace(known, learned=learned, guess=guess, held=held)


def heard_anew(known: Known, heard: Heard, *, self_hosted: bool) -> Known:
    """*known* after the server spoke again: what was proved of another load of the model is gone."""
    reading, held = heard.reading, known.held
    learned, guess = (
        None if one and one.served and reading.served and one.served != reading.served else one
        for one in (known.learned, known.guess)
    )
    limits = [limit for limit in (reading.served, reading.prompt) if limit]
    if held and reading.kind == "served" and reading.found and min(limits) < held.tokens:
        held = None  # it holds less now
    # That a local model is not loaded now is no reason to forget what it had when it was.
    had = self_hosted and known.heard is not None and known.heard.reading.found
    said = known.heard if had and not reading.found else heard
    return Known(heard=said, learned=learned, guess=guess, held=held)


def known_from(data: Any) -> Known:
    """What *data* of a file holds; whatever does not look like it is left out, since anybody may edit files."""
    return Known(
        heard=_heard(_table(data, "heard")),
        learned=_learned(_table(data, "learned")),
        guess=_learned(_table(data, "guess")),
        held=_held(_table(data, "held")),
    )


def _table(data: Any, name: str) -> Mapping[str, Any]:
    value = cast("Mapping[str, Any]", data).get(name) if isinstance(data, dict) else None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _time(data: Mapping[str, Any]) -> float | None:
    at = data.get("at")
    return float(at) if isinstance(at, int | float) and 0 < at < 1e11 else None


def _heard(data: Mapping[str, Any]) -> Heard | None:
    reading, at = _table(data, "reading"), _time(data)
    kind, detail = reading.get("kind"), reading.get("detail")
    if at is None or kind not in ("served", "listed") or not isinstance(detail, str):
        return None
    found = Reading(
        kind=kind,
        detail=detail,
        served=believable(reading.get("served")),
        trained=believable(reading.get("trained")),
        prompt=believable(reading.get("prompt")),
        output=believable(reading.get("output")),
        default=believable(reading.get("default")),
        shared=reading.get("shared") is not False,
    )
    return Heard(reading=found, probe=str(data.get("probe")), at=at)


def _learned(data: Mapping[str, Any]) -> Learned | None:
    limit, evidence, at = believable(data.get("limit")), data.get("evidence"), _time(data)
    if limit is None or at is None or not isinstance(evidence, str):
        return None
    return Learned(limit=limit, evidence=evidence, at=at, served=believable(data.get("served")))


def _held(data: Mapping[str, Any]) -> Held | None:
    tokens, evidence, at = believable(data.get("tokens")), data.get("evidence"), _time(data)
    if tokens is None or at is None or not isinstance(evidence, str):
        return None
    return Held(tokens=tokens, evidence=evidence, at=at)
