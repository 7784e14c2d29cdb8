"""`agentx windows`: how many tokens each model holds, how we know, and what follows from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from agentx.cli.output import answer, answer_json, table, tell
from agentx.cli.session import Session
from agentx.context.budget import FLOOR, SMALLEST_REPLY, budget_for
from agentx.errors import WindowTooSmall

if TYPE_CHECKING:
    from agentx.config.links import Link
    from agentx.config.load import Config
    from agentx.windows.registry import Registry

HEADERS = ["LINK", "WINDOW", "SOURCE", "CONFIDENCE", "AGE", "THRESHOLD", "RESERVE", "OUTPUT", "READ FROM"]


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--chain", "chain", metavar="NAME", help="The links of this chain, or models with commas between.")
@click.option("--refresh", is_flag=True, help="Ask hosted providers again, however fresh their last answer is.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def windows(session: Session, *, models: tuple[str, ...], chain: str | None, refresh: bool, as_json: bool) -> None:
    """Show each model's window: its value, where it was read, how old that is, and when compaction starts.

    MODEL is provider/model or the name of a link; without one, the links of the chain are shown. Servers are
    asked for at most two seconds; no model is loaded and nothing is spent.
    """
    links, rows = asyncio.run(_chosen(session, models, chain, refresh))
    if as_json:
        answer_json({"links": rows})
        return
    answer(table(HEADERS, [_shown(row) for row in rows]))
    for link, row in zip(links, rows, strict=True):
        for text in row["warnings"]:
            tell(f"warning: {link.name}: {text}")


async def _chosen(
    session: Session, models: Sequence[str], chain: str | None, refresh: bool
) -> tuple[Sequence[Link], list[dict[str, Any]]]:
    config = session.config()
    links = await _links(session, config, models, chain)
    return links, await rows_of(session, links, refresh=refresh)


async def rows_of(session: Session, links: Iterable[Link], *, refresh: bool) -> list[dict[str, Any]]:
    """One object for each of *links*, as `windows --json` has them. Asks servers, sends no prompt.

    Raises ConfigError.
    """
    from agentx.windows.registry import open_registry
    from agentx.wires.make import client

    links = tuple(links)
    numbers = session.config().settings.compaction
    async with client() as http:
        registry = open_registry(session.paths(), session.environ, http)
        await registry.refresh(links, force=refresh)
        now = time.time()
        return [_row(registry, link, now, numbers.fraction, numbers.cap) for link in links]


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


def _row(registry: Registry, link: Link, now: float, fraction: float, cap: int) -> dict[str, Any]:
    window = registry.window(link)
    warnings = list(registry.warnings(link))
    threshold = reserve = None
    try:
        budget = budget_for(window.size, link.max_tokens, output_cap=window.output, fraction=fraction, cap=cap)
        threshold, reserve = budget.threshold, budget.reserve
    except WindowTooSmall:
        warnings.append(f"too small to work with: {FLOOR + SMALLEST_REPLY:,} tokens are needed")
        if link.window_hint:
            warnings.append(f"to raise it: {link.window_hint}")
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
        "warnings": warnings,
        "prompt": window.prompt,
        "shared": window.shared,
        "rejected": list(registry.rejected(link)),
    }


def _shown(row: dict[str, Any]) -> list[object]:
    def number(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    return [
        row["link"],
        number(row["window"]),
        row["source"],
        row["confidence"],
        _age(row["age_seconds"]),
        number(row["threshold"]) or "too small",
        number(row["reserve"]),
        number(row["output"]),
        row["detail"],
    ]


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
