"""A conversation that a server calls malformed, in the strictest form that any server takes. Pure, on a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentx.wires.arrange import Order, arranged, safe_id
from agentx.wires.messages import Message

STRICTEST = Order(ids="mistral", user_after_tool=False)


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """*messages* with every call followed by its result and a result without its call told as text, no thought of
    any model, no role twice in a row, nothing empty, and ids of nine letters and digits. No text is lost."""
    return tuple(_with_short_ids(arranged([_without_thought(message) for message in messages], STRICTEST)))


def _without_thought(message: Message) -> Message:
    """Nothing that is signed or sealed: it may be another endpoint's, or have been changed on the way."""
    calls = tuple(replace(call, signature="") for call in message.tool_calls)
    return replace(message, reasoning="", sealed="", issuer="", tool_calls=calls)


def _with_short_ids(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        calls = tuple(replace(call, id=safe_id(call.id, "mistral")) for call in message.tool_calls)
        id_ = None if message.tool_call_id is None else safe_id(message.tool_call_id, "mistral")
        yield replace(message, tool_calls=calls, tool_call_id=id_)
