"""What a measurement proves: how much the server holds, and what it does with more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentx.windows.measure import Judged, Sample, judged, largest_whole

Behaviour = Literal["refuses", "cuts", "halves", "reads", "undecided"]
"""What it does with a prompt that is too long. `reads`: none was too long."""
Part = Literal["oldest", "middle", "newest"]
ROUND = (1024, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All numbers are tokens. `holds` is the window where it is proven; `evidence` says how, in one line.

    `at_least` is the largest prompt that was read whole, `below` the smallest that was not. `lost` is the part
    that is cut away, None where it cannot be told. `shifts`: a reply went on beyond the window.
    """

    behaviour: Behaviour
    evidence: str
    holds: int | None = None
    at_least: int = 0
    below: int | None = None
    lost: Part | None = None
    shifts: bool = False

    def said(self) -> tuple[str, ...]:
        """The verdict in plain words, a sentence a line."""
        return tuple(_sentences(self))

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def verdict(samples: Sequence[Sample], believed: int) -> Verdict:
    """What *samples* prove; *believed* is what was thought before, and breaks ties between numbers as good."""
    made = judged(samples)
    refused = [one for one in made if one.sample.refusal]
    cuts = [one for one in made if one.cut]
    at_least = largest_whole(made)
    if refused:
        return _refused(made, refused, at_least)
    if cuts:
        return _cut(made, cuts, at_least, believed)
    if not any(one.sample.read for one in made):
        said = "the server does not report how much it reads" if made else "nothing was answered"
        return Verdict(behaviour="undecided", evidence=said)
    if doubtful := [one for one in made if not one.whole]:
        one = doubtful[-1]
        read = f"{one.sample.read or 0:,} of about {one.expected:,} tokens"
        said = f"it reported {read}, which may be the way it counts"
        return Verdict(behaviour="undecided", evidence=said, at_least=at_least)
    return Verdict(behaviour="reads", evidence=f"read {at_least:,} tokens whole", at_least=at_least)


def _refused(made: Sequence[Judged], refused: Sequence[Judged], at_least: int) -> Verdict:
    below = min(one.expected for one in refused)
    limits = [one.sample.refusal.limit for one in refused if one.sample.refusal and one.sample.refusal.limit]
    if any(one.sample.refusal and one.sample.refusal.cause == "bytes" for one in refused):
        said = f"a request of about {below:,} tokens was refused for its bytes, which are no window"
        return Verdict(behaviour="undecided", evidence=said, at_least=at_least)
    if not limits:
        said = f"refused a prompt of about {below:,} tokens and named no limit"
        return Verdict(behaviour="refuses", evidence=said, at_least=at_least, below=below)
    limit = min(limits)
    if limit < at_least:
        said = f"refused with a limit of {limit:,}, but read {at_least:,} tokens before"
        return Verdict(behaviour="undecided", evidence=said, at_least=at_least, below=below)
    shifts = any(one.whole and (one.sample.read or 0) + one.sample.output > limit for one in made)
    said = f"refused a prompt of about {below:,} tokens: the limit is {limit:,}"
    return Verdict(behaviour="refuses", evidence=said, holds=limit, at_least=at_least, below=below, shifts=shifts)


def _cut(made: Sequence[Judged], cuts: Sequence[Judged], at_least: int, believed: int) -> Verdict:
    read = max(one.sample.read or 0 for one in cuts)
    below = min(one.expected for one in cuts)
    sent = max(one.expected for one in cuts)
    lost = _lost(made, cuts)
    evidence = f"read {read:,} of about {sent:,} tokens and answered 200"
    if at_least > read or (2 * read <= below and len(cuts) < 2):
        half = _halved(read)
        if at_least > read or half:  # it reads less of a long prompt than of a shorter one
            holds = half if half and at_least <= half <= below else None
            return Verdict(
                behaviour="halves", evidence=evidence, holds=holds, at_least=at_least, below=below, lost=lost
            )
    granule = max(one.sample.granule for one in cuts)
    holds = _likely(read, min(read + granule, below), believed)
    return Verdict(behaviour="cuts", evidence=evidence, holds=holds, at_least=at_least, below=below, lost=lost)


def _likely(read: int, most: int, believed: int) -> int:
    """The window in between: whole messages are dropped, so that a little less than the window is read."""
    if read <= believed <= most:
        return believed
    for step in ROUND:
        if (round_number := most // step * step) >= read:
            return round_number
    return read


def _halved(read: int) -> int | None:
    """The window of which *read* is one half and the 2 or 3 tokens (half of Ollama's `num_keep`) beside it."""
    return next((2 * (read - kept) for kept in (2, 3) if 2 * (read - kept) % ROUND[-1] == 0), None)


def _lost(made: Sequence[Judged], cuts: Sequence[Judged]) -> Part | None:
    """Told by the planted words, and only where the model repeated both when it had read everything."""
    if not any(one.sample.first and one.sample.last for one in made if one.whole):
        return None
    first = all(one.sample.first for one in cuts)
    last = all(one.sample.last for one in cuts)
    if first and last:
        return "middle"
    if first == last:
        return None
    return "newest" if first else "oldest"


def _sentences(one: Verdict) -> list[str]:
    match one.behaviour:
        case "reads":
            return [
                f"it holds at least {one.at_least:,} tokens: {one.evidence}; the budget ended there,"
                " so what it does with more is not known"
            ]
        case "refuses":
            held = (
                f"it holds {one.holds:,} tokens"
                if one.holds
                else f"it holds between {one.at_least:,} and {one.below or 0:,} tokens"
            )
            lines = [f"{held} and refuses more: {one.evidence}"]
            return [*lines, "a reply goes on beyond the window (it shifts)"] if one.shifts else lines
        case "cuts" | "halves":
            how = "cuts what is longer" if one.behaviour == "cuts" else "cuts what is longer to half of that"
            held = f"{one.holds:,}" if one.holds else f"between {one.at_least:,} and {one.below or 0:,}"
            parts = {
                "oldest": "it drops the oldest: the first planted word was lost, the last one came back",
                "newest": "it drops the newest: the last planted word was lost, the first one came back",
                "middle": "it drops the middle: both planted words came back",
            }
            unknown = "which part it drops cannot be told: the model did not repeat the planted words reliably"
            return [
                f"it holds {held} tokens and {how} in silence: {one.evidence}",
                parts.get(one.lost or "", unknown),
            ]
        case "undecided":
            least = f"; it holds at least {one.at_least:,} tokens" if one.at_least else ""
            return [f"undecided: {one.evidence}{least}"]
