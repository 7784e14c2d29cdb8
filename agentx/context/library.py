"""The context alone, for other programs: messages and a window in, a view that fits out. Keeps nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.context.budget import Budget
from agentx.context.chat import Chat, chat_of, dicts_of, tokens_of_tools
from agentx.context.checkpoint import Checkpoint
from agentx.context.measure import Calibration
from agentx.context.policies import Policy, Room, ceiling, due, policy_named, room_for
from agentx.context.summarise import Summariser
from agentx.context.tiers.all import TIERS
from agentx.context.tiers.work import Work
from agentx.context.view import project
from agentx.errors import ContextOverflow, UsageError
from agentx.wires.messages import Message, Reply

Json = dict[str, Any]
Summarise = Callable[[list[Json], int], str | Awaitable[str]]
"""Given a chat and `max_tokens`, the text of a summary; empty when there is none."""

MUST_SHARE = 0.4
"""Of the threshold: the most that the user's words, and the newest exchange, may claim before they are trimmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A view. `tokens` is what it is believed to hold, tools included; `did` names the tiers that ran for it.

    `state` is JSON; given back with the next, longer list of messages it keeps the view as it is until that is too
    large again, so that what a provider has cached stays.
    """

    messages: list[Json]
    tokens: int
    threshold: int
    did: tuple[str, ...]
    state: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    chat: Chat
    budget: Budget
    policy: Policy
    fixed: int
    factor: float
    room: Room
    ceiling: int


def fit(
    messages: Sequence[Mapping[str, Any]],
    window: int,
    *,
    max_tokens: int | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    state: Mapping[str, Any] | None = None,
    reported: int | None = None,
    summarise: Summarise | None = None,
    policy: str = "half-window",
) -> Fitted:
    """What of *messages* (OpenAI's chat form, all of them) to send to a model whose *window* is so many tokens.

    Below the threshold that is every message as it stands. Above it the oldest give way to a summary by
    *summarise* and, without it or when it is refused, to markers and a digest made by code. The system prompt and
    the words of the user stay, and calls with their results. *tools* are those of the request, *max_tokens* what
    the reply may have. *state* is that of the last view, *reported* the prompt tokens that the provider counted
    for it.

    Raises WindowTooSmall, ContextOverflow when nothing fits, UsageError for messages that are no chat, and what
    *summarise* raises. In a running event loop use `afit`.
    """
    return asyncio.run(
        afit(
            messages,
            window,
            max_tokens=max_tokens,
            tools=tools,
            state=state,
            reported=reported,
            summarise=summarise,
            policy=policy,
        )
    )


async def afit(
    messages: Sequence[Mapping[str, Any]],
    window: int,
    *,
    max_tokens: int | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    state: Mapping[str, Any] | None = None,
    reported: int | None = None,
    summarise: Summarise | None = None,
    policy: str = "half-window",
) -> Fitted:
    """As `fit`; *summarise* may be a coroutine function."""
    chat = chat_of(messages)
    known = state or {}
    calibration = Calibration(known.get("ratio")).after(reported or 0, known.get("estimate", 0))
    chosen = policy_named(policy)
    frame = _frame(chat, chosen.budget(window, max_tokens), tokens_of_tools(tools), calibration, chosen)
    draft = Checkpoint.from_json(known["checkpoint"]) if known.get("checkpoint") else Checkpoint()
    if draft.at > chat.transcript.last:
        raise UsageError("the state is of a longer conversation", hint="give all messages, the earlier ones too")
    work = Work(
        transcript=chat.transcript,
        draft=draft,
        room=frame.room,
        policy=frame.policy,
        active=() if summarise is None else (_summariser(summarise, window, frame),),
    )
    did: list[str] = []
    if work.size() * frame.factor > frame.ceiling:
        work, did = await _compacted(work)
    if work.size() * frame.factor > frame.budget.usable:
        raise ContextOverflow(
            f"the conversation cannot be made to fit {frame.budget.usable:,} tokens",
            limit=frame.budget.usable,
            actual=round(work.size() * frame.factor),
        )
    return _fitted(work, frame, calibration, did)


async def _compacted(work: Work) -> tuple[Work, list[str]]:
    """The steps of the policy in order, each while the view is as large as it asks. Names those that helped."""
    did: list[str] = []
    for planned in work.policy.steps:
        if not due(planned, work.room, work.size()):
            continue
        step = await TIERS[planned.tier].run(work)
        if step.draft is not None:
            work = work.with_draft(step.draft)
            did.append(planned.tier)
    return work, did


def _frame(chat: Chat, budget: Budget, tools: int, calibration: Calibration, policy: Policy) -> _Frame:
    fixed, factor = chat.system_tokens + tools, calibration.factor
    transcript = chat.transcript
    most = int(MUST_SHARE * budget.threshold / factor)
    newest = transcript.tokens_after(transcript.tail(0, 0))
    must = min(most, sum(item.tokens for item in transcript.said)) + min(most, newest)
    return _Frame(
        chat=chat,
        budget=budget,
        policy=policy,
        fixed=fixed,
        factor=factor,
        room=room_for(policy, budget, fixed=fixed, must=must, factor=factor),
        ceiling=ceiling(budget, fixed + must, factor),
    )


def _fitted(work: Work, frame: _Frame, calibration: Calibration, did: Sequence[str]) -> Fitted:
    plain, transcript = work.size(), work.transcript
    whole = work.draft == Checkpoint()
    shown = None if whole else project(transcript, work.draft).messages
    checkpoint = None if whole else work.draft.to_json() | {"at": transcript.last if did else work.draft.at}
    return Fitted(
        messages=dicts_of(frame.chat, shown),
        tokens=round(plain * frame.factor),
        threshold=frame.budget.threshold,
        did=tuple(did),
        state={"checkpoint": checkpoint, "estimate": plain, "ratio": calibration.ratio},
    )


def _summariser(summarise: Summarise, window: int, frame: _Frame) -> Summariser:
    async def ask(messages: Sequence[Message], max_tokens: int) -> Reply:
        said = summarise([{"role": one.role, "content": one.text} for one in messages], max_tokens)
        text = await said if inspect.isawaitable(said) else said
        return Reply(
            message=Message(role="assistant", text=text), finish="stop", usage=None, model="", seconds=0.0
        )

    return Summariser(
        ask=ask, window=window, factor=frame.factor, seconds=frame.policy.summary_seconds, counter=_no_counter
    )


def _no_counter(_text: str) -> int | None:
    return None
