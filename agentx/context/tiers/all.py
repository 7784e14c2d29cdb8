"""Every tier by the name that policies use, with its number as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentx.context.policies import TierName
from agentx.context.tiers.images import images
from agentx.context.tiers.markers import markers
from agentx.context.tiers.prepared import prepared
from agentx.context.tiers.prune import prune
from agentx.context.tiers.summary import by_active_model, by_cheap_model
from agentx.context.tiers.work import Tier


@dataclass(frozen=True, slots=True)
class Numbered:
    """`asks` says that it asks a model, `last` that it is the last resort, which needs nothing and always fits."""

    number: int
    run: Tier
    asks: bool = False
    last: bool = False


TIERS: Mapping[TierName, Numbered] = {
    "prepared": Numbered(0, prepared),
    "summary": Numbered(0, by_active_model, asks=True),
    "markers": Numbered(1, markers),
    "images": Numbered(2, images),
    "cheap": Numbered(3, by_cheap_model, asks=True),
    "prune": Numbered(4, prune, last=True),
}
