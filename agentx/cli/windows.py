"""`agentx windows`: how many tokens each model holds, how we know, and what follows from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from agentx.cli.output import answer, answer_json, tell
from agentx.cli.session import Session
from agentx.cli.windows_shown import explained, overview, warned
from agentx.context.budget import FLOOR, SMALLEST_REPLY
from agentx.context.own import policy_of
from agentx.context.policies import Policy
from agentx.errors import UsageError, WindowTooSmall

if TYPE_CHECKING:
    from agentx.config.links import Link
    from agentx.config.load import Config
    from agentx.windows.registry import WindowRegistry

PROBE_BUDGET = 40_000
ASK_SECONDS, ASK_AT_LEAST = 1.5, 1.0
ALL_SECONDS = 2.0
"""For all servers together; less where the start of the program took long: dead ones cost less than 2.5 s."""


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--chain", "chain", metavar="NAME", help="The links of this chain, or models with commas between.")
@click.option("--refresh", is_flag=True, help="Ask hosted providers again, however fresh their last answer is.")
@click.option("-v", "--verbose", is_flag=True, help="Explain every link in full, as for one MODEL.")
@click.option("--probe", is_flag=True, help="Measure each MODEL with a few growing requests; this uses tokens.")
@click.option(
    "--probe-budget",
    "budget",
    metavar="TOKENS",
    type=click.IntRange(min=1_500),
    default=PROBE_BUDGET,
    show_default=True,
    help="The most tokens that --probe sends to one MODEL, all requests together.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def windows(
    session: Session,
    *,
    models: tuple[str, ...],
    chain: str | None,
    refresh: bool,
    verbose: bool,
    probe: bool,
    budget: int,
    as_json: bool,
) -> int:
    """Show each model's window: its value, where it was read, how old that is, and when compaction starts.

    MODEL is provider/model or the name of a link; without one, the links of the chain are shown. One MODEL is
    explained in full: every place where its window may come from, and why it won or lost. Servers are asked for
    at most two seconds; no model is loaded and nothing is spent, but with --probe.
    """
    if probe and not models:
        raise UsageError("say which model to measure", hint="`agentx windows MODEL --probe`; it uses tokens")
    began = time.monotonic()
    rows = asyncio.run(_rows(session, models, chain, refresh, budget if probe else None, began))
    if as_json:
        answer_json({"links": rows})
    else:
        full = verbose or len(models) == 1
        answer("\n\n".join(map(explained, rows)) if full else overview(rows))
        for row in rows:
            for line in warned(row):
                tell(line)
    return 1 if any("measured" in row and row["measured"]["failed"] for row in rows) else 0


async def _rows(
    session: Session, models: Sequence[str], chain: str | None, refresh: bool, budget: int | None, began: float
) -> list[dict[str, Any]]:
    config = session.config()
    links = await _links(session, config, models, chain)
    return await rows_of(session, links, refresh=refresh, probe_budget=budget, config=config, began=began)


async def rows_of(
    session: Session,
    links: Iterable[Link],
    *,
    refresh: bool,
    probe_budget: int | None = None,
    config: Config | None = None,
    began: float | None = None,
) -> list[dict[str, Any]]:
    """One object for each of *links*, as `windows --json` has them. Sends prompts only with *probe_budget*.
    *began* is when the program did, by the monotonic clock.

    Raises ConfigError.
    """
    from agentx.windows.registry import open_registry
    from agentx.wires.make import client

    links = tuple(links)
    policy = policy_of((config or session.config()).settings.compaction)
    async with client() as http:
        registry = open_registry(client=http, paths=session.paths(), environ=session.environ)
        left = ASK_SECONDS if began is None else ALL_SECONDS - (time.monotonic() - began)
        await registry.refresh(links, min(ASK_SECONDS, max(ASK_AT_LEAST, left)), force=refresh)
        measured: dict[str, dict[str, Any]] = {}
        if probe_budget is not None:
            from agentx.cli.windows_probe import measured_by

            measured = {
                link.identity: await measured_by(session, registry, http, link, probe_budget) for link in links
            }
        now = time.time()
        rows = [_row(registry, link, now, policy) for link in links]
        for link, row in zip(links, rows, strict=True):
            if link.identity in measured:
                row["measured"] = measured[link.identity]
        return rows


async def _links(session: Session, config: Config, models: Sequence[str], chain: str | None) -> Sequence[Link]:
    """Raises UsageError, ConfigError, NoUsableModel."""
    configured = config.chain(chain) if chain or not models else ()
    if models:
        named = {link.name: link for link in configured or (config.chain() if _has_chain(config) else ())}
        return [named.get(model) or config.link(model) for model in models]
    if configured:
        return configured
    from agentx.chain.automatic import automatic_links
    from agentx.wires.local import installed
    from agentx.wires.make import client

    async with client() as http:
        return await automatic_links(config, http, session.environ, lambda: installed(session.environ))


def _has_chain(config: Config) -> bool:
    """A chain can be found without being named: several chains without a default are no fault of this command."""
    return len(config.settings.chains) == 1 or config.settings.default_chain is not None


def _row(registry: WindowRegistry, link: Link, now: float, policy: Policy) -> dict[str, Any]:
    from agentx.windows.cures import Advice, raised

    found = registry.explain(link)
    window, advice = found.window, list(found.advice)
    threshold = reserve = None
    try:
        budget = policy.budget(window.size, link.max_tokens, output_cap=window.output)
        threshold, reserve = budget.threshold, budget.reserve
    except WindowTooSmall:
        how = raised(link, registry.recognised(link)) or "take another model"
        advice.append(Advice(f"too small to work with: {FLOOR + SMALLEST_REPLY:,} tokens are needed", how))
    candidates = [
        {
            "source": one.source,
            "window": one.window.size if one.window else None,
            "won": one.won,
            "reason": one.reason,
            "detail": one.window.detail if one.window else None,
            "age_seconds": max(0, round(now - one.window.seen_at)) if one.window else None,
        }
        for one in found.candidates
    ]
    troubles = registry.troubles(link)
    return {
        "link": link.name,
        "provider": link.provider.name,
        "model": link.model,
        "window": window.size,
        "trained": window.trained,
        "output": window.output,
        "source": window.source,
        "detail": window.detail,
        "age_seconds": max(0, round(now - window.seen_at)),
        "confidence": window.confidence,
        "threshold": threshold,
        "reserve": reserve,
        "warnings": [*map(str, advice), *troubles],
        "prompt": window.prompt,
        "shared": window.shared,
        "endpoint": link.endpoint,
        "advice": [
            *({"text": one.text, "cure": one.cure} for one in advice),
            *({"text": text, "cure": None} for text in troubles),
        ],
        "candidates": candidates,
        "refused": list(found.refused),
    }
