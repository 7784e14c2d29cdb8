"""What a job asks its links beside its turns: summaries, and probes that tell whether a server cuts or is back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agentx.agent.spend import Purse
from agentx.agent.told import Told
from agentx.chain import ledger
from agentx.chain.classify import Failure, classify
from agentx.chain.health import Health
from agentx.chain.returns import small_request
from agentx.chain.single import Alone
from agentx.config.links import Link
from agentx.context.measure import estimate, message_tokens
from agentx.context.summarise import Ask, Other
from agentx.context.truncation import Truncation, padding, probed_window
from agentx.context.view import View
from agentx.errors import CapReached, RequestFailed
from agentx.windows.overflow import read_overflow
from agentx.windows.record import LARGEST
from agentx.windows.registry import WindowRegistry
from agentx.wires.messages import Message, Reply, Request, Timers, Wire
from agentx.wires.timing import timers_for

PADDING, PROBE_AHEAD = 400, 1.25
"""Tokens by which the request of a probe goes beyond the window that is in doubt, and how far it goes at least."""
PROBE_REPLY = 8


class Aside:
    """Asks one link something that is no turn. What it takes stands in the journal, also when it fails."""

    def __init__(
        self,
        *,
        told: Told,
        registry: WindowRegistry,
        health: Health,
        wires: Callable[[Link], Wire],
        price: ledger.Price,
        purse: Purse,
        timers: Timers,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.told = told
        self.registry = registry
        self.health = health
        self.wires = wires
        self.price = price
        self.purse = purse
        self.timers = timers
        self.now = now
        self.sleep = sleep
        self._no_summary: set[str] = set()
        """Links, by identity, whose last summary failed."""
        self._reads: dict[str, int] = {}
        """Tokens that a link, by identity, was found to read in a probe."""

    async def knock(self, link: Link, timers: Timers) -> None:
        """Ask *link* something small. Raises RequestFailed."""
        request = small_request(link)
        self.told.request(link, request)
        self.told.reply(link, await self.wires(link).ask(request, timers), "probe", None)

    def summariser(self, link: Link) -> Ask:
        """What asks *link*, a link of the chain, for a summary. Its failure is the summary's alone: the turns that
        it is asked for may go well."""
        alone = self._alone(charged=False)
        return lambda messages, max_tokens: self._summary(link, messages, max_tokens, alone)

    def cheap(self, link: Link) -> Other:
        """*link* as the model for summaries, whosever turn it is: not asked while it rests, and a failure lets it
        rest."""
        alone = self._alone(charged=True)
        return self._other(link, lambda messages, max_tokens: self._summary(link, messages, max_tokens, alone))

    def others(self, link: Link, links: Sequence[Link]) -> list[Other]:
        """Those of *links* that may be asked for a summary now, in their order; *link* itself may always be."""
        return [
            self._other(other, self.summariser(other), paid=other.on_consent and not link.on_consent)
            for other in links
            if other.identity == link.identity
            or (self.health.resting(other) is None and self.purse.refusal(other) is None)
        ]

    def _other(self, link: Link, ask: Ask, *, paid: bool = False) -> Other:
        window, price = self.registry.window(link), self.purse.price(link)
        return Other(
            cuts=link.provider.cuts,
            link=link.identity,
            name=link.name,
            ask=ask,
            window=window.size,
            output=window.output,
            paid=paid,
            free=price is None or not any((price.input, price.output, price.cache_read, price.cache_write)),
            cut=lambda reported, sent, learned: self.told.cut(link, reported, sent, learned),
        )

    def _alone(self, *, charged: bool) -> Alone:
        return Alone(
            health=self.health,
            wires=self.wires,
            now=self.now,
            sleep=self.sleep,
            random=random.random,
            failed=self._summary_failed,
            charged=charged,
        )

    def _summary_failed(self, link: Link, failure: Failure, took: ledger.Spent) -> None:
        self.told.journal.append(ledger.failed(link, failure, took, self.price, "summary"))
        if failure.error_class == "overflow" and failure.limit is not None:
            self.told.learned(link, failure.limit, f"refused: {failure.message}")

    async def _summary(self, link: Link, messages: Sequence[Message], max_tokens: int, alone: Alone) -> Reply:
        if alone.charged:
            alone.check(link)
        request = self._allowed(
            link,
            Request(
                model=link.model,
                messages=messages,
                max_tokens=min(max_tokens, self.registry.window(link).output or max_tokens),
                temperature=link.temperature,
                num_ctx=self.registry.num_ctx(link) if link.provider.wire == "ollama" else None,
                images=self.registry.sees_images(link) is not False,
                purpose="summary",
                estimate=estimate(messages),
            ),
        )
        fresh = link.identity not in self._no_summary
        self._no_summary.add(link.identity)
        reply = await alone.ask(link, request, timers_for(link, self.timers), fresh=fresh)
        self._no_summary.discard(link.identity)
        reply = self.told.believed(link, request, reply)
        self.told.reply(link, reply, "summary", None)
        return reply

    def _allowed(self, link: Link, request: Request) -> Request:
        """*request*, with an output budget that can be paid for, as the journal is told that it is sent.

        Raises RequestFailed, unsent, where the link may not cost so much."""
        try:
            most = self.purse.afford(link, request.estimate, request.max_tokens or 0)
        except CapReached as error:
            raise RequestFailed(error.message, phase="connect", error_class="quota") from error
        request = replace(request, max_tokens=most or None)
        self.told.request(link, request)
        return request

    async def _probed(self, link: Link, request: Request) -> Reply:
        """The reply to a probe, or what it counted where it was none. Raises RequestFailed."""
        request, began = self._allowed(link, request), self.now()
        try:
            reply = await self.wires(link).ask(request, timers_for(link, self.timers))
        except RequestFailed as error:
            took = ledger.spent(error, self.now() - began)
            if took.usage is None:
                failure = classify(error, link.provider, self.now())
                self.told.journal.append(ledger.failed(link, failure, took, self.price, "probe"))
                raise
            reply = counted_only(link, took)
        reply = self.told.believed(link, request, reply)
        self.told.reply(link, reply, "probe", None)
        return reply

    async def probe(
        self, link: Link, request: Request, view: View, reply: Reply, beyond: int
    ) -> Truncation | None:
        """Whether the server cut *request*, by one of more than *beyond* tokens: it reads that too, or shows its
        window. A probe that fails proves nothing, and is not made again.
        """
        usage, most = reply.usage, self.registry.window(link).size - PROBE_REPLY
        if usage is None or beyond <= self._reads.get(link.identity, 0) or usage.input >= most:
            return None
        more = min(max(beyond, int(usage.input * PROBE_AHEAD)) + PADDING, most) - usage.input
        self._reads[link.identity] = usage.input + more
        probe = replace(
            request,
            messages=(*request.messages, *padding(more)),
            max_tokens=PROBE_REPLY,
            purpose="probe",
            estimate=request.estimate + more,
        )
        try:
            answer = await self._probed(link, probe)
        except RequestFailed as error:
            read = None
            if error.phase != "reply" and read_overflow(error.status, error.body) is not None:
                self._reads[link.identity] = LARGEST  # who refuses what is too long does not cut it
        else:
            read = answer.usage.input if answer.usage else None
        largest = max(message_tokens(message) for message in request.messages)
        window = None if read is None else probed_window(usage.input, more, read, message=largest)
        if read is None or window is None:
            return None
        if window >= view.measured:  # all was read, but the probe was not
            self.told.cut(link, read, view.measured + more, window)
            return None
        return Truncation(reported=read, estimate=view.measured + more, learned=window, why="probe")


def counted_only(link: Link, took: ledger.Spent) -> Reply:
    """What came of a request whose reply was none, but was counted."""
    return Reply(
        message=Message(role="assistant"),
        finish="length",
        usage=took.usage,
        model=link.model,
        seconds=took.seconds,
    )
