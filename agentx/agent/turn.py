"""One turn: a view for the link that is really called, the request, the reply, checked and committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentx.agent import prompts
from agentx.agent.spend import Purse
from agentx.chain import ledger
from agentx.chain.classify import Failure, classify
from agentx.chain.returns import small_request
from agentx.chain.single import Alone
from agentx.chain.walk import Chain
from agentx.config.links import Link
from agentx.context.budget import Budget, budget_for, output_budget
from agentx.context.engine import Ask, Context, Truncation, View
from agentx.context.measure import fitting, message_tokens, most_tokens
from agentx.context.truncation import padding, probed_window
from agentx.errors import CapReached, ContextOverflow, RequestFailed, WindowTooSmall
from agentx.events import LinkSelected, Nudged, Purpose, Replied, Requested, Truncated, Warned, WindowLearned
from agentx.journal import Journal, Payload
from agentx.tools.toolbox import Toolbox
from agentx.windows.overflow import read_overflow
from agentx.windows.record import LARGEST, Window
from agentx.windows.registry import WindowRegistry
from agentx.wires.check import check_length
from agentx.wires.messages import Message, Reply, Request, Timers, Tool, Usage, Wire
from agentx.wires.timing import timers_for

TERSE_BELOW = 8_192
"""Windows below this get the short prompt and the short tool descriptions (tokens)."""
INSTRUCTIONS_SHARE = 0.2
"""Of the usable input: the most that AGENTS.md may have in the system prompt."""
PADDING, PROBE_AHEAD = 400, 1.25
"""Tokens by which the request of a probe goes beyond the window that is in doubt, and how far it goes at least."""
PROBE_REPLY = 8
MOST_TOKENS_PER_ESTIMATED = 3
"""A reported prompt beyond this is a wrong count (a sum over requests, say) and proves nothing about a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What the settings say of budgets and compaction."""

    fraction: float
    cap: int
    summaries: bool = True
    """Models may write summaries; what code does by itself always runs."""


class Turns:
    """Everything that one turn needs, held together for a job."""

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
        numbers: Numbers,
        workspace: str,
        instructions: str,
        only_tools: Sequence[str] | None,
        now: Callable[[], float] = time.time,
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
        self.numbers = numbers
        self.workspace = workspace
        self.instructions = instructions
        self.only_tools = only_tools
        self.now = now
        self._views: dict[str, View] = {}
        self._announced: tuple[object, ...] | None = None
        self._answered: set[str] = set()
        self._reads: dict[str, int] = {}
        """Tokens that a link, by identity, was found to read in a probe."""
        self._shortened: set[tuple[str, int]] = set()
        self._disbelieved: set[str] = set()

    def budget(self, link: Link) -> tuple[Window, Budget]:
        """The window of *link* as it is now, and what follows from it. Raises WindowTooSmall."""
        window = self.registry.window(link)
        numbers = self.numbers
        budget = budget_for(
            window.size,
            link.max_tokens,
            output_cap=window.output,
            fraction=numbers.fraction,
            cap=numbers.cap,
        )
        return window, budget

    def frame(self, budget: Budget) -> tuple[str, tuple[Tool, ...]]:
        """System prompt and tools for *budget*: short ones where the window is small."""
        terse = budget.window < TERSE_BELOW
        instructions = self.instructions
        shown = fitting(instructions, int(budget.usable * INSTRUCTIONS_SHARE))
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
        self._announce(link, window, budget, reason)
        view = await self.context.view(
            link,
            budget,
            system=system,
            tools=tools,
            ask=self.summariser(link) if self.numbers.summaries else None,
            count=self.wires(link).count,
        )
        self._views[link.identity] = view
        if view.shortened:
            self._tell_shortened(link, budget)
        asked = budget.max_tokens
        max_tokens = output_budget(budget.window, view.measured, asked=asked, cap=window.output)
        most = output_budget(budget.window, view.measured, asked=asked or budget.window, cap=window.output)
        paid_for = self.purse.afford(link, view.measured, most)
        most, max_tokens = paid_for, min(max_tokens, paid_for)
        unsaid = link.provider.clamps_output and not link.max_tokens and not link.on_consent
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
        self._tell_request(link, request)
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
        link, view = answer.link, self._views[answer.link.identity]
        reply = self._with_own_ids(self._believed(link, answer.request, answer.reply, view), link)
        usage = reply.usage
        payload = {"message": reply.message.to_json(), "view": view.to_json()}
        self._tell_reply(link, reply, "turn", payload)
        self.context.replied(link, view, usage)
        if usage is not None:
            self._raise(link, view, usage)
        if link.identity not in self._answered:  # local servers load a model with the first request
            self._answered.add(link.identity)
            await self.registry.refresh([link])
        return reply

    async def check(self, link: Link, request: Request, reply: Reply) -> None:
        """Raises RequestFailed: `truncated` when the server read only a part of *request*, and learns from it;
        `invalid_reply` when it stops long before it must."""
        view, found = self._views[link.identity], None
        if self.context.suspicious(link, view, reply):
            counted = await self.wires(link).count(request)
            found = self.context.truncated(link, view, reply, counted=counted)
        if found is None and (beyond := self.context.in_doubt(link, view, reply)):
            found = await self._probe(link, request, view, reply, beyond)
        window = self.registry.window(link)
        if found is None:
            check_length(reply, request, window.size)
            return
        self.journal.append(
            Truncated(link=link.name, reported=found.reported, estimate=found.estimate, window=window.size)
        )
        evidence = f"read {found.reported:,} of about {found.estimate:,} tokens and answered 200"
        self.learn(link, found.learned, evidence)
        raise RequestFailed(
            f"{link.endpoint}: cut the conversation in silence: {evidence}",
            phase="reply",
            status=200,
            error_class="truncated",
            hint=link.window_hint,
            usage=reply.usage.to_json() if reply.usage else {},
        )

    def shorter(self, link: Link, failure: Failure) -> None:
        """Tell the model, in the next view, to write less at a time."""
        message = Message(role="user", text=prompts.SHORTER)
        self.journal.append(Nudged(text=prompts.SHORTER), {"message": message.to_json()})

    async def _probe(
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
            answer = await self._aside(link, probe)
        except RequestFailed as error:
            read = error.prompt_tokens
            if error.phase != "reply" and read_overflow(error.status, error.body) is not None:
                self._reads[link.identity] = LARGEST  # who refuses what is too long does not cut it
        else:
            read = answer.usage.input if answer.usage else None
        largest = max(message_tokens(message) for message in request.messages)
        window = None if read is None else probed_window(usage.input, more, read, message=largest)
        if read is None or window is None:
            return None
        if window >= view.measured:  # all was read, but not much more can be
            self.learn(link, window, f"read {read:,} of about {view.measured + more:,} tokens and answered 200")
            return None
        return Truncation(reported=read, estimate=view.measured + more, learned=window, why="probe")

    def learn(self, link: Link, limit: int, evidence: str, *, guessed: bool = False) -> None:
        """Remember a limit that the endpoint proved or made probable; say so when it changes what is believed."""
        was = self.registry.window(link).size
        if self.registry.learn(link, limit, evidence, guessed=guessed) is not None:
            now = self.registry.window(link).size
            self.journal.append(WindowLearned(link=link.name, value=now, was=was, evidence=evidence))

    def _raise(self, link: Link, view: View, usage: Usage) -> None:
        """A reply proves how much its link holds at least; a count far above the request proves nothing."""
        plausible = usage.input <= MOST_TOKENS_PER_ESTIMATED * max(view.measured, 1)
        was = self.registry.window(link).size
        total, prompt = (usage.input + usage.output, usage.input) if plausible else (0, 0)
        if (window := self.registry.succeeded(link, total, prompt)) is not None:
            self.journal.append(WindowLearned(link=link.name, value=window.size, was=was, evidence=window.detail))

    async def knock(self, link: Link, timers: Timers) -> None:
        """Ask *link* something small. Raises RequestFailed."""
        request = small_request(link)
        self._tell_request(link, request)
        self._tell_reply(link, await self.wires(link).ask(request, timers), "probe", None)

    def summariser(self, link: Link) -> Ask:
        """What asks *link*, whose turn it is, for a summary."""
        return lambda messages, max_tokens: self._summary(link, messages, max_tokens)

    def cheap_summariser(self, link: Link) -> Ask:
        """What asks *link* for a summary, whosever turn it is: not while it rests, and a failure lets it rest."""
        alone = Alone(health=self.chain.health, wires=self.wires, now=self.now)
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
            changes=self.chain.health.taught.changes(link),
        )
        return await self._aside(link, request, alone)

    async def _aside(self, link: Link, request: Request, alone: Alone | None = None) -> Reply:
        """The reply to what is no turn; what it takes stands in the journal, also when it fails.

        Raises RequestFailed, unsent where the link may not cost so much.
        """
        try:
            allowed = self.purse.afford(link, request.estimate, request.max_tokens or 0)
        except CapReached as error:
            raise RequestFailed(error.message, phase="connect", error_class="quota") from error
        request = replace(request, max_tokens=allowed or None)
        self._tell_request(link, request)
        began = self.now()
        try:
            timers = timers_for(link, self.timers)
            asked = alone.ask(link, request, timers) if alone else self.wires(link).ask(request, timers)
            reply = self._believed(link, request, await asked)
        except RequestFailed as error:
            took = ledger.spent(error, self.now() - began)
            if request.purpose == "probe" and took.usage is not None:  # the count is all that it was asked for
                self._tell_reply(link, counted_only(link, took), "probe", None)
            else:
                failure = classify(error, link.provider, self.now())
                self.journal.append(ledger.failed(link, failure, took, self.price, request.purpose))
            raise
        self._tell_reply(link, reply, request.purpose, None)
        return reply

    def _tell_request(self, link: Link, request: Request) -> None:
        self.journal.append(
            Requested(
                link=link.name,
                model=request.model,
                messages=len(request.messages),
                estimate=request.estimate,
                max_tokens=request.max_tokens,
                purpose=request.purpose,
            )
        )

    def _tell_reply(self, link: Link, reply: Reply, purpose: Purpose, payload: Payload | None) -> None:
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

    def _announce(self, link: Link, window: Window, budget: Budget, reason: str) -> None:
        now = (link.identity, budget.window, budget.threshold, window.source)
        if now == self._announced:
            return
        self._announced = now
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

    def _believed(self, link: Link, request: Request, reply: Reply, view: View | None = None) -> Reply:
        """*reply* without its counts where they cannot be true; that is said once for each link.

        What a provider adds to a prompt shows in its first count: a later one is judged by those before it, the
        first by the window that held it.
        """
        usage, most = reply.usage, most_tokens(request.messages, request.tools)
        if usage is None:
            return reply
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

    def _tell_shortened(self, link: Link, budget: Budget) -> None:
        """Say, once for each window, that a model does not see all that the user said."""
        if (link.identity, budget.window) in self._shortened:
            return
        self._shortened.add((link.identity, budget.window))
        text = "what you said does not fit its window whole: it sees beginning and end, and can ask for the rest"
        self.journal.append(Warned(message=f"{link.name}: {text}", hint=link.window_hint))

    def _with_own_ids(self, reply: Reply, link: Link) -> Reply:
        """Providers repeat ids (`call_0` each time): ours are unique in the job and fit every provider."""
        made = self.journal.query("select count(*) from entries where type = 'reply'")[0][0]
        calls = tuple(
            replace(call, id=f"c{made + 1}_{number}") for number, call in enumerate(reply.message.tool_calls, 1)
        )
        return replace(reply, message=replace(reply.message, tool_calls=calls, link=link.name))


def counted_only(link: Link, took: ledger.Spent) -> Reply:
    """What came of a request whose reply was none, but was counted."""
    return Reply(
        message=Message(role="assistant"),
        finish="length",
        usage=took.usage,
        model=link.model,
        seconds=took.seconds,
    )
