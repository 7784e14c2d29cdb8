"""Tiers 0 and 3: a model tells what happened, while it can still see the tool output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentx.context.checkpoint import Checkpoint
from agentx.context.index import result_index
from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.context.standing import left_out, standing
from agentx.context.summarise import SMALLEST_SUMMARY, Summariser, summarise
from agentx.context.summary_check import Refused, Summary
from agentx.context.tiers.work import Step, Work

ADDED = 0.3
"""Of what a summary may have: so much may always be added by code."""


async def by_active_model(work: Work) -> Step:
    """Tier 0: by the model that the view is for, or by a larger one that knows the conversation; by another where
    that one is down."""
    return await _summary(work, work.active, "there is no model to ask")


async def by_cheap_model(work: Work) -> Step:
    """Tier 3: by the configured cheap or local model, when the first summary did not come about."""
    return await _summary(work, [work.cheap] if work.cheap else [], "no cheap model is configured")


async def _summary(work: Work, models: Sequence[Summariser], missing: str) -> Step:
    if not models:
        return Step(None, missing)
    draft, room = work.draft, work.room
    if room.summary < SMALLEST_SUMMARY:
        return Step(None, "there is no room for a summary")
    cut = work.cut
    if not work.tells:
        return Step(None, "nothing is older than the recent part")
    items = work.transcript.between(draft.upto, cut)
    told, by = await _told(work, models, [item for item in items if item.kind != "task"])
    if isinstance(told, Refused):
        return Step(None, told.why, told.cause, by=by)
    return Step(with_summary(work, told.text, cut), by=by)


def with_summary(work: Work, summary: str, cut: int) -> Checkpoint:
    """The draft of *work* with *summary* for everything up to *cut*, the seq of an item."""
    draft = work.draft
    shown = {item.seq for item in work.transcript.between(cut)}
    gone = work.transcript.between(0, cut)
    return replace(
        draft,
        upto=cut,
        summary=summary,
        digest="",
        told=cut,
        memory=_with_what_stands(work, summary, gone),
        index=result_index(gone, work.room.index),
        kept=work.kept,
        marked=tuple(seq for seq in draft.marked if seq in shown),
        imageless=tuple(seq for seq in draft.imageless if seq in shown or seq in work.kept),
        trimmed=_still_shown(draft.trimmed, shown | set(work.kept)),
    )


def _with_what_stands(work: Work, summary: str, gone: Sequence[Item]) -> str:
    """What comes back into the view, and before it what neither that nor the *summary* tells of what stands after
    the items that are *gone*. The task stays in the view verbatim, whatever a summary says."""
    memory = work.draft.memory
    room = max(work.room.summary - text_tokens(summary), int(work.room.summary * ADDED))
    missing = left_out(f"{summary}\n{memory}", standing(gone, work.plan), room)
    return "\n\n".join(part for part in (missing, memory) if part)


async def _told(work: Work, models: Sequence[Summariser], items: Sequence[Item]) -> tuple[Summary | Refused, str]:
    """What the first of *models* that answers at all says, and which one that is."""
    told: Summary | Refused = Refused("network", "nobody was asked")
    by = ""
    for model in models:
        by = model.name
        told = await summarise(
            model,
            items,
            before=work.draft.record,
            task=work.task.message.text if work.task else "",
            limit_tokens=work.room.summary,
        )
        if not (isinstance(told, Refused) and told.down):
            break
    most = work.policy.summary_bytes
    if isinstance(told, Summary) and most is not None and (size := len(told.text.encode())) > most:
        return Refused("too_long", f"the summary has {size:,} bytes, {most:,} are allowed"), by
    return told, by


def _still_shown(trimmed: Mapping[int, int] | None, shown: set[int]) -> dict[int, int] | None:
    return {seq: limit for seq, limit in (trimmed or {}).items() if seq in shown} or None
