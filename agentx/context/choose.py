"""Which checkpoint a view is made with: the least lossy one that fits the budget. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentx.context.checkpoint import Checkpoint
from agentx.context.state import State

TOO_SMALL = 2
"""A checkpoint made for less than half of a budget shows too little to fall to it; the budget gets its own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible view. `plain` is its estimate, `measured` the best belief of it; `counted` says that the link's
    provider counted the view."""

    generation: int
    checkpoint: Checkpoint | None
    plain: int
    measured: int
    counted: bool

    @property
    def factor(self) -> float:
        """What the plain estimate of this view is wrong by."""
        return self.measured / max(1, self.plain)


def candidates(state: State, link: str, fixed: int) -> list[Candidate]:
    """All views that there are, with their sizes on *link* (its identity); the whole one first."""
    found: list[Candidate] = []
    everything: list[tuple[int, Checkpoint | None]] = [(0, None), *state.checkpoints.items()]
    for generation, checkpoint in everything:
        at, tokens = (checkpoint.at, checkpoint.tokens) if checkpoint else (0, 0)
        plain = fixed + tokens + state.transcript.tokens_after(at)
        factor = state.calibration(link).factor
        sample = state.samples.get((link, generation))
        measured = round(plain * factor)
        if sample is not None:
            since = state.transcript.tokens_after(sample.reply)
            measured = sample.now(fixed=fixed, since=since, factor=factor)
        found.append(Candidate(generation, checkpoint, plain, measured, sample is not None))
    return found


def least_lossy(found: Iterable[Candidate], ceiling: int) -> Candidate | None:
    """The one that shows the most within *ceiling* tokens; of equals the newest."""
    fitting = [candidate for candidate in found if candidate.measured <= ceiling]
    return max(fitting, key=lambda candidate: (candidate.plain, candidate.generation), default=None)


def wanted(found: Iterable[Candidate], *, threshold: int, asked: int) -> list[Candidate]:
    """Those that a link with *threshold* may be shown after somebody asked for a compaction.

    *asked* is the generation of the newest such checkpoint, 0 for none: what is older shows what was to be left
    out. A link with a larger threshold than it was made for may show that again.
    """
    found = list(found)
    checkpoint = next((one.checkpoint for one in found if one.generation == asked), None)
    if checkpoint is None or checkpoint.threshold < threshold:
        return found
    return [candidate for candidate in found if candidate.generation >= asked]


def eligible(found: Iterable[Candidate], *, threshold: int, used: int) -> list[Candidate]:
    """Those to which a view of a link with *threshold* may change without a new compaction.

    *used* is the generation of the view that the last reply came from. Everything that shows as much may be used
    (so moving to a larger model never compacts), and of the smaller ones those that were made for about this
    budget: a model that outgrows its threshold must not fall to the little that a small one was shown.
    """
    found = list(found)
    shown = next((candidate.plain for candidate in found if candidate.generation == used), 0)
    return [
        candidate
        for candidate in found
        if candidate.checkpoint is None or candidate.plain >= shown or _made_for(candidate, threshold)
    ]


def _made_for(candidate: Candidate, threshold: int) -> bool:
    return candidate.checkpoint is not None and candidate.checkpoint.threshold * TOO_SMALL >= threshold


def steady(allowed: Iterable[Candidate], *, shown: int | None, threshold: int, ceiling: int) -> Candidate | None:
    """The view that the link was *shown* last (its generation), while it fits and was made for about this budget.

    Its provider has it in its cache: another one, even a less lossy one, would be read anew from the beginning.
    """
    for candidate in allowed:
        if candidate.generation == shown and candidate.measured <= ceiling:
            return candidate if candidate.checkpoint is None or _made_for(candidate, threshold) else None
    return None


def base_for(found: Iterable[Candidate], *, used: int, in_one_go: int) -> Candidate:
    """Where a new compaction starts: from what was in use, when a model can read that in one go, else from the
    smallest."""
    found = list(found)
    for candidate in found:
        if candidate.generation == used and candidate.measured <= in_one_go:
            return candidate
    return min(found, key=lambda candidate: (candidate.measured, -candidate.generation))
