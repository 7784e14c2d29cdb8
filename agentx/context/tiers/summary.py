"""Tiers 0 and 3: a model tells what happened, while it can still see the tool output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentx.context.index import result_index
from agentx.context.summarise import Summariser, summarise
from agentx.context.summary_check import Refused
from agentx.context.tiers.work import Step, Work

SMALLEST_SUMMARY = 64
"""Tokens in which something can be told."""


async def by_active_model(work: Work) -> Step:
    """Tier 0: by the model that the view is for."""
    return await _summary(work, work.active, "there is no model to ask")


async def by_cheap_model(work: Work) -> Step:
    """Tier 3: by the configured cheap or local model, when the first summary did not come about."""
    return await _summary(work, work.cheap, "no cheap model is configured")


async def _summary(work: Work, model: Summariser | None, missing: str) -> Step:
    if model is None:
        return Step(None, missing)
    draft, room = work.draft, work.room
    if room.summary < SMALLEST_SUMMARY:
        return Step(None, "there is no room for a summary")
    cut = work.cut
    items = work.transcript.between(draft.upto, cut)
    if not any(item.kind in ("assistant", "tool") for item in items):
        return Step(None, "nothing is older than the recent part")
    told = await summarise(
        model,
        [item for item in items if item.kind != "task"],
        before=draft.summary,
        task=work.task.message.text if work.task else "",
        limit_tokens=room.summary,
    )
    if isinstance(told, Refused):
        return Step(None, told.why, told.cause)
    shown = {item.seq for item in work.transcript.between(cut)}
    return Step(
        replace(
            draft,
            upto=cut,
            summary=told.text,
            index=result_index(work.transcript.between(0, cut), room.index),
            kept=work.kept,
            marked=tuple(seq for seq in draft.marked if seq in shown),
            imageless=tuple(seq for seq in draft.imageless if seq in shown or seq in work.kept),
            trimmed=_still_shown(draft.trimmed, shown | set(work.kept)),
        )
    )


def _still_shown(trimmed: Mapping[int, int] | None, shown: set[int]) -> dict[int, int] | None:
    return {seq: limit for seq, limit in (trimmed or {}).items() if seq in shown} or None
