"""Measures the window of one link by asking it: a handful of growing requests within a budget of tokens."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from agentx.config.links import Link
from agentx.errors import RequestFailed
from agentx.windows.measure import REPLY, Sample, estimate_for, judged, next_size
from agentx.windows.overflow import read_overflow
from agentx.windows.planted import Planted, note_words, planted
from agentx.windows.verdict import Verdict, verdict
from agentx.wires.messages import Request, Timers, Wire

MOST_REQUESTS = 12


@dataclass(frozen=True, slots=True)
class Measured:
    """`failure` is why it ended early, where that was no answer about sizes. `tokens` is what was used at most."""

    samples: tuple[Sample, ...]
    verdict: Verdict
    tokens: int
    failure: str | None = None


async def measure(
    link: Link,
    wire: Wire,
    *,
    believed: int,
    num_ctx: int | None,
    budget: int,
    timers: Timers,
    dice: random.Random,
    tell: Callable[[int, int], None],
) -> Measured:
    """What the server of *link* holds. *tell* is given the number and the tokens of each request before it goes.

    All requests together, with their replies, have at most *budget* tokens. Never raises for a server's sake.
    """
    samples: list[Sample] = []
    failure: str | None = None
    words = note_words(budget)
    while failure is None and len(samples) < MOST_REQUESTS:
        size = next_size(samples, believed, budget)
        if size is None:
            break
        made = planted(estimate_for(size, samples), words, dice)
        tell(len(samples) + 1, size)
        request = Request(
            model=link.model,
            messages=made.messages,
            max_tokens=REPLY,
            temperature=link.temperature,
            num_ctx=num_ctx,
            purpose="probe",
            estimate=made.estimate,
        )
        outcome = await _ask(wire, request, made, timers)
        if isinstance(outcome, Sample):
            samples.append(outcome)
        else:
            failure = outcome
    used = sum(one.tokens for one in judged(samples))
    return Measured(tuple(samples), verdict(samples, believed), used, failure)


async def _ask(wire: Wire, request: Request, made: Planted, timers: Timers) -> Sample | str:
    counted = await wire.count(request)
    sample = Sample(estimate=made.estimate, counted=counted, granule=made.granule)
    try:
        reply = await wire.ask(request, timers)
    except RequestFailed as error:
        return _failed(sample, error)
    usage, text = reply.usage, reply.message.text
    cut = reply.finish in ("length", "window")
    return Sample(
        estimate=sample.estimate,
        counted=counted,
        granule=sample.granule,
        read=usage.input if usage else None,
        output=usage.output if usage else 0,
        first=True if made.first in text else None if cut else False,
        last=True if made.last in text else None if cut else False,
        said_truncated=reply.said_truncated,
    )


def _failed(sample: Sample, error: RequestFailed) -> Sample | str:
    """A refusal for its size is an answer, and so is a reply that only thought; anything else ends it."""
    overflow = read_overflow(error.status, error.body) if error.phase != "reply" else None
    if overflow is not None:
        return Sample(estimate=sample.estimate, counted=sample.counted, granule=sample.granule, refusal=overflow)
    if error.prompt_tokens is not None:
        return Sample(
            estimate=sample.estimate, counted=sample.counted, granule=sample.granule, read=error.prompt_tokens
        )
    return error.message
