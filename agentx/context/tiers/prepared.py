"""Tier 0 without a call: a summary that was prepared beside the work is used, if it is ready and still holds."""

from __future__ import annotations

from agentx.context.tiers.summary import with_summary
from agentx.context.tiers.work import Step, Work


async def prepared(work: Work) -> Step:
    """One that is still being written is waited for briefly; without one the next step asks for it as ever."""
    found = None if work.prepared is None else await work.prepared(work.policy.prepared_wait_seconds)
    if found is None:
        return Step(None, "no summary is ready")
    if found.step.draft is None:
        return Step(None, found.step.why, found.step.cause, by=found.step.by)
    if (found.since, found.before) != (work.draft.upto, work.draft.summary):
        return Step(None, "the prepared summary is out of date")
    draft = with_summary(work, found.step.draft.summary, found.step.draft.upto)
    if work.size(draft) > work.room.target:
        return Step(None, "the prepared summary stands for too little")
    return Step(draft, by=found.step.by)
