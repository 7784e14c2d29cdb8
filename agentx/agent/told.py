"""What a job's journal is told of its links: requests, replies, windows, and counts that cannot be true."""

from __future__ import annotations

from dataclasses import replace

from agentx.chain import ledger
from agentx.config.links import Link
from agentx.context.budget import Budget
from agentx.context.engine import Context
from agentx.context.measure import message_tokens, most_tokens
from agentx.context.view import View
from agentx.events import LinkSelected, Purpose, Replied, Requested, Truncated, Warned, WindowLearned
from agentx.journal import Journal, Payload
from agentx.windows.record import Window
from agentx.windows.registry import WindowRegistry
from agentx.wires.messages import Reply, Request, Usage

MOST_TOKENS_PER_ESTIMATED = 3
"""A reported prompt beyond this is a wrong count (a sum over requests, say) and proves nothing about a window."""


class Told:
    """Writes to *journal*, each thing once where once is enough."""

    def __init__(
        self, journal: Journal, *, context: Context, registry: WindowRegistry, price: ledger.Price
    ) -> None:
        self.journal = journal
        self.context = context
        self.registry = registry
        self.price = price
        self._selected: tuple[object, ...] | None = None
        self._shortened: set[tuple[str, int]] = set()
        self._disbelieved: set[str] = set()

    def request(self, link: Link, request: Request, view: View | None = None) -> None:
        """A request is sent; of a turn with what its *view* is made of."""
        system = sum(message_tokens(message) for message in request.messages if message.role == "system")
        self.journal.append(
            Requested(
                link=link.name,
                model=request.model,
                messages=len(request.messages),
                estimate=request.estimate,
                max_tokens=request.max_tokens,
                purpose=request.purpose,
                system=system if view else 0,
                tools=max(0, view.fixed - system) if view else 0,
                view=view.generation if view else 0,
            )
        )

    def reply(self, link: Link, reply: Reply, purpose: Purpose, payload: Payload | None = None) -> None:
        usage = reply.usage
        event = Replied(
            link=link.name,
            model=reply.model or link.model,
            finish=reply.finish,
            usage=None if usage is None else usage.to_json(),
            seconds=round(reply.seconds, 3),
            cost=self.price(link, usage),
            purpose=purpose,
        )
        self.journal.append(event, payload, durable=True)

    def selected(self, link: Link, window: Window, budget: Budget, reason: str) -> None:
        now = (link.identity, budget.window, budget.threshold, window.source)
        if now == self._selected:
            return
        self._selected = now
        self.journal.append(
            LinkSelected(
                link=link.name,
                model=link.model,
                window=budget.window,
                window_source=window.source,
                threshold=budget.threshold,
                reserve=budget.reserve,
                reason=reason,
            )
        )
        for warning in self.registry.untold(link):
            self.journal.append(Warned(message=warning, hint="`agentx windows` shows how each window is known"))

    def shortened(self, link: Link, budget: Budget) -> None:
        """Say, once for each window, that a model does not see all that the user said."""
        if (link.identity, budget.window) in self._shortened:
            return
        self._shortened.add((link.identity, budget.window))
        text = "what you said does not fit its window whole: it sees beginning and end, and can ask for the rest"
        self.journal.append(Warned(message=f"{link.name}: {text}", hint=link.window_hint))

    def learned(self, link: Link, limit: int, evidence: str, *, guessed: bool = False) -> None:
        """Remember a limit that the endpoint proved or made probable; say so when it changes what is believed."""
        was = self.registry.window(link).size
        if self.registry.learn(link, limit, evidence, guessed=guessed) is not None:
            now = self.registry.window(link).size
            self.journal.append(WindowLearned(link=link.name, value=now, was=was, evidence=evidence))

    def cut(self, link: Link, reported: int, estimate: int, learned: int) -> str:
        """A request of about *estimate* tokens was cut in silence, which teaches a window; the evidence for it."""
        window = self.registry.window(link).size
        self.journal.append(Truncated(link=link.name, reported=reported, estimate=estimate, window=window))
        evidence = f"read {reported:,} of about {estimate:,} tokens and answered 200"
        self.learned(link, learned, evidence)
        return evidence

    def held(self, link: Link, view: View, usage: Usage) -> None:
        """A reply proves how much its link holds at least; a count far above the request proves nothing."""
        plausible = usage.input <= MOST_TOKENS_PER_ESTIMATED * max(view.measured, 1)
        was = self.registry.window(link).size
        total, prompt = (usage.input + usage.output, usage.input) if plausible else (0, 0)
        if (window := self.registry.succeeded(link, total, prompt)) is not None:
            self.journal.append(WindowLearned(link=link.name, value=window.size, was=was, evidence=window.detail))

    def believed(self, link: Link, request: Request, reply: Reply, view: View | None = None) -> Reply:
        """*reply* without its counts where they cannot be true; that is said once for each link.

        What a provider adds to a prompt shows in its first count: a later one is judged by those before it, the
        first by the window that held it.
        """
        usage = reply.usage
        if usage is None:
            return reply
        characters = sum(len(message.text) for message in request.messages)
        if usage.input <= min(characters, request.estimate * MOST_TOKENS_PER_ESTIMATED // 2):
            return reply  # nearly always: no bytes need to be counted
        most = most_tokens(request.messages, request.tools)
        if view is not None and (self.context.calibrated(link) or usage.input > view.window):
            most = min(most, MOST_TOKENS_PER_ESTIMATED * view.measured)
        if usage.input <= most:
            return reply
        if link.name not in self._disbelieved:
            self._disbelieved.add(link.name)
            text = f"reported {usage.input:,} prompt tokens for a request that cannot have more than {most:,}"
            hint = "what it uses is not known where it counts so: limit `--max-turns` or `--max-hours` too"
            self.journal.append(Warned(message=f"{link.name}: {text}: not believed", hint=hint))
        return replace(reply, usage=None)
