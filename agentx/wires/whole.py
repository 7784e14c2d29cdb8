"""From what was gathered to a reply: the last step of every wire, the same for all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentx.wires.check import check, unended
from agentx.wires.gather import Gathered, PartialCall
from agentx.wires.messages import Finish, Message, Reply, Request, ToolCall
from agentx.wires.written import without_thought, written_call

SIGNED = "__thought__"
"""LiteLLM writes a thought's signature behind this into the id of a call; it has a field of its own too."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the wire knows of the attempt. `issuer` is the identity of the link that is asked. `sent` is what was
    sent: call ids that the server did not give are made from it. `gives_reason`: without a reason for its end a
    reply is cut. `clamps_at_window`: this server cuts a reply short of `max_tokens` only at the window."""

    sent: bytes
    seconds: float
    headers: Mapping[str, str]
    issuer: str = ""
    gives_reason: bool = True
    clamps_at_window: bool = False


def whole_reply(gathered: Gathered, request: Request, facts: Facts) -> Reply:
    """The reply, checked. Raises RequestFailed (phase `reply`) when it is none."""
    thought = without_thought("".join(gathered.text))
    message = Message(
        role="assistant",
        text=thought.text,
        tool_calls=_with_ids(gathered.calls, facts.sent),
        reasoning="".join(gathered.reasoning) or thought.reasoning,
    )
    sealed = _sealed(gathered)
    if message.reasoning or sealed or any(call.signature for call in message.tool_calls):
        message = replace(message, sealed=sealed, issuer=facts.issuer)
    if not message.tool_calls:
        message = _with_written_call(message, request, facts.sent)
    finish = _finish(gathered, message, request, facts)
    reply = Reply(
        message=message,
        finish=finish,
        usage=gathered.usage,
        model=gathered.model or request.model,
        seconds=facts.seconds,
        said_truncated=gathered.truncated and finish != "window",
        headers=facts.headers,
    )
    check(reply)
    if gathered.finish is None and facts.gives_reason:
        raise unended(reply)
    return reply


def _sealed(gathered: Gathered) -> str:
    """The thoughts that may go back; a block of Anthropic without its signature may not."""
    blocks = [block for block in gathered.sealed if block.get("type") != "thinking" or block.get("signature")]
    own = [
        {key: value for key, value in block.items() if key != "index"}
        if "thinking" in str(block.get("type"))
        else block
        for block in blocks
    ]
    return json.dumps(own, ensure_ascii=False, separators=(",", ":")) if own else ""


def _finish(gathered: Gathered, message: Message, request: Request, facts: Facts) -> Finish:
    finish = gathered.finish or "stop"
    if finish == "length" and _reached_window(gathered, request, facts):
        return "window"
    return "tool_calls" if finish == "stop" and message.tool_calls else finish


def _reached_window(gathered: Gathered, request: Request, facts: Facts) -> bool:
    usage = gathered.usage
    if usage is None:
        return gathered.truncated
    if request.num_ctx is not None and usage.input + usage.output >= request.num_ctx:
        return True
    if request.max_tokens is not None and usage.output >= request.max_tokens:
        return False
    # llama.cpp says `truncated` also when the reply, not the prompt, met the end of the window.
    return gathered.truncated or (facts.clamps_at_window and request.max_tokens is not None)


def _with_written_call(message: Message, request: Request, sent: bytes) -> Message:
    call = written_call(message.text, [tool.name for tool in request.tools])
    if call is None:
        return message
    made = PartialCall(name=call.name, arguments=[call.arguments])
    return replace(message, text="", tool_calls=_with_ids([made], sent))


def _with_ids(calls: Sequence[PartialCall], sent: bytes) -> tuple[ToolCall, ...]:
    """The calls with ids that are their own: one that is missing or given twice is made by hash."""
    made: list[ToolCall] = []
    taken: set[str] = set()
    for position, call in enumerate(calls):
        arguments = "".join(call.arguments).strip() or "{}"
        id_ = call.id.partition(SIGNED)[0]
        if not id_ or id_ in taken:
            seed = f"{position}\0{call.name}\0{arguments}".encode("utf-8", "replace")
            id_ = f"call_{hashlib.sha256(hashlib.sha256(sent).digest() + seed).hexdigest()[:16]}"
        taken.add(id_)
        made.append(ToolCall(id_, call.name, arguments, call.signature))
    return tuple(made)
