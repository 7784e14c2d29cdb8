"""`agentx windows MODEL --probe`: says what it may use, measures, and lets the registry learn what was proven."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

from agentx.cli.output import tell
from agentx.cli.session import Session
from agentx.windows.cures import in_config
from agentx.windows.measure import REPLY
from agentx.windows.measuring import MOST_REQUESTS, Measured, measure

if TYPE_CHECKING:
    import httpx

    from agentx.config.links import Link
    from agentx.windows.registry import WindowRegistry
    from agentx.wires.local import LocalWire


async def measured_by(
    session: Session, registry: WindowRegistry, client: httpx.AsyncClient, link: Link, budget: int
) -> dict[str, Any]:
    """What was measured of *link*, as `windows --json` has it. The registry has learned it."""
    from agentx.wires.make import wire_for
    from agentx.wires.timing import general, timers_for

    num_ctx = registry.num_ctx(link) if link.provider.wire == "ollama" else None
    if reason := _would_reload(registry, link, num_ctx):
        return {"failed": True, "said": [f"not measured: {reason}"], "tokens": 0, "requests": 0}
    _announce(registry, link, budget, num_ctx)
    timers = timers_for(link, general(session.config().settings.timers))
    wire = wire_for(link, client, session.environ)
    try:
        found = await measure(
            link,
            wire,
            believed=registry.window(link).size,
            num_ctx=num_ctx,
            budget=budget,
            timers=timers,
            dice=random.Random(),
            tell=lambda number, size: tell(f"probe: request {number} of about {size:,} tokens"),
        )
    finally:
        if link.provider.card == "local":
            await cast("LocalWire", wire).close()  # the server that was started for it
    learned = await _learn(registry, link, found)
    said = list(found.verdict.said())
    if found.failure:
        said.append(f"ended early: {found.failure}")
    if learned:
        said.append(f"learned: {found.verdict.holds:,} tokens, kept for a day or until the server is loaded anew")
    elif more := _more(registry, link, found):
        said.append(more)
    said.append(f"used at most {found.tokens:,} of {budget:,} tokens in {len(found.samples)} requests")
    return {
        "failed": found.failure is not None and not found.verdict.holds,
        "said": said,
        **found.verdict.to_json(),
        "learned": learned,
        "failure": found.failure,
        "tokens": found.tokens,
        "budget": budget,
        "requests": len(found.samples),
        "num_ctx": num_ctx,
    }


async def _learn(registry: WindowRegistry, link: Link, found: Measured) -> bool:
    """Whether the window became smaller. What was read whole takes back a limit that was believed below it."""
    if whole := found.verdict.at_least:
        registry.succeeded(link, whole, whole)
    if found.samples:
        await registry.refresh([link])  # local servers load a model with the first request
    holds = found.verdict.holds
    return holds is not None and registry.learn(link, holds, f"measured: {found.verdict.evidence}") is not None


def _more(registry: WindowRegistry, link: Link, found: Measured) -> str | None:
    """How to make use of a window that is larger than what is believed."""
    proven = found.verdict.holds or found.verdict.at_least
    window = registry.window(link)
    if proven <= window.size or found.verdict.behaviour == "undecided":
        return None
    forced = "" if window.source == "assumed" else " with `force: true` beside it"
    believed = f"that is more than the {window.size:,} that are believed ({window.source})"
    return f"{believed}: {in_config(link, proven)}{forced}"


def _would_reload(registry: WindowRegistry, link: Link, num_ctx: int | None) -> str | None:
    served = next((one.window for one in registry.explain(link).candidates if one.source == "served"), None)
    if num_ctx is None or served is None or served.size == num_ctx:
        return None
    return (
        f"the model is loaded with {served.size:,} tokens and a job would ask for {num_ctx:,}: that loads it anew"
        f" under its other users; `ollama stop {link.model}` first"
    )


def _announce(registry: WindowRegistry, link: Link, budget: int, num_ctx: int | None) -> None:
    price = registry.price(link)
    if link.provider.self_hosted:
        cost = "on a server of your own"
    elif price is None:
        cost = "its price is not known"
    else:
        most = budget * price.input + MOST_REQUESTS * REPLY * max(0.0, price.output - price.input)
        cost = f"at most ${most:.4f}" if most < 1 else f"at most ${most:.2f}"
    tell(f"probe: {link.name}: at most {budget:,} tokens in all, {cost}; `--probe-budget` sets it")
    if num_ctx is not None:
        tell(f"probe: asked with num_ctx {num_ctx:,}, as a job asks: another value would load the model anew")
