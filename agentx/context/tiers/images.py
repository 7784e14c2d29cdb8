"""Tier 2: images are replaced by a line of text, but for those of the newest message that has some."""

from __future__ import annotations

from dataclasses import replace

from agentx.context.tiers.work import Step, Work


async def images(work: Work) -> Step:
    draft = work.draft
    shown = [*work.transcript.said, *work.transcript.between(draft.upto)]
    with_images = sorted({item.seq for item in shown if item.message.images})
    old = [seq for seq in with_images[:-1] if seq not in draft.imageless and seq not in draft.marked]
    if not old:
        return Step(None, "there are no old images")
    return Step(replace(draft, imageless=tuple(sorted({*draft.imageless, *old}))), f"{len(old)} messages")
