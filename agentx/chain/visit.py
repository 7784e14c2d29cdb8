"""One stay at one link: the request is made for it, sent, and repeated or made smaller as `decide` says."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from agentx.chain.classify import Failure, classify
from agentx.chain.decide import BROKEN, Attempts, Room, Step, decide, suspected
from agentx.chain.images import THESE_IMAGES, lighter, to_blame
from agentx.chain.ledger import Spent, spent
from agentx.chain.taught import Taught
from agentx.config.links import Link
from agentx.errors import AgentxError, RequestFailed
from agentx.wires.messages import Reply, Request, Timers, Wire
from agentx.wires.repair import repaired

Prepare = Callable[[Link, str], Awaitable[Request]]
Check = Callable[[Link, Request, Reply], Awaitable[None]]
Shorter = Callable[[Link, Failure], object]
"""Tells the model to write less at a time: the next request that is prepared says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a visit acts with. `failed` hears of every failed request, `prepared` when a request stands, `log` of
    the traceback where a reply broke our own code; `learn` of a proven window, `guess` of a probable one. `timers`
    gives those of the next request, and may raise what ends it."""

    wires: Callable[[Link], Wire]
    timers: Callable[[], Timers]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    learn: Callable[[Link, int, str], object]
    guess: Callable[[Link, int, str], object]
    taught: Taught
    prepare: Prepare
    check: Check | None
    shorter: Shorter | None
    failed: Callable[[Link, Failure, Spent], None]
    prepared: Callable[[Link, str], None]
    log: Callable[[str], object]
    rooms: dict[str, Room]
    """What output fits beside a prompt, by the link's name, where a refusal said so; a visit adds to it."""
    imageless: set[str]
    """Identities of those that refused an image of this job; a visit adds to it."""
    image_bytes: dict[str, int]
    """By identity: the bytes that images may have together, where more were refused; a visit adds to it."""


class Visit:
    """Asks one link until it answers or until it is the next one's turn."""

    def __init__(self, link: Link, reason: str, attempts: Attempts, means: Means) -> None:
        self.link = link
        self.reason = reason
        self.attempts: Attempts = attempts
        self.request: Request | None = None
        self.failure: Failure | None = None
        self.sent = 0.0
        """When the request that was answered went out (epoch seconds)."""
        self._means = means
        self._too_large: Request | None = None

    async def run(self) -> Reply | Step:
        """The reply to `request`, or the step that hands over to the next link.

        Raises ContextOverflow when no request for this link can be made, and whatever `sleep` raises.
        """
        outcome = await self._attempt()
        if not _goes_on(outcome):
            return outcome  # nearly always: what repeats is not set up for it
        assert isinstance(outcome, Step)
        await self._means.sleep(outcome.pause)
        retrying = AsyncRetrying(sleep=self._means.sleep, retry=retry_if_result(_goes_on), wait=_pause)
        repeated: Reply | Step = await retrying(self._attempt)
        return repeated

    async def _attempt(self) -> Reply | Step:
        means, link = self._means, self.link
        self.sent = means.now()
        try:
            request = self.request or await self._prepared()
            means.prepared(link, self.reason)
            if self._too_large is not None and size(request) >= size(self._too_large):
                return self._not_smaller()
            if self.request is None:
                request = self._with_room(request)
                self.attempts = replace(
                    self.attempts,
                    sent=request.estimate,
                    max_tokens=request.max_tokens,
                    most_tokens=request.most_tokens,
                    shrank=True,
                    large=self.attempts.large or _large(request),
                    images=request.shows_images and any(message.images for message in request.messages),
                    image_bytes=to_blame(request),
                )
                self.request = request
            reply = await self._reply(request)
        except RequestFailed as error:
            self.failure = suspected(classify(error, link.provider, means.now()), self.attempts)
            step = decide(self.failure, self.attempts, means.random())
            means.failed(link, self.failure, spent(error, means.now() - self.sent, step.pause))
            return self._obey(step, self.failure)
        return reply

    def _with_room(self, request: Request) -> Request:
        """*request* with an output budget that this link is known to accept."""
        room = self._means.rooms.get(self.link.name)
        if room is None or request.max_tokens is None:
            return request
        return replace(request, max_tokens=room.left(request.max_tokens, request.estimate))

    async def _prepared(self) -> Request:
        """A new request, with what is known of the parameters of its model."""
        request = await self._means.prepare(self.link, self.reason)
        changes = self.attempts.changes or self._means.taught.changes(self.link)
        if self.link.identity in self._means.imageless:
            changes = {**changes, THESE_IMAGES: None}
        self.attempts = replace(self.attempts, changes=changes)
        if (most := self._means.image_bytes.get(self.link.identity)) is not None:
            request = replace(request, messages=lighter(request.messages, most))
        if self.attempts.repaired:
            request = replace(request, messages=repaired(request.messages))
        return replace(request, changes=changes) if changes else request

    async def _reply(self, request: Request) -> Reply:
        """The checked reply. A fault of ours in reading it is a failure of this link: others may go on."""
        means, link = self._means, self.link
        self.sent = means.now()
        reply: Reply | None = None
        try:
            reply = await means.wires(link).ask(request, means.timers())
            self._check_names(request, reply)
            if means.check is not None:
                await means.check(link, request, reply)
            needs = {name: new for name, new in request.changes.items() if name != THESE_IMAGES}
            if needs and needs != means.taught.changes(link):
                means.taught.learn(link, needs)
        except AgentxError:
            raise
        except Exception as error:  # what one server says must not end a chain that has other links
            means.log(traceback.format_exc())
            raise RequestFailed(
                f"what came could not be read: {type(error).__name__}: {error}",
                phase="reply",
                error_class="invalid_reply",
                usage=reply.usage.to_json() if reply is not None and reply.usage is not None else {},
            ) from error
        return reply

    def _remember_room(self, step: Step, failure: Failure) -> None:
        """What *failure* said of output budgets, for the requests to come."""
        rooms, name, sent = self._means.rooms, self.link.name, self.attempts.sent
        if failure.limit and failure.actual and sent:
            rooms[name] = replace(rooms.get(name, Room()), limit=failure.limit, ratio=failure.actual / sent)
        elif step.action == "lower":
            rooms[name] = replace(rooms.get(name, Room()), most=step.max_tokens)

    def _check_names(self, request: Request, reply: Reply) -> None:
        """Raises RequestFailed for a call of a tool that was not offered. A model that insists on it, with nobody
        else to ask, is better told than given up: then the reply passes, and whoever runs tools answers it."""
        offered = {tool.name for tool in request.tools}
        unknown = next((call.name for call in reply.message.tool_calls if call.name not in offered), None)
        if unknown is None or (self.attempts.alone and self.attempts.broken % 2 == 1):
            return
        raise RequestFailed(
            f"{reply.model}: a call of `{unknown}`, and there is no such tool",
            phase="reply",
            status=200,
            error_class="invalid_reply",
            usage=reply.usage.to_json() if reply.usage is not None else {},
        )

    def _not_smaller(self) -> Step:
        """What was made anew is as large as what was refused: it is not sent."""
        assert self.failure is not None
        self.attempts = replace(self.attempts, shrank=False)
        return self._obey(decide(self.failure, self.attempts, self._means.random()), self.failure)

    def _obey(self, step: Step, failure: Failure) -> Step:
        """Get ready for *step*."""
        attempts = self.attempts
        if step.learn is not None:
            self._means.learn(self.link, step.learn, f"refused: {failure.message}")
        if step.guess is not None:
            self._means.guess(self.link, step.guess, failure.message)
        if step.action == "rebuild":
            self._too_large, self.request = self.request or self._too_large, None
            self.reason = f"a smaller request: {failure.error_class}"
            self.attempts = replace(attempts, rebuilt=attempts.rebuilt + 1)
        elif step.action in ("lower", "raise") and self.request is not None:
            self.request = replace(self.request, max_tokens=step.max_tokens)
            self._remember_room(step, failure)
            raised, lowered = step.action == "raise", attempts.lowered + (step.action == "lower")
            self.attempts = replace(
                attempts, raised=attempts.raised or raised, lowered=lowered, max_tokens=step.max_tokens
            )
        elif step.action == "change" and self.request is not None and step.changes is not None:
            if THESE_IMAGES in step.changes:
                self._means.imageless.add(self.link.identity)
            self.request = replace(self.request, changes=step.changes)
            self.attempts = replace(attempts, changes=step.changes)
        elif step.action == "lighten" and self.request is not None:
            most = self._means.image_bytes[self.link.identity] = attempts.image_bytes // 2
            self.request = replace(self.request, messages=lighter(self.request.messages, most))
            lightened = attempts.lightened + 1
            self.attempts = replace(attempts, lightened=lightened, image_bytes=to_blame(self.request))
        elif step.action == "repair" and self.request is not None:
            self.attempts, messages = replace(attempts, repaired=True), repaired(self.request.messages)
            if messages == tuple(self.request.messages):  # nothing that we could put in order
                return decide(failure, self.attempts, 0.0)
            self.request = replace(self.request, messages=messages)
        elif step.action == "tell" and self._means.shorter is not None:
            self._means.shorter(self.link, failure)
            self.request, self.reason = None, "told to write less at a time"
            self.attempts = replace(attempts, told=attempts.told + 1)
        elif failure.error_class in BROKEN:
            self.attempts = replace(attempts, broken=attempts.broken + 1)
        elif step.action == "again":
            self.attempts = replace(attempts, quick=attempts.quick + 1)
        return step


def size(request: Request) -> int:
    """How large a request is, to compare two of them: its estimate in tokens, or its characters without one."""
    if request.estimate:
        return request.estimate
    return sum(len(m.text) + sum(len(call.arguments) for call in m.tool_calls) for m in request.messages)


def _large(request: Request) -> bool:
    """Half of the threshold is what a compaction leaves: a request above that has grown."""
    return request.threshold is not None and 2 * request.estimate > request.threshold


def _goes_on(outcome: Reply | Step) -> bool:
    return isinstance(outcome, Step) and outcome.action != "next"


def _pause(state: RetryCallState) -> float:
    outcome = None if state.outcome is None else state.outcome.result()
    return outcome.pause if isinstance(outcome, Step) else 0.0
