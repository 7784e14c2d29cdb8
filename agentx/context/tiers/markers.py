"""Tier 1: old tool results become short markers; `restore_tool_result` brings any of them back."""

from __future__ import annotations

from dataclasses import replace

from agentx.context.checkpoint import Checkpoint
from agentx.context.items import Item
from agentx.context.measure import text_tokens
from agentx.context.tiers.work import Step, Work
from agentx.context.view import marker

SMALLEST_SAVING = 50
"""Tokens: a marker that saves less is not worth the result."""


async def markers(work: Work) -> Step:
    """All at once and only when it frees enough, to spare the provider's cache. The newest results stay, and so
    does what no model has read yet, and what was brought back since the last compaction: it would only be asked
    for again."""
    draft, read = work.draft, work.transcript.read
    results = [item for item in work.transcript.between(draft.upto) if item.kind == "tool"]
    old = results[: -work.policy.newest_results] if work.policy.newest_results else results
    old = [item for item in old if item.seq <= read]
    fresh = {item.seq for item in old if item.restored and item.seq > draft.at}
    savings = {
        item.seq: saved
        for item in old
        if item.seq not in fresh and item.seq not in draft.marked and (saved := saving(item, draft))
    }
    freed = sum(savings.values())
    if not savings or freed < work.policy.worth_clearing * work.room.ceiling:
        return Step(None, f"would free only {freed:,} tokens")
    marked = tuple(sorted({*draft.marked, *savings}))
    return Step(replace(draft, marked=marked), f"{len(savings)} results")


def saving(item: Item, draft: Checkpoint) -> int:
    """The tokens that a marker saves of what *draft* shows; 0 where it is not worth it. A marker is never longer
    than the result that it stands for."""
    text, short = item.message.text, marker(item)
    shown = min(text_tokens(text), (draft.trimmed or {}).get(item.seq, item.tokens))
    saved = shown - text_tokens(short)
    return saved if saved >= SMALLEST_SAVING and len(short) < len(text) else 0
