"""A view: what one model is sent, projected from the transcript. Pure; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentx.context.checkpoint import Checkpoint
from agentx.context.clip import SMALLEST_CLIP, clip, shorten_arguments
from agentx.context.items import Item, Transcript
from agentx.context.measure import message_tokens
from agentx.wires.messages import Message, ToolCall

NO_RESULT = "No result was recorded for this call. It may have run or not: check before you repeat it."
NO_IMAGE = "[image left out]"
SAID_LATER = "[The user said later; this still holds, and of what differs the newest:]"
EMPTY_SUMMARY = "(nothing was noted)"


@dataclass(frozen=True, slots=True)
class Projection:
    """`tokens` is the plain estimate of *messages* without the system prompt."""

    messages: tuple[Message, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a link is sent. `estimate` is plain, `measured` the best belief; both are tokens, tools included.

    `generation` is the `seq` of the checkpoint that was used, 0 for none; `last` the newest item in the view.
    `fixed` is the part of the estimate that is system prompt and tools, and `link` the identity of the link,
    `window` the window that was believed when the view was made.
    `shortened`: of the user's words, or of the task, only head and tail are in it.
    `fits` is false when the view is over the threshold and could not be made smaller; it fits the window always.
    """

    messages: tuple[Message, ...]
    estimate: int
    measured: int
    generation: int
    last: int
    fixed: int
    link: str
    window: int = 0
    fits: bool = True
    shortened: bool = False

    def to_json(self) -> dict[str, Any]:
        """What the payload of the `reply` keeps of it, under `view`."""
        return {
            "generation": self.generation,
            "last": self.last,
            "estimate": self.estimate,
            "measured": self.measured,
            "fixed": self.fixed,
            "link": self.link,
        }


def project(
    transcript: Transcript, checkpoint: Checkpoint | None, system: str = "", *, link: str | None = None
) -> Projection:
    """The messages that *checkpoint* (or none) makes of *transcript*, with *system* first when there is one.

    Every call has its result right behind it; results without a call are left out. Messages of the same role user
    that follow each other are one message, since strict templates want roles to alternate. Reasoning stays only in
    messages that came from *link* (its name).
    """
    messages: list[Message] = []
    if checkpoint is None:
        shown = transcript.between(0)
    else:
        before, shown = _before(transcript, checkpoint), transcript.between(checkpoint.upto)
        messages.extend(before)
        shown = [as_shown(item, checkpoint) for item in shown]
    messages.extend(_paired(shown))
    messages = [_without_foreign_reasoning(message, link) for message in _merged(messages)]
    tokens = sum(map(message_tokens, messages))
    if system:
        messages.insert(0, Message(role="system", text=system))
    return Projection(tuple(messages), tokens)


def shortened(checkpoint: Checkpoint | None, said: Sequence[Item]) -> bool:
    """Whether some of what the user *said* is shown with head and tail only."""
    trimmed = checkpoint.trimmed if checkpoint else None
    return bool(trimmed) and any(item.tokens > trimmed.get(item.seq, item.tokens) for item in said)


def marker(item: Item) -> str:
    """What stands for a tool result: short, and with the id that brings it back."""
    name = item.message.name or "a tool"
    size = len(item.message.text)
    return f"[result of {name} left out, {size:,} characters: restore_tool_result id `r{item.seq}`]"


def block(checkpoint: Checkpoint) -> str:
    """What stands for the items that are left out."""
    parts = [
        "[The conversation before this point was left out to save room. What follows is a record of it, not a new "
        "request.]",
        checkpoint.record or EMPTY_SUMMARY,
    ]
    parts.extend(part for part in (checkpoint.index, checkpoint.memory) if part)
    parts.append("[End of the record. Go on with the task from here; do not start over.]")
    return "\n\n".join(parts)


def trimmed_message(item: Item, limit: int) -> Message:
    """*item*'s message with head and tail of its text, and shortened arguments, in about *limit* tokens."""
    message = item.message
    if item.tokens <= limit:
        return message
    calls: tuple[ToolCall, ...] = ()
    text_limit = limit
    if message.tool_calls:
        share = max(SMALLEST_CLIP // 2, limit // 2 // len(message.tool_calls))
        calls = tuple(
            replace(call, arguments=shorten_arguments(call.arguments, share)) for call in message.tool_calls
        )
        text_limit = limit // 2
    text = clip(message.text, text_limit - 8, restore_id=f"r{item.seq}").text
    if message.images:
        text = f"{text}\n{NO_IMAGE}"
    return replace(message, text=text, tool_calls=calls, images=(), reasoning="", sealed="")


def _before(transcript: Transcript, checkpoint: Checkpoint) -> list[Message]:
    """What the view begins with: the task, the record, and the user's words of the part that is left out."""
    if not checkpoint.upto:
        return []
    messages: list[Message] = []
    kept = [item for seq in checkpoint.kept if seq <= checkpoint.upto and (item := transcript.item(seq))]
    said_later = False
    for item in kept:
        message = as_shown(item, checkpoint).message
        if item.kind != "task" and not said_later:  # they become one message: said once, it holds for all
            said_later = True
            message = replace(message, text=f"{SAID_LATER}\n{message.text}")
        messages.append(message)
    first = 1 if kept and kept[0].kind == "task" else 0
    messages.insert(first, Message(role="user", text=block(checkpoint)))
    return messages


def as_shown(item: Item, checkpoint: Checkpoint) -> Item:
    """*item* as a view of *checkpoint* has it: whole, as a marker, trimmed, or without its images."""
    message = item.message
    if item.kind == "tool" and item.seq in checkpoint.marked:
        message = replace(message, text=marker(item), images=())
    elif checkpoint.trimmed and item.seq in checkpoint.trimmed:
        message = trimmed_message(item, checkpoint.trimmed[item.seq])
    if message.images and item.seq in checkpoint.imageless:
        lines = "\n".join([NO_IMAGE] * len(message.images))
        message = replace(message, text=f"{message.text}\n{lines}" if message.text else lines, images=())
    return item if message is item.message else replace(item, message=message)


def _paired(items: Sequence[Item]) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(items):
        message = item.message
        if item.kind == "tool":
            continue  # stands behind its call, below
        if item.kind == "assistant" and not message.text and not message.tool_calls:
            continue  # providers refuse an empty message
        messages.append(message)
        if message.tool_calls:
            messages.extend(_results(message.tool_calls, items, index + 1))
    return messages


def _results(calls: Sequence[ToolCall], items: Sequence[Item], start: int) -> list[Message]:
    """One result for each of *calls*, in their order, from what stands before the next reply."""
    found: dict[str, list[Message]] = {}
    for item in items[start:]:
        if item.kind == "assistant":
            break
        if item.kind == "tool":
            found.setdefault(item.message.tool_call_id or "", []).append(item.message)
    return [
        found[call.id].pop(0)
        if found.get(call.id)
        else Message(role="tool", text=NO_RESULT, tool_call_id=call.id, name=call.name)
        for call in calls
    ]


def _merged(messages: Sequence[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if message.role == "user" and merged and merged[-1].role == "user":
            before = merged[-1]
            text = "\n\n".join(part for part in (before.text, message.text) if part)
            merged[-1] = replace(before, text=text, images=before.images + message.images)
        else:
            merged.append(message)
    return merged


def _without_foreign_reasoning(message: Message, link: str | None) -> Message:
    if (message.reasoning or message.sealed) and message.link != link:
        return replace(message, reasoning="", sealed="")
    return message
