"""Tier 4, the last resort: the middle becomes a digest made by code. Needs nothing, and always fits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentx.context.checkpoint import Checkpoint
from agentx.context.clip import SMALLEST_CLIP, clip
from agentx.context.digest import digest
from agentx.context.index import result_index
from agentx.context.items import Item
from agentx.context.measure import text_tokens, water_level
from agentx.context.tiers.work import Step, Work
from agentx.context.view import SAID_LATER, block
from agentx.errors import ContextOverflow

FRAME = text_tokens(block(Checkpoint(summary="x"))) + 16
"""What surrounds a summary in the view."""
SMALLEST_ROOM = 160
"""Below so many tokens for everything that was said there is nothing left to work with."""
LARGER = "give the job a larger window, fewer tools or a shorter AGENTS.md"
SQUEEZES = (1.0, 0.85, 0.7, 0.5, 0.3)
SAID = text_tokens(SAID_LATER) + 8
WORDS = 0.65
"""What the user's words may take of what there is; more where the newest exchange does not need the rest."""
TASK = 0.4
"""Of that: what the task may take before it is shortened, however much was said later."""
NEWEST = 0.75
"""Of what is left: what the newest exchange, which no model has read yet, may take before it is shortened."""
HEADING = "What happened since then, told by code and shortened:"
MOST_TOLD = 10_000
"""Tokens of summary and digest together."""


async def prune(work: Work) -> Step:
    """A draft that is under the low-water mark, or at least one that can be sent.

    Raises ContextOverflow when system prompt and tools alone leave no room.
    """
    room = work.room
    for goal in sorted({min(room.target, room.usable), room.usable}):
        left = goal - room.fixed
        for squeeze in SQUEEZES:
            draft = pruned(work, int(left * squeeze)) if left * squeeze >= SMALLEST_ROOM else None
            if draft is not None and work.size(draft) <= goal:
                return Step(draft)
    raise ContextOverflow(
        f"system prompt and tools take {room.fixed:,} of {room.usable:,} tokens: no room is left for the task",
        hint=LARGER,
        limit=room.usable,
        actual=room.fixed + SMALLEST_ROOM,
    )


def pruned(work: Work, room: int) -> Checkpoint:
    """A draft whose view has about *room* tokens without system prompt and tools."""
    draft = work.draft
    newer = work.transcript.between(draft.upto)
    newest = sum(_size(item, draft) for item in newer if item.seq > work.transcript.read)
    kept, trims = _words(work, max(int(room * WORDS), room - FRAME - newest - SMALLEST_CLIP))
    rest = room - SAID - sum(min(item.tokens, trims.get(item.seq, item.tokens)) + 4 for item in kept)
    record = (draft.summary, draft.digest, draft.index, draft.memory)
    wanted = FRAME + sum(map(text_tokens, record)) if draft.upto else 0
    seqs = {item.seq for item in kept}
    whole = sum(_size(item, draft) for item in newer if item.seq not in seqs)
    if whole + wanted <= rest:
        return replace(draft, kept=tuple(sorted(seqs)), trimmed=trims or None)
    rest -= FRAME
    unread = newest if newest <= rest * NEWEST else 0
    cut, tail_trims, tail_size = _tail(work, newer, max(0, rest // 2, unread))
    rest = max(0, rest - tail_size)
    memory = clip(draft.memory, rest // 4).text if rest // 4 >= SMALLEST_CLIP else ""
    index = result_index(work.transcript.between(0, cut), min(work.room.index, rest // 6))
    told = _told(work, cut, rest - text_tokens(memory) - text_tokens(index), seqs)
    return replace(
        draft,
        upto=cut,
        kept=tuple(sorted(seqs)),
        marked=tuple(seq for seq in draft.marked if seq > cut),
        trimmed={**tail_trims, **trims} or None,
        memory=memory,
        index=index,
        summary=told.summary,
        digest=told.digest,
    )


def _words(work: Work, budget: int) -> tuple[list[Item], dict[int, int]]:
    """The user's words that stay, and which of them are shown with head and tail only. The task always stays; of
    the others the newest do."""
    task, later = work.transcript.said[:1], work.transcript.said[1:]
    sizes = [item.tokens for item in later]
    most = max(SMALLEST_CLIP, budget - sum(sizes), int(budget * TASK))
    left = budget - sum(min(item.tokens, most) for item in task)
    while later and water_level(sizes, left) < min(SMALLEST_CLIP, max(sizes)):
        del later[0], sizes[0]
    cap = max(SMALLEST_CLIP, water_level(sizes, left))
    caps = [(item, most) for item in task] + [(item, cap) for item in later]
    return [*task, *later], {item.seq: cap for item, cap in caps if item.tokens > cap}


def _tail(work: Work, newer: list[Item], budget: int) -> tuple[int, dict[int, int], int]:
    """Where to cut, which messages behind the cut are trimmed, and what they have: at most *budget* tokens.

    The newest exchange stays, trimmed, if there is room for it at all.
    """
    cut = work.transcript.tail(work.draft.upto, budget)
    tail = [item for item in newer if item.seq > cut]
    sizes = [_size(item, work.draft) for item in tail]
    if sum(sizes) <= budget:
        return cut, {}, sum(sizes)
    cap = water_level(sizes, budget)
    if cap >= SMALLEST_CLIP * 2:
        trims = {item.seq: cap for item, size in zip(tail, sizes, strict=True) if size > cap}
        return cut, trims, sum(min(size, cap) for size in sizes)
    if newer:
        cut = max(cut, min(newer[-1].seq, work.transcript.settled))
    waiting = {item.seq: SMALLEST_CLIP for item in newer if item.seq > cut}  # a reply with calls still to run
    return cut, waiting, SMALLEST_CLIP * len(waiting)


@dataclass(frozen=True, slots=True)
class Told:
    """What a model told, as far as there is room for it, and what code tells of all that came after that."""

    summary: str
    digest: str


def _told(work: Work, cut: int, budget: int, without: set[int]) -> Told:
    """The record of what is left out, at most *budget* tokens. The digest is made from the journal each time:
    nothing is lost by making it often."""
    summary = work.draft.summary
    items = work.transcript.between(work.draft.told, cut)
    budget = min(budget, max(min(work.room.summary * 2, MOST_TOLD), SMALLEST_ROOM))
    if summary:
        most = budget * 3 // 5 if items else budget
        summary = clip(summary, most).text if most >= SMALLEST_CLIP else ""
    lines = digest(items, budget - text_tokens(summary) - text_tokens(HEADING) - 4, without=without)
    return Told(summary, f"{HEADING}\n{lines}" if lines else "")


def _size(item: Item, draft: Checkpoint) -> int:
    """About what *item* takes in a view of *draft*."""
    if item.seq in draft.marked:
        return 40
    if draft.trimmed and item.seq in draft.trimmed:
        return min(item.tokens, draft.trimmed[item.seq])
    return item.tokens
