"""What a job is made of, put together in one place from the configuration and the surroundings."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agentx.agent.calls import Calls
from agentx.agent.limits import Limits
from agentx.agent.loop import Agent
from agentx.agent.spend import Purse
from agentx.agent.turn import Turns
from agentx.chain.health import Health
from agentx.chain.ledger import Price
from agentx.chain.vigil import LOOK_SECONDS
from agentx.chain.walk import PATIENCE_SECONDS, Chain
from agentx.config.links import Link
from agentx.config.load import Config
from agentx.config.paths import Paths
from agentx.context.engine import Context
from agentx.context.own import policy_of
from agentx.context.restore import restore, restored_seq
from agentx.events import Warned
from agentx.jobs.meter import Meter
from agentx.jobs.store import Job, Order
from agentx.jobs.waiting import longest_wait, planned_wake, time_left, watchful_sleep
from agentx.jobs.watch import Watch, config_files
from agentx.jobs.workspace import INSTRUCTIONS, changed_since, instructions_of, read_text
from agentx.journal import Entry, Journal
from agentx.tools.cleaning import Redactor
from agentx.tools.find import find_ripgrep
from agentx.tools.tool import Limits as ToolLimits
from agentx.tools.toolbox import Toolbox
from agentx.windows.registry import WindowRegistry, open_registry
from agentx.wires.gather import Hear
from agentx.wires.make import Wires, client
from agentx.wires.messages import Usage
from agentx.wires.timing import general

Listener = Callable[[Entry], None]
NO_FILTER = "AGENTX_NO_FILTER"
"""The variable that switches the filter for the output of commands off, whatever is set."""
LONG_KEY = 20
"""Characters; a shorter key without a digit is a placeholder."""
SECRET_HEADER = re.compile(r"auth|key|token|cookie|secret|password", re.IGNORECASE)
"""Names of headers whose values are hidden; others (a version, a title) are words of the story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run is given from outside."""

    paths: Paths
    environ: Mapping[str, str]
    config: Config
    links: tuple[Link, ...]
    listener: Listener | None = None
    hear: Hear | None = None
    """For a person who watches: the text of a turn while it comes, which may yet be dropped."""
    now: Callable[[], float] = time.time
    """The clock that rests and waits are counted by, in epoch seconds."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    look_seconds: float = LOOK_SECONDS
    """A wait looks up this often."""
    read_config: Callable[[], Config] | None = None
    """Loads the configuration anew, for a job that waits."""
    works: bool = True
    """The job goes on with its work; False where it is only compacted and what it has left running goes on."""
    watched: bool = True
    """Somebody sees how it goes, and had better hear soon that no server is there."""

    @property
    def caps(self) -> dict[str, float | None]:
        """US dollars of each link that is only used within a cap, None where it is `limits.cost`."""
        return {link.name: link.max_cost for link in self.links if link.on_consent}


def limits_of(config: Config) -> Limits:
    limits = config.settings.limits
    return Limits(cost=limits.cost, hours=limits.hours, turns=limits.turns, tokens=limits.tokens)


async def assemble(job: Job, journal: Journal, around: Surroundings, stack: AsyncExitStack) -> Agent:
    """The agent for *job*; what must be closed is given to *stack*. Asks the servers once for their windows."""
    order = Order.from_json(journal.meta("order") or "{}")
    workspace, settings = Path(order.workspace), around.config.settings
    http = await stack.enter_async_context(client())
    wires = Wires(http, around.environ, around.hear)
    stack.push_async_callback(wires.close)
    watch = _watch(journal, around, order)
    turns: Turns
    toolbox = _toolbox(job, journal, around, watch, workspace, page=lambda: turns.result_limit())
    stack.push_async_callback(toolbox.close)
    if around.works and journal.last("job.resumed") and (left := await toolbox.end_left_over()):
        journal.append(Warned(message=f"ended what the run before had left running: {', '.join(left)}"))
    cheap = cheap_link(around.config)
    registry = open_registry(client=http, paths=around.paths, environ=around.environ, now=around.now)
    await registry.refresh((*around.links, *([cheap] if cheap else [])))
    _tell_unpriced(journal, around, registry)
    meter = Meter(journal)
    limits = limits_of(around.config)
    purse = Purse(journal, price=registry.price, limit=limits.cost, tell=journal.append)
    for link in around.links:
        purse.refusal(link)  # what may not be asked is said before anything is
    context = Context(
        journal,
        policy=policy_of(settings.compaction),
        now=around.now,
        read_file=lambda path: read_text(workspace, path),
        background=toolbox.background,
        output=job.output,
        goal=order.until,
        cheap=None if cheap is None else lambda: turns.aside.cheap(cheap),
    )
    stack.push_async_callback(context.close)
    turns = Turns(
        journal=journal,
        chain=_chain(job, journal, around, watch, meter, wires, stack, lambda: turns),
        context=context,
        registry=registry,
        toolbox=toolbox,
        wires=wires.of,
        price=price_of(registry),
        purse=purse,
        timers=general(around.config.settings.timers),
        summaries=settings.compaction.summaries,
        workspace=str(workspace),
        instructions=_instructions(journal, workspace),
        only_tools=settings.tools.only,
        now=around.now,
        sleep=around.sleep,
    )
    turns.start_check()
    return Agent(
        journal=journal,
        turns=turns,
        calls=Calls(journal, toolbox, job.output, lambda since: changed_since(workspace, since)),
        toolbox=toolbox,
        limits=limits,
        totals=lambda: meter.read(time.time()),
        until=order.until,
    )


def _tell_unpriced(journal: Journal, around: Surroundings, registry: WindowRegistry) -> None:
    """A limit of cost cannot hold where no price is known: that is said before, not in the morning."""
    if limits_of(around.config).cost is None:
        return
    for link in around.links:
        if not link.free and registry.price(link) is None:
            text = f"{link.name}: its price is not known: the limit of cost does not see what it uses"
            journal.append(Warned(message=text, hint="limit `--max-turns` or `--max-hours` too"))


def _instructions(journal: Journal, workspace: Path) -> str:
    found = instructions_of(workspace)
    if found.trouble:
        journal.append(Warned(message=f"{INSTRUCTIONS} {found.trouble}"))
    return found.text


def _toolbox(
    job: Job, journal: Journal, around: Surroundings, watch: Watch, workspace: Path, *, page: Callable[[], int]
) -> Toolbox:
    """*page* gives the tokens that one answer may have: what is brought back is not clipped again."""
    return Toolbox(
        workspace,
        job.output,
        environ=around.environ,
        secrets=lambda: key_values(_latest(around, watch)),
        restore=lambda id_, offset: restore(journal, id_, offset, limit_tokens=page()),
        restored_seq=lambda id_: restored_seq(journal, id_),
        tell=journal.append,
        rg=find_ripgrep(around.environ, sys.executable),
        limits=ToolLimits(
            timeout=around.config.settings.shell.timeout_seconds,
            filter_noise=around.config.settings.shell.filter and around.environ.get(NO_FILTER) != "1",
        ),
    )


def _chain(
    job: Job,
    journal: Journal,
    around: Surroundings,
    watch: Watch,
    meter: Meter,
    wires: Wires,
    stack: AsyncExitStack,
    turns: Callable[[], Turns],
) -> Chain:
    """The chain, with the health that all jobs share.

    A job that has had an answer before, or that nobody watches, waits out a dead network; else it is soon said
    that nobody is there.
    """
    health = Health(around.paths.health, environ=around.environ, now=around.now, tell=journal.append)
    stack.callback(health.close)
    longest = longest_wait(around.config)
    return Chain(
        around.links,
        wires=wires.of,
        health=health,
        tell=journal.append,
        now=around.now,
        sleep=watchful_sleep(journal, limits_of(around.config), around.sleep),
        random=random.random,
        timers=general(around.config.settings.timers),
        max_wait_seconds=longest,
        patience_seconds=PATIENCE_SECONDS if around.watched and not journal.last("reply") else longest,
        look_seconds=around.look_seconds,
        look=watch.look,
        planned_wake=planned_wake(journal),
        time_left=time_left(limits_of(around.config), meter),
        probe=lambda link, timers: turns().aside.knock(link, timers),
        learn=lambda link, limit, evidence: turns().told.learned(link, limit, evidence),
        guess=lambda link, limit, evidence: turns().told.learned(link, limit, evidence, guessed=True),
        price=lambda link, usage: turns().price(link, usage),
        barred=lambda link: turns().purse.refusal(link),
        log=lambda text: write_log(job, text, Redactor(key_values(_latest(around, watch))).redacted),
    )


def _watch(journal: Journal, around: Surroundings, order: Order) -> Watch:
    """What the job notices of changed files while it waits. Keys of new links are hidden from then on."""
    watch = Watch(
        around.config,
        around.links,
        read=around.read_config or (lambda: around.config),
        chain=order.chain,
        files=lambda: config_files(around.paths, Path(order.workspace)),
        tell=journal.append,
        changed=lambda: journal.hide(Redactor(key_values(_latest(around, watch))).redacted),
    )
    return watch


def _latest(around: Surroundings, watch: Watch) -> Surroundings:
    return replace(around, config=watch.config, links=watch.links)


def write_log(job: Job, text: str, hide: Callable[[str], str]) -> None:
    """Add *text* to the log of *job*, without keys; a log that cannot be written stops nothing."""
    with contextlib.suppress(OSError), job.log.open("a", encoding="utf-8", errors="replace") as log:
        log.write(hide(text))


def key_values(around: Surroundings) -> list[str]:
    """The values that must never be shown: the keys of all providers, whether the chain has them or not, and what
    people write into headers.

    Read again each time, since keys may change. What stands for a key where none is needed (`ollama`,
    `sk-no-key-required`) is no secret, and hiding it would hide the names of providers.
    """
    config = around.config
    providers = (*config.cards.values(), *config.settings.providers.values())
    links = (*around.links, *(link for chain in config.settings.chains.values() for link in chain))
    names = {one.api_key_env for one in (*providers, *links)} | {link.key_variable for link in around.links}
    values = {around.environ.get(name, "").strip() for name in names if name}
    for provider in providers:
        for name, value in provider.headers.items():
            if SECRET_HEADER.search(name):
                values |= {value, *re.split(r"[\s=;,]+", value)}
    return sorted(value for value in values if len(value) >= LONG_KEY or any(map(str.isdigit, value)))


def cheap_link(config: Config) -> Link | None:
    """The model that is asked for summaries after the active one, where one is set."""
    compaction = config.settings.compaction
    return config.link(compaction.summary_model) if compaction.summary_model and compaction.summaries else None


def price_of(registry: WindowRegistry) -> Price:
    """US dollars of one reply. One's own server costs nothing; an unknown price is None, never 0."""

    def price(link: Link, usage: Usage | None) -> float | None:
        if link.free:
            return 0.0
        found = None if usage is None else registry.price(link)
        if usage is None or found is None:
            return None
        fresh = usage.input - usage.cache_read - usage.cache_write
        cached = usage.cache_read * found.cache_read + usage.cache_write * found.cache_write
        return round(fresh * found.input + cached + usage.output * found.output, 6)

    return price
