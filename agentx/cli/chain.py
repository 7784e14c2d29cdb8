"""`agentx chain`: the links in order, whether their keys are set, what they hold, and who rests until when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agentx.cli.output import answer, answer_json, local_time, table
from agentx.cli.session import Session
from agentx.config.links import Link
from agentx.errors import NoUsableModel, RequestFailed, UsageError

if TYPE_CHECKING:
    from agentx.windows.catalogue import Price

CHECK_SECONDS = 10.0


@click.command()
@click.argument("name", required=False)
@click.option("--check", is_flag=True, help="Ask every provider for its models; spends no tokens.")
@click.option("--reset", metavar="LINK", help="Forget that LINK rests: it is asked again at once.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def chain(session: Session, name: str | None, *, check: bool, reset: str | None, as_json: bool) -> int:
    """Show the links of the chain NAME (the default one without it), in order of preference.

    With --check it exits with 4 when no link can be used.

    NAME may also be a list of models: `agentx chain ollama/qwen3:14b,openai/gpt-5`.
    """
    from agentx.cli.foreground import links_of
    from agentx.jobs.store import Order

    order = Order(task="", workspace=str(session.cwd), chain=name)
    links = links_of(session, session.config(), order)
    if reset is not None:
        _reset(session, links, reset)
    rows = asyncio.run(_rows(session, links, check=check))
    if as_json:
        answer_json({"links": rows})
    else:
        answer(_shown(rows, check=check))
    usable = [row for row in rows if row["state"] != "no key" and not (check and row["check"]["ok"] is False)]
    return NoUsableModel.exit_code if check and not usable else 0


async def _rows(session: Session, links: Sequence[Link], *, check: bool) -> list[dict[str, Any]]:
    from agentx.agent.spend import standing
    from agentx.chain.health import Health
    from agentx.context.budget import SMALLEST_WINDOW
    from agentx.events import utc
    from agentx.windows.registry import open_registry
    from agentx.wires.make import client

    limit = session.config().settings.limits.cost
    file = session.paths().health
    health = Health(file if file.exists() else None, environ=session.environ)
    rows: list[dict[str, Any]] = []
    async with client() as http:
        registry = open_registry(client=http, paths=session.paths(), environ=session.environ)
        if check:
            await registry.refresh(links)
        checks = await asyncio.gather(*(_check(session, link, http) for link in links)) if check else []
        for number, link in enumerate(links, 1):
            variable = link.key_variable
            key_set = bool(variable and session.environ.get(variable, "").strip())
            needs_key = bool(variable) and not link.provider.key_optional
            rest, window = health.resting(link), registry.window(link)
            state = "no key" if needs_key and not key_set else "ready"
            if rest is not None and state == "ready":
                state = "out" if rest.out else "resting"
            if state == "ready" and window.size < SMALLEST_WINDOW:
                state = "too small"
            row: dict[str, Any] = {
                "position": number,
                "link": link.name,
                "provider": link.provider.name,
                "model": link.model,
                "key": variable,
                "key_set": key_set,
                "key_needed": needs_key,
                "window": window.size,
                "window_source": window.source,
                "state": state,
                "until": None if rest is None else utc(rest.until),
                "class": None if rest is None else rest.error_class,
                "message": None if rest is None else rest.message,
                "failures": health.failures(link),
                "paid": link.on_consent,
                "max_cost": link.max_cost,
                "price": _price(registry.price(link)),
                "not_asked": standing(link, registry.price(link), limit),
            }
            rows.append(row | ({"check": checks[number - 1]} if check else {}))
    health.close()
    return rows


async def _check(session: Session, link: Link, http: Any) -> dict[str, Any]:
    """Whether the provider answers, in how many milliseconds, and whether it lists the model."""
    from agentx.chain.classify import classify
    from agentx.chain.listing import list_models

    variable = link.key_variable
    provider = replace(link.provider, api_key_env=variable)
    nothing: dict[str, Any] = {"ok": False, "ms": None, "listed": None, "class": None, "message": None}
    try:
        found = await list_models(
            provider,
            http,
            lambda: session.environ.get(variable) if variable else None,
            timeout_seconds=CHECK_SECONDS,
        )
    except RequestFailed as error:
        failure = classify(error, provider, time.time())
        return nothing | {"class": failure.error_class, "message": failure.message}
    if found is None:
        return nothing | {"ok": None, "message": "has no list of models that could be asked for"}
    listed = found.has(link.model) if found.models else None
    return nothing | {"ok": True, "ms": round(found.seconds * 1000), "listed": listed}


def _reset(session: Session, links: Sequence[Link], name: str) -> None:
    from agentx.chain.health import Health

    chosen = [link for link in links if link.name == name]
    if not chosen:
        known = ", ".join(f"`{link.name}`" for link in links)
        hint = f"its links are {known}; `agentx chain NAME --reset LINK` takes another chain"
        raise UsageError(f"there is no link `{name}` in this chain", hint=hint)
    health = Health(session.paths().health, environ=session.environ)
    for link in chosen:
        health.forget(link)
    health.close()


def _shown(rows: Sequence[dict[str, Any]], *, check: bool) -> str:
    spends = any(row["paid"] for row in rows)
    headers = ["", "link", "key", "window", "from", "state", *(["may cost"] if spends else [])]
    headers += ["check"] if check else []
    cells: list[list[object]] = []
    for row in rows:
        key = "not needed" if row["key"] is None else f"{row['key']} ({_key_state(row)})"
        line: list[object] = [
            row["position"],
            row["link"],
            key,
            f"{row['window']:,}",
            row["window_source"],
            _state(row),
            *([_may_cost(row)] if spends else []),
        ]
        cells.append([*line, _checked(row["check"])] if check else line)
    return table(headers, cells)


def _key_state(row: dict[str, Any]) -> str:
    if row["key_set"]:
        return "set"
    return "not set" if row["key_needed"] else "not needed"


def _state(row: dict[str, Any]) -> str:
    if row["state"] in ("ready", "no key", "too small"):
        return str(row["state"])
    return f"{row['state']} until {local_time(row['until'])}: {row['class']}: {row['message']}"


def _price(price: Price | None) -> dict[str, float] | None:
    """Dollars for a million tokens."""
    return price and {"input": round(price.input * 1e6, 4), "output": round(price.output * 1e6, 4)}


def _may_cost(row: dict[str, Any]) -> str:
    if not row["paid"]:
        return ""
    if row["not_asked"]:
        return f"not asked: {row['not_asked']}"
    return "the limit of cost" if row["max_cost"] is None else f"${row['max_cost']:g} a job"


def _checked(check: dict[str, Any]) -> str:
    if not check["ok"]:
        said = f"{check['class']}: {check['message']}" if check["class"] else check["message"]
        return str(said)
    missing = ", but does not list this model" if check["listed"] is False else ""
    return f"answers in {check['ms']} ms{missing}"
