"""One link asked by itself, outside the order of the chain but with its health, as for summaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agentx.chain.classify import Failure, classify
from agentx.chain.decide import BROKEN, MOST_TOLD, Attempts, Fate, decide
from agentx.chain.health import Health
from agentx.config.links import Link
from agentx.errors import RequestFailed
from agentx.wires.messages import Reply, Request, Timers, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """What it is asked with."""

    health: Health
    wires: Callable[[Link], Wire]
    now: Callable[[], float]

    def check(self, link: Link) -> None:
        """Raises RequestFailed when *link* rests: it is not asked then."""
        rest = self.health.resting(link)
        if rest is not None:
            raise RequestFailed(f"{link.name} {rest.why()}", phase="connect", error_class=rest.error_class)

    async def ask(self, link: Link, request: Request, timers: Timers) -> Reply:
        """The reply of *link*, asked once, or until its parameters please it.

        Raises RequestFailed; the link then rests as in a chain."""
        taught, sent = self.health.taught, self.now()
        request = replace(request, changes=taught.changes(link))
        while True:
            try:
                reply = await self.wires(link).ask(request, timers)
            except RequestFailed as error:
                failure = classify(error, link.provider, self.now())
                step = decide(failure, _once(request), 0.0)
                if step.action != "change" or step.changes is None:
                    self._charge(link, failure, step.fate)
                    raise
                request = replace(request, changes=step.changes)
            else:
                if request.changes:
                    taught.learn(link, request.changes)
                self.health.succeeded(link, sent)
                return reply

    def _charge(self, link: Link, failure: Failure, fate: Fate) -> None:
        if fate == "out":
            self.health.out(link, failure.error_class, failure.message, failure.reach)
        elif fate == "rest" or failure.error_class in BROKEN:
            self.health.rest(link, failure.retry_at, failure.error_class, failure.message, failure.reach)


def _once(request: Request) -> Attempts:
    """Nothing but its parameters is tried a second time."""
    return Attempts(
        sent=request.estimate,
        max_tokens=request.max_tokens,
        fresh=False,
        broken=1,
        told=MOST_TOLD,
        changes=request.changes,
    )
