"""Tier 1: old tool results become short markers; `restore_tool_result` brings any of them back."""

from __future__ import annotations

from dataclasses import replace

from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.context.tiers.work import Step, Work
from agentx.context.view import marker


async def markers(work: Work) -> Step:
    """All at once and only when it frees enough, to spare the provider's cache. The newest results stay."""
    draft = work.draft
    results = [item for item in work.transcript.between(draft.upto) if item.kind == "tool"]
    old = results[: -work.policy.newest_results] if work.policy.newest_results else results
    clearable = [item for item in old if item.seq not in draft.marked and saving(item) > 0]
    freed = sum(map(saving, clearable))
    if not clearable or freed < work.policy.worth_clearing * work.room.ceiling:
        return Step(None, f"would free only {freed:,} tokens")
    marked = tuple(sorted({*draft.marked, *(item.seq for item in clearable)}))
    return Step(replace(draft, marked=marked), f"{len(clearable)} results")


def saving(item: Item) -> int:
    """The tokens that a marker saves; a marker that is as long as the result is not worth it."""
    return text_tokens(item.message.text) - text_tokens(marker(item))
