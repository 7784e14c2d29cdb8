"""The canonical messages in an order and a form that strict servers take. Pure: messages in, messages out.

A message that needs no change stays the same object. What was sent stays the beginning of what is sent: only the
last message may still grow.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from agentx.wires.messages import Image, Message, ToolCall

NO_RESULT = "No result was recorded for this call."
NO_OUTPUT = "(no output)"
NO_TEXT = "(no text)"
NOTED = "Noted."
BEGIN = "(The conversation begins here.)"

IdForm = Literal["plain", "mistral"]
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


_NEXT = {
    "": ("system", "user"),
    "system": ("user",),
    "user": ("assistant",),
    "assistant": ("user",),
    "tool": ("assistant", "user"),
}
"""What may follow which role, results apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a server or the template of a model wants of a conversation."""

    ids: IdForm = "plain"
    system: bool = True
    """It knows the role `system`; else the first words of the user say it."""
    user_after_tool: bool = True
    """The user may speak right after a tool's result."""
    images: bool = True
    """The model sees images; else a line of text stands for each."""


PLAIN = Order()


def arranged(messages: Sequence[Message], order: Order = PLAIN) -> list[Message]:
    """*messages* with every call followed by its result, in the order of the calls, no role twice in a row but a
    tool's, one system prompt at the beginning, nothing empty, and ids that are the server's form and their own."""
    if order.system and _in_order(messages, order):
        return list(messages)
    return _put_in_order(messages, order)


def _in_order(messages: Sequence[Message], order: Order) -> bool:
    """Whether nothing is to be done, as mostly: a long history is looked through with every request."""
    before = ""
    unanswered: list[str] = []
    taken: set[str] = set()
    for message in messages:
        role, text = message.role, message.text
        if (not text or text.isspace()) and (text or not message.tool_calls) and not message.images:
            return False
        if message.images and (role != "user" or not order.images):
            return False
        if role == "tool":
            if not unanswered or unanswered.pop(0) != message.tool_call_id or not message.name:
                return False
        elif (
            unanswered
            or role not in _NEXT[before]
            or (role == "user" and before == "tool" and not order.user_after_tool)
        ):
            return False
        elif message.tool_calls:
            unanswered = [call.id for call in message.tool_calls]
            made = {safe_id(id_, order.ids) for id_ in unanswered}
            if len(made) < len(unanswered) or not made.isdisjoint(taken):
                return False
            taken |= made
        before = role
    return not unanswered


def _put_in_order(messages: Sequence[Message], order: Order) -> list[Message]:
    seen = messages if order.images else [_described(message) for message in messages]
    kept: list[Message] = []
    for message in _with_ids(_paired(_images_after_results(seen)), order.ids):
        if message.role == "system" and any(before.role != "system" for before in kept):
            message = replace(message, role="user")
        if not _says_something(message):
            continue
        if message.role == "assistant" and message.text and not message.text.strip():
            message = replace(message, text="")
        if kept and message.role == kept[-1].role != "tool":
            kept[-1] = _joined(kept[-1], message)
        else:
            kept.append(message)
    return list(_finished(kept, order))


@lru_cache(maxsize=8192)
def safe_id(id_: str, form: IdForm = "plain") -> str:
    """The id of a tool call in a form that the server takes; one that fits is left as it is.

    By hash, never by cutting: the first letters of many ids are all the same. Mistral: exactly nine letters or
    digits. Elsewhere: at most 64 of `A-Z a-z 0-9 _ -` (Anthropic's rule, which satisfies OpenAI's).
    """
    if (_MISTRAL_ID if form == "mistral" else _PLAIN_ID).fullmatch(id_):
        return id_
    digest = hashlib.sha256(id_.encode("utf-8", "replace"))
    if form == "plain":
        return f"call_{digest.hexdigest()[:32]}"
    number = int.from_bytes(digest.digest())
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(9))


def _says_something(message: Message) -> bool:
    if message.role == "assistant":
        return bool(message.text.strip() or message.tool_calls)
    return message.role != "system" or bool(message.text.strip())


def _finished(messages: Iterable[Message], order: Order) -> Iterator[Message]:
    """Nothing empty where emptiness is refused, and the roles in the order that the template wants."""
    before, system = "", ""
    for message in messages:
        if message.role == "system" and not order.system:
            system = message.text
            continue
        if message.role == "user":
            if system:
                message, system = replace(message, text=f"{system}\n\n{message.text}"), ""
            if before == "tool" and not order.user_after_tool:
                yield Message(role="assistant", text=NOTED)
        elif before in ("", "system") and message.role != "system":
            yield Message(role="user", text=f"{system}\n\n{BEGIN}" if system else BEGIN)
            system = ""
        yield _filled(message)
        before = message.role
    if system:
        yield Message(role="user", text=system)


def _filled(message: Message) -> Message:
    if message.text.strip() or message.images or message.role not in ("user", "tool"):
        return message
    return replace(message, text=NO_TEXT if message.role == "user" else NO_OUTPUT)


# Calls and results ------------------------------------------------------------------------------------------


def _paired(messages: Iterable[Message]) -> Iterator[Message]:
    """Every call has one result right behind it, in the order of the calls (Ollama pairs by order alone). A result
    without its call is told by the user, since what it says may matter."""
    calls: tuple[ToolCall, ...] = ()
    results: list[Message] = []
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        if calls or results:
            yield from _settled(calls, results)
        calls, results = message.tool_calls, []
        yield message
    yield from _settled(calls, results)


def _settled(calls: Sequence[ToolCall], results: Sequence[Message]) -> Iterable[Message]:
    if [call.id for call in calls] == [result.tool_call_id for result in results] and all(r.name for r in results):
        return results
    return _mended(calls, results)


def _mended(calls: Sequence[ToolCall], results: Sequence[Message]) -> Iterator[Message]:
    left = list(results)
    for call in calls:
        found = next((result for result in left if result.tool_call_id == call.id), None)
        if found is None:
            yield Message(role="tool", text=NO_RESULT, tool_call_id=call.id, name=call.name)
        else:
            left.remove(found)
            yield found if found.name else replace(found, name=call.name)
    for orphan in left:
        name = orphan.name or "a tool"
        yield replace(orphan, role="user", tool_call_id=None, name=None, text=f"[result of {name}]\n{orphan.text}")


def _with_ids(messages: Iterable[Message], form: IdForm) -> Iterator[Message]:
    """Each id is used for one call only, also in the server's form (which `safe_id` makes of it when rendering).
    Results stand right behind their calls, in order."""
    taken: set[str] = set()
    fresh: list[str] = []
    for message in messages:
        if message.role == "tool":
            id_, own = fresh.pop(0), message.tool_call_id or ""
            yield message if id_ == safe_id(own, form) else replace(message, tool_call_id=id_)
        elif message.tool_calls:
            fresh = [_own_id(call.id, form, taken) for call in message.tool_calls]
            pairs = list(zip(fresh, message.tool_calls, strict=True))
            if any(id_ != safe_id(call.id, form) for id_, call in pairs):
                message = replace(message, tool_calls=tuple(replace(call, id=id_) for id_, call in pairs))
            yield message
        else:
            yield message


def _own_id(id_: str, form: IdForm, taken: set[str]) -> str:
    made, attempt = safe_id(id_, form), 0
    while made in taken:
        attempt += 1
        made = safe_id(f"{id_}\0{attempt}", form)
    taken.add(made)
    return made


# Images -----------------------------------------------------------------------------------------------------


def _described(message: Message) -> Message:
    """*message* with a line of text in the place of each image."""
    if not message.images:
        return message
    lines = [f"[an image ({image.media_type}), which this model cannot see]" for image in message.images]
    return replace(message, text="\n".join([*([message.text] if message.text else []), *lines]), images=())


def _images_after_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Images of results in a user's message after them: a result is plain text for most servers."""
    images: list[Image] = []
    for message in messages:
        if images and message.role != "tool":
            yield _shown(images)
            images = []
        if message.role == "tool" and message.images:
            images += message.images
            message = replace(message, images=())
        yield message
    if images:
        yield _shown(images)


def _shown(images: Sequence[Image]) -> Message:
    return Message(role="user", text="What the tool results above show:", images=tuple(images))


def _joined(first: Message, second: Message) -> Message:
    text = "\n\n".join(text for text in (first.text, second.text) if text)
    return replace(
        second, text=text, images=first.images + second.images, tool_calls=first.tool_calls + second.tool_calls
    )
