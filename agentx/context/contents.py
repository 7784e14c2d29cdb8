"""What fills a view, part by part: for the meter that people read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from agentx.context.checkpoint import Checkpoint
from agentx.context.choose import candidates
from agentx.context.items import Item, Kind
from agentx.context.measure import PER_MESSAGE, message_tokens, text_tokens
from agentx.context.state import State
from agentx.context.view import as_shown, block

Part = Literal["system", "tools", "task", "memory", "summaries", "results", "recent"]
PARTS: tuple[Part, ...] = get_args(Part)

PART_OF: dict[Kind, Part] = {
    "task": "task",
    "user": "task",
    "tool": "results",
    "assistant": "recent",
    "nudge": "recent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All sizes are tokens. `fills` adds up to `used`.

    `counted`: a provider counted this view, and only what came since is estimated. `messages` are shown in it, and
    `left_out` stay in the journal only.
    """

    used: int
    counted: bool
    fills: Mapping[Part, int]
    messages: int
    left_out: int


def contents(state: State, link: str, *, generation: int, system: int, tools: int) -> Contents:
    """What a view of *generation* holds on *link* (its identity). *system* and *tools* are plain estimates."""
    fixed = system + tools
    chosen = next(one for one in candidates(state, link, fixed) if one.generation == generation)
    items = _shown(state, chosen.checkpoint)
    plain = dict.fromkeys(PARTS, 0)
    plain["system"], plain["tools"] = system, tools
    for item in items:
        plain[PART_OF[item.kind]] += message_tokens(item.message)
    if chosen.checkpoint is not None and chosen.checkpoint.upto:
        plain["memory"] = text_tokens(chosen.checkpoint.memory)
        whole = PER_MESSAGE + text_tokens(block(chosen.checkpoint))
        plain["summaries"] = max(0, whole - plain["memory"])
    number = len(state.transcript.between(0))
    return Contents(
        used=chosen.measured,
        counted=chosen.counted,
        fills=shares(plain, chosen.measured),
        messages=len(items),
        left_out=number - len(items),
    )


def shares(parts: Mapping[Part, int], total: int) -> dict[Part, int]:
    """*total* divided as *parts* are, in whole numbers that add up to it. All zero when the parts are."""
    whole = sum(parts.values())
    if not whole:
        return dict.fromkeys(parts, 0)
    divided: dict[Part, int] = {part: size * total // whole for part, size in parts.items()}
    rest = total - sum(divided.values())
    for part in sorted(parts, key=lambda part: -(parts[part] * total % whole))[:rest]:
        divided[part] += 1
    return divided


def _shown(state: State, checkpoint: Checkpoint | None) -> list[Item]:
    transcript = state.transcript
    if checkpoint is None:
        return transcript.between(0)
    kept = [item for seq in checkpoint.kept if seq <= checkpoint.upto and (item := transcript.item(seq))]
    return [as_shown(item, checkpoint) for item in (*kept, *transcript.between(checkpoint.upto))]
