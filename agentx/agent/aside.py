"""What a job asks its links beside its turns: summaries, and probes that tell whether a server cuts or is back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agentx.agent.spend import Purse
from agentx.agent.told import Told
from agentx.chain import ledger
from agentx.chain.classify import classify
from agentx.chain.health import Health
from agentx.chain.returns import small_request
from agentx.chain.single import Alone
from agentx.config.links import Link
from agentx.context.engine import Ask, Truncation, View
from agentx.context.measure import message_tokens
from agentx.context.truncation import padding, probed_window
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
    ) -> None:
        self.told = told
        self.registry = registry
        self.health = health
        self.wires = wires
        self.price = price
        self.purse = purse
        self.timers = timers
        self.now = now
        self._reads: dict[str, int] = {}
        """Tokens that a link, by identity, was found to read in a probe."""

    async def knock(self, link: Link, timers: Timers) -> None:
        """Ask *link* something small. Raises RequestFailed."""
        request = small_request(link)
        self.told.request(link, request)
        self.told.reply(link, await self.wires(link).ask(request, timers), "probe", None)

    def summariser(self, link: Link) -> Ask:
        """What asks *link*, whose turn it is, for a summary."""
        return lambda messages, max_tokens: self._summary(link, messages, max_tokens)

    def cheap_summariser(self, link: Link) -> Ask:
        """What asks *link* for a summary, whosever turn it is: not while it rests, and a failure lets it rest."""
        alone = Alone(health=self.health, wires=self.wires, now=self.now)
        return lambda messages, max_tokens: self._summary(link, messages, max_tokens, alone)

    async def _summary(
        self, link: Link, messages: Sequence[Message], max_tokens: int, alone: Alone | None = None
    ) -> Reply:
        if alone is not None:
            alone.check(link)
        request = Request(
            model=link.model,
            messages=messages,
            max_tokens=min(max_tokens, self.registry.window(link).output or max_tokens),
            temperature=link.temperature,
            num_ctx=self.registry.num_ctx(link) if link.provider.wire == "ollama" else None,
            images=self.registry.sees_images(link) is not False,
            purpose="summary",
            estimate=sum(len(message.text) for message in messages) // 4,
            changes=self.health.taught.changes(link),
        )
        return await self._ask(link, request, alone)

    async def _ask(self, link: Link, request: Request, alone: Alone | None = None) -> Reply:
        """The reply to what is no turn; what it takes stands in the journal, also when it fails.

        Raises RequestFailed, unsent where the link may not cost so much.
        """
        try:
            allowed = self.purse.afford(link, request.estimate, request.max_tokens or 0)
        except CapReached as error:
            raise RequestFailed(error.message, phase="connect", error_class="quota") from error
        request = replace(request, max_tokens=allowed or None)
        self.told.request(link, request)
        began = self.now()
        try:
            timers = timers_for(link, self.timers)
            asked = alone.ask(link, request, timers) if alone else self.wires(link).ask(request, timers)
            reply = self.told.believed(link, request, await asked)
        except RequestFailed as error:
            took = ledger.spent(error, self.now() - began)
            if request.purpose != "probe" or took.usage is None:
                failure = classify(error, link.provider, self.now())
                self.told.journal.append(ledger.failed(link, failure, took, self.price, request.purpose))
                raise
            reply = self.told.believed(
                link, request, counted_only(link, took)
            )  # the count is all it was asked for
        self.told.reply(link, reply, request.purpose, None)
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
            answer = await self._ask(link, probe)
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
