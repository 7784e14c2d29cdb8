"""`agentx doctor --fault`: a chain of two links against the shipped fault server, one fault after the other.

No configuration, key, model or network is needed: both servers are this process's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import asdict, dataclass

from agentx.chain.library import link_at, open_wires
from agentx.chain.walk import Chain
from agentx.cli.output import answer, answer_json
from agentx.config.links import Link
from agentx.errors import AgentxError
from agentx.events import Event, LinkFailed
from agentx.testing.named import Named, failing
from agentx.testing.server import FaultServer
from agentx.wires.messages import Message, Reply, Request, Timers, Wire

PATIENT = Timers(connect=5, first=20, idle=20, total=20)
HASTY = Timers(connect=5, first=1, idle=1, total=20)
"""For the first link where its fault never ends by itself: else one waits for minutes, as in earnest."""
MOST_SECONDS = 30.0
BAD, GOOD = "first", "second"
ANSWER = "Hello."


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one request whose first link has the fault `name`. `asked`: how often that link was asked."""

    name: str
    says: str
    survived: bool
    served_by: str | None
    asked: int
    seconds: float
    error: str | None = None


class _Hasty:
    """A wire with timers of its own."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def ask(self, request: Request, timers: Timers) -> Reply:
        return await self.wire.ask(request, HASTY)

    async def count(self, request: Request) -> int | None:
        return await self.wire.count(request)


def show_faults(faults: Mapping[str, Named], *, as_json: bool) -> int:
    """Try every one of *faults* and print what became of it. The exit code: 0 when all were survived."""
    return asyncio.run(_show(faults, as_json=as_json))


async def _show(faults: Mapping[str, Named], *, as_json: bool) -> int:
    began = time.monotonic()
    done: list[Tried] = []
    if not as_json:
        answer(f"{'':<5}  {'FAULT OF THE FIRST LINK':<23}  ASKED  SERVED BY  SECONDS")
    async with open_wires({}) as wires:
        async for tried in _each(faults, wires):
            done.append(tried)
            if not as_json:
                answer(_line(tried))
    seconds = time.monotonic() - began
    survived = sum(tried.survived for tried in done)
    if as_json:
        answer_json({"faults": [asdict(tried) for tried in done], "ok": survived == len(done), "seconds": seconds})
    else:
        answer(f"\nsurvived {survived} of {len(done)} faults in {seconds:.1f} s")
    return 0 if survived == len(done) else 1


async def _each(faults: Mapping[str, Named], wires: Callable[[Link], Wire]) -> AsyncGenerator[Tried]:
    """One after the other, so that the seconds are true; at last, together, those that only end by a timer."""
    for name, named in faults.items():
        if not named.endless:
            yield await _try(name, named, wires)
    endless = [_try(name, named, wires) for name, named in faults.items() if named.endless]
    for tried in await asyncio.gather(*endless):
        yield tried


async def _try(name: str, named: Named, wires: Callable[[Link], Wire]) -> Tried:
    """One request to a chain whose first link has the fault and whose second is well."""
    events: list[Event] = []
    served, said, error = None, "", None
    with failing(named.fault) as bad, FaultServer() as good:
        links = [link_at(bad.v1, "scripted", name=BAD), link_at(good.v1, "scripted", name=GOOD)]

        def wire(link: Link) -> Wire:
            made = wires(link)
            return _Hasty(made) if link.name == BAD and named.endless else made

        chain = Chain(links, wires=wire, timers=PATIENT, tell=events.append, max_wait_seconds=0)
        began = time.monotonic()
        try:
            async with asyncio.timeout(MOST_SECONDS):
                answered = await chain.ask(_prepare)
            served, said = answered.link.name, answered.reply.message.text
        except TimeoutError:
            error = f"no answer within {MOST_SECONDS:g} s"
        except AgentxError as failure:
            error = failure.message
        seconds = time.monotonic() - began
    return Tried(
        name=name,
        says=named.says,
        survived=served is not None and said == ANSWER,
        served_by=served,
        asked=sum(isinstance(event, LinkFailed) and event.link == BAD for event in events),
        seconds=round(seconds, 3),
        error=error or (None if said == ANSWER else f"the answer is `{said}`"),
    )


async def _prepare(link: Link, _reason: str) -> Request:
    return Request(model=link.model, messages=[Message(role="user", text="Say hello.")], max_tokens=200)


def _line(tried: Tried) -> str:
    mark = "ok   " if tried.survived else "LOST "
    line = f"{mark}  {tried.name:<23}  {tried.asked:>5}  {tried.served_by or '-':<9}  {tried.seconds:>7.2f}"
    return f"{line}  {tried.says}" + (f"; {tried.error}" if tried.error else "")
