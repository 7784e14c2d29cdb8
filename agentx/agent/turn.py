"""One turn: a view for the link that is really called, the request, the reply, checked and committed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agentx.agent import prompts
from agentx.agent.aside import Aside
from agentx.agent.spend import Purse
from agentx.agent.told import Told
from agentx.chain import ledger
from agentx.chain.classify import Failure
from agentx.chain.walk import Chain
from agentx.config.links import Link
from agentx.context.budget import SMALLEST_WINDOW, Budget, output_budget
from agentx.context.engine import Context
from agentx.context.measure import PER_IMAGE, fitting
from agentx.context.view import View
from agentx.errors import ContextOverflow, RequestFailed, WindowTooSmall
from agentx.events import Nudged, Warned
from agentx.journal import Journal
from agentx.tools.toolbox import Toolbox
from agentx.windows.record import Window
from agentx.windows.registry import WindowRegistry
from agentx.wires.check import check_length
from agentx.wires.messages import Message, Reply, Request, Timers, Tool, Wire

TERSE_BELOW = 8_192
"""Windows below this get the short prompt and the short tool descriptions (tokens)."""
INSTRUCTIONS_SHARE = 0.2
"""Of the usable input: the most that AGENTS.md may have in the system prompt."""


class Turns:
    """Everything that one turn needs, held together for a job.

    *summaries*: models may write summaries; what code does by itself always runs.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        chain: Chain,
        context: Context,
        registry: WindowRegistry,
        toolbox: Toolbox,
        wires: Callable[[Link], Wire],
        price: ledger.Price,
        purse: Purse,
        timers: Timers,
        summaries: bool,
        workspace: str,
        instructions: str,
        only_tools: Sequence[str] | None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.journal = journal
        self.chain = chain
        self.context = context
        self.registry = registry
        self.toolbox = toolbox
        self.wires = wires
        self.price = price
        self.purse = purse
        self.timers = timers
        self.summaries = summaries
        self.workspace = workspace
        self.instructions = instructions
        self.only_tools = only_tools
        self.now = now
        self.told = Told(journal, context=context, registry=registry, price=price)
        self.aside = Aside(
            told=self.told,
            registry=registry,
            health=chain.health,
            wires=wires,
            price=price,
            purse=purse,
            timers=timers,
            now=now,
            sleep=sleep,
        )
        self._views: dict[str, View] = {}
        self._frames: dict[tuple[bool, int], tuple[str, tuple[Tool, ...]]] = {}
        self._answered: set[str] = set()
        self._counted = (0, 0)
        """Up to which entry replies were counted, and how many there are."""

    def budget(self, link: Link) -> tuple[Window, Budget]:
        """The window of *link* as it is now, and what follows from it. Raises WindowTooSmall."""
        window = self.registry.window(link)
        budget = self.context.policy.budget(window.size, link.max_tokens, output_cap=window.output)
        return window, budget

    def result_limit(self) -> int:
        """Tokens that one tool result may have: for the window of the link that will most likely read it."""
        link = self.chain.likely()
        try:
            _, budget = self.budget(link)
        except WindowTooSmall:
            budget = self.context.policy.budget(SMALLEST_WINDOW)
        return self.context.policy.result_limit(budget, factor=self.context.factor(link))

    def frame(self, budget: Budget) -> tuple[str, tuple[Tool, ...]]:
        """System prompt and tools for *budget*: short ones where the window is small. Always the same ones."""
        terse = budget.window < TERSE_BELOW
        shown = fitting(self.instructions, int(budget.usable * INSTRUCTIONS_SHARE))
        if (terse, shown) not in self._frames:
            self._frames[terse, shown] = self._frame(terse, shown)
        return self._frames[terse, shown]

    def _frame(self, terse: bool, shown: int) -> tuple[str, tuple[Tool, ...]]:
        instructions = self.instructions
        if shown < len(instructions):
            instructions = instructions[:shown] + "\n[AGENTS.md goes on; read the file for the rest]"
        system = prompts.system_prompt(
            workspace=self.workspace,
            began=datetime.fromtimestamp(self.began(), UTC),
            instructions=instructions,
            terse=terse,
        )
        return system, self.toolbox.tools(self.only_tools, terse=terse)

    def began(self) -> float:
        """When the job began, in this process or an earlier one (epoch seconds)."""
        first = self.journal.query("select time from entries order by seq limit 1")
        return first[0][0] if first else self.now()

    async def prepare(self, link: Link, reason: str) -> Request:
        """The request of this turn for *link*: the chain calls this for each link that it is about to ask."""
        await self.registry.touch(link)
        window, budget = self.budget(link)
        system, tools = self.frame(budget)
        if (error := self.context.cannot_hold(link, budget, system=system, tools=tools)) is not None:
            raise error
        self.told.selected(link, window, budget, reason)
        view = await self.context.view(
            link,
            budget,
            system=system,
            tools=tools,
            ask=self.aside.summariser(link) if self.summaries else None,
            others=lambda: self.aside.others(link, self.chain.links),
            count=self.wires(link).count,
        )
        self._views[link.identity] = view
        if view.shortened:
            self.told.shortened(link, budget)
        asked = budget.max_tokens
        max_tokens = output_budget(budget.window, view.measured, asked=asked, cap=window.output)
        most = output_budget(budget.window, view.measured, asked=asked or budget.window, cap=window.output)
        paid_for = self.purse.afford(link, view.measured, most)
        most, max_tokens = paid_for, min(max_tokens, paid_for)
        unsaid = link.provider.clamps_output and not asked and not link.on_consent
        request = Request(
            model=link.model,
            messages=view.messages,
            tools=tools,
            max_tokens=None if unsaid else max_tokens,
            most_tokens=most,
            temperature=link.temperature,
            num_ctx=self.registry.num_ctx(link) if link.provider.wire == "ollama" else None,
            images=self.registry.sees_images(link) is not False,
            estimate=view.estimate,
            threshold=budget.threshold,
        )
        self.told.request(link, request, view)
        return request

    def start_check(self) -> None:
        """Name, before the first request, each link that can never serve. Raises ContextOverflow when none can."""
        found: list[str] = []
        hint = None
        for link in self.chain.links:
            if (error := self._too_small(link)) is None:
                continue
            hint = hint or link.window_hint or error.hint
            found.append(f"{link.name}: {error.message}")
            self.chain.too_small(link)
            self.journal.append(
                Warned(
                    message=f"{link.name} can not serve this job and is left out: {error.message}",
                    hint=link.window_hint or error.hint,
                )
            )
        if len(found) == len(self.chain.links):
            raise ContextOverflow(f"no link of the chain can hold this job: {'; '.join(found)}", hint=hint)

    def _too_small(self, link: Link) -> ContextOverflow | None:
        try:
            _, budget = self.budget(link)
        except WindowTooSmall as error:
            return error
        system, tools = self.frame(budget)
        return self.context.cannot_hold(link, budget, system=system, tools=tools)

    async def turn(self) -> Reply:
        """The next reply, committed to the journal, with call ids that are unique in the job.

        Raises what the chain raises: ChainExhausted, ContextOverflow, NoUsableModel.
        """
        answer = await self.chain.ask(self.prepare, check=self.check, shorter=self.shorter)
        link, view = answer.link, self._as_sent(answer.link, answer.request)
        reply = self._with_own_ids(self.told.believed(link, answer.request, answer.reply, view), link)
        usage = reply.usage
        payload = {"message": reply.message.to_json(), "view": view.to_json()}
        self.told.reply(link, reply, "turn", payload)
        self.context.replied(link, view, usage)
        if usage is not None:
            self.told.held(link, view, usage)
        if link.identity not in self._answered:  # local servers load a model with the first request
            self._answered.add(link.identity)
            await self.registry.refresh([link])
        return reply

    async def compact_now(self) -> int:
        """Compact for the link that will most likely be asked next, although nothing asks for it.

        Gives the `seq` of the entry that tells what came of it. Raises ContextOverflow where it is too small.
        """
        link = self.chain.likely()
        await self.registry.touch(link)
        window, budget = self.budget(link)
        system, tools = self.frame(budget)
        self.told.selected(link, window, budget, "to be compacted")
        outcome = await self.context.compact_now(
            link,
            budget,
            system=system,
            tools=tools,
            ask=self.aside.summariser(link) if self.summaries else None,
            others=lambda: self.aside.others(link, self.chain.links),
        )
        return outcome.entry

    async def check(self, link: Link, request: Request, reply: Reply) -> None:
        """Raises RequestFailed: `truncated` when the server read only a part of *request*, and learns from it;
        `invalid_reply` when it stops long before it must."""
        view, found = self._as_sent(link, request), None
        if self.context.doubt.suspicious(link, view, reply):
            counted = await self.wires(link).count(request)
            found = self.context.doubt.truncated(link, view, reply, counted=counted)
        if found is None and (beyond := self.context.doubt.in_doubt(link, view, reply)):
            found = await self.aside.probe(link, request, view, reply, beyond)
        window = self.registry.window(link)
        if found is None:
            check_length(reply, request, window.size)
            return
        evidence = self.told.cut(link, found.reported, found.estimate, found.learned)
        raise RequestFailed(
            f"{link.endpoint}: cut the conversation in silence: {evidence}",
            phase="reply",
            status=200,
            error_class="truncated",
            hint=link.window_hint,
            usage=reply.usage.to_json() if reply.usage else {},
        )

    def _as_sent(self, link: Link, request: Request) -> View:
        """The view that *request* was made from, without the images that the link was not sent."""
        view = self._views[link.identity]
        sent = sum(len(message.images) for message in request.messages) if request.shows_images else 0
        gone = PER_IMAGE * (sum(len(message.images) for message in view.messages) - sent)
        if not gone:
            return view
        measured = max(1, view.measured - round(gone * self.context.factor(link)))
        return replace(view, estimate=max(1, view.estimate - gone), measured=measured)

    def shorter(self, link: Link, failure: Failure) -> None:
        """Tell the model, in the next view, to write less at a time."""
        message = Message(role="user", text=prompts.SHORTER)
        self.journal.append(Nudged(text=prompts.SHORTER), {"message": message.to_json()})

    def _with_own_ids(self, reply: Reply, link: Link) -> Reply:
        """Providers repeat ids (`call_0` each time): ours are unique in the job and fit every provider."""
        seen, made = self._counted
        rows = self.journal.query(
            "select count(*), max(seq) from entries where type = 'reply' and seq > ?", (seen,)
        )
        self._counted = seen, made = rows[0][1] or seen, made + rows[0][0]
        calls = tuple(
            replace(call, id=f"c{made + 1}_{number}") for number, call in enumerate(reply.message.tool_calls, 1)
        )
        return replace(reply, message=replace(reply.message, tool_calls=calls, link=link.name))
