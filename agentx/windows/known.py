"""What is known of one link: what its server said and when, what its endpoint proved; to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
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
