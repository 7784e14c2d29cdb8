"""One link asked by itself, outside the order of the chain but with what the chain knows, as for summaries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agentx.chain.classify import Failure, classify
from agentx.chain.decide import BROKEN, MOST_TOLD, Attempts, Fate, Step, decide
from agentx.chain.health import Health
from agentx.chain.ledger import Spent, spent
from agentx.config.links import Link
from agentx.errors import AgentxError, RequestFailed
from agentx.wires.messages import Reply, Request, Timers, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """What it is asked with. `failed` hears of every attempt that brought no reply, also of one that was given up
    from outside. `charged`: a link that fails rests as in a chain; not where its turns may go well all the same.
    """

    health: Health
    wires: Callable[[Link], Wire]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]
    failed: Callable[[Link, Failure, Spent], object]
    charged: bool = True

    def check(self, link: Link) -> None:
        """Raises RequestFailed when *link* rests: it is not asked then."""
        rest = self.health.resting(link)
        if rest is not None:
            raise RequestFailed(f"{link.name} {rest.why()}", phase="connect", error_class=rest.error_class)

    async def ask(self, link: Link, request: Request, timers: Timers, *, fresh: bool = False) -> Reply:
        """The reply of *link*, after one quick repeat where it is *fresh* (it did not fail before) and a blip is
        likely, and with the parameters that please it.

        Raises RequestFailed."""
        taught, sent = self.health.taught, self.now()
        request = replace(request, changes=taught.changes(link))
        attempts = _first(request, fresh)
        while True:
            try:
                reply = await self._reply(link, request, timers)
            except RequestFailed as error:
                failure = classify(error, link.provider, self.now())
                step = decide(failure, attempts, self.random())
                self.failed(link, failure, spent(error, self.now() - sent, step.pause))
                changed = _changed(request, step)
                if changed is None:
                    self._charge(link, failure, step.fate)
                    raise
                request, attempts = changed, _after(attempts, changed, step)
                await self.sleep(step.pause)
                sent = self.now()
            else:
                if request.changes:
                    taught.learn(link, request.changes)
                if self.charged:
                    self.health.succeeded(link, sent)
                return reply

    async def _reply(self, link: Link, request: Request, timers: Timers) -> Reply:
        """One attempt. A fault of ours in reading what came is this link's failure."""
        began = self.now()
        try:
            return await self.wires(link).ask(request, timers)
        except AgentxError:
            raise
        except asyncio.CancelledError:
            error = RequestFailed("given up before a whole answer came", phase="reply", timed_out=True)
            self.failed(link, classify(error, link.provider, self.now()), spent(error, self.now() - began))
            raise
        except Exception as error:  # what is beside the turns must not end a job
            what = f"what came could not be read: {type(error).__name__}: {error}"
            raise RequestFailed(what, phase="reply", error_class="invalid_reply") from error

    def _charge(self, link: Link, failure: Failure, fate: Fate) -> None:
        if not self.charged:
            return
        if fate == "out":
            self.health.out(link, failure.error_class, failure.message, failure.reach)
        elif fate == "rest" or failure.error_class in BROKEN:
            self.health.rest(link, failure.retry_at, failure.error_class, failure.message, failure.reach)


def _first(request: Request, fresh: bool) -> Attempts:
    return Attempts(
        sent=request.estimate,
        max_tokens=request.max_tokens,
        fresh=fresh,
        broken=1,
        told=MOST_TOLD,
        changes=request.changes,
    )


def _changed(request: Request, step: Step) -> Request | None:
    """The request of the next attempt; None where *step* leads away from the link, or to another conversation."""
    if step.action == "again":
        return request
    if step.action == "lower":
        return replace(request, max_tokens=step.max_tokens)
    if step.action == "change" and step.changes is not None:
        return replace(request, changes=step.changes)
    return None


def _after(attempts: Attempts, request: Request, step: Step) -> Attempts:
    return replace(
        attempts,
        max_tokens=request.max_tokens,
        changes=request.changes,
        quick=attempts.quick + (step.action == "again"),
        lowered=attempts.lowered + (step.action == "lower"),
    )
