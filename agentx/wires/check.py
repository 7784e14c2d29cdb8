"""Is this a reply at all? A 200 is not a success: what is empty, cut in a call or filtered is asked again."""

from __future__ import annotations

from dataclasses import replace

from agentx.errors import ErrorClass, RequestFailed
from agentx.wires.gather import is_object
from agentx.wires.messages import Reply, Request

CUT = ("length", "window")
SHORT_OF = 100
"""A text that is cut with less than this part of what it was allowed, and of the window, was not cut by either."""


def check(reply: Reply) -> None:
    """Raises RequestFailed (phase `reply`) for what must not be committed.

    `empty_reply`: neither text nor tool calls. `invalid_reply`: a tool call without a name, with arguments
    that are not one JSON object, or with an id that another call of the reply has. `cut`: the length limit came
    while a call was being written, or before anything but reasoning. `content_filter`: the provider held the reply
    back. Text that was cut at a length limit is a reply; the caller sees its `finish`.
    """
    message, cut = reply.message, reply.finish in CUT
    if reply.finish == "content_filter":
        raise _refused(reply, "content_filter", "the provider's content filter ended the reply")
    if not message.tool_calls and not message.text.strip():
        what = "reasoning and no answer" if message.reasoning.strip() else "an empty reply"
        if cut:
            raise _refused(reply, "cut", f"{what}, cut {_length(reply)}")
        raise _refused(reply, "empty_reply", what)
    if reply.finish == "tool_calls" and not message.tool_calls:
        raise _refused(reply, "invalid_reply", "a tool call was announced and none came")
    ids: set[str] = set()
    for call in message.tool_calls:
        begun = call is message.tool_calls[-1] and call.arguments == "{}"  # nothing came after its name
        if cut and (begun or not call.name or not is_object(call.arguments)):
            raise _refused(reply, "cut", f"a call of `{call.name or '?'}` was cut {_length(reply)}")
        if not call.name:
            raise _refused(reply, "invalid_reply", "a tool call without a name", call.arguments)
        if not is_object(call.arguments):
            what = f"the arguments of `{call.name}` are not one JSON object"
            raise _refused(reply, "invalid_reply", what, call.arguments)
        if not call.id or call.id in ids:
            raise _refused(reply, "invalid_reply", f"the id `{call.id}` of a tool call is not its own")
        ids.add(call.id)


def check_length(reply: Reply, request: Request, window: int) -> None:
    """Raises RequestFailed (`invalid_reply`) for a text that was cut far short of what it was allowed, with room
    left in the *window*: a server that stops after a few tokens will do so again, and nobody can go on from there.
    """
    if reply.finish not in CUT or reply.usage is None or request.max_tokens is None:
        return
    used, output = reply.usage.input + reply.usage.output, reply.usage.output
    if output * SHORT_OF < request.max_tokens and used + request.max_tokens < window:
        what = f"cut after {output:,} tokens, with {request.max_tokens:,} allowed and room for them"
        raise _refused(reply, "invalid_reply", what)


def _length(reply: Reply) -> str:
    """Where it was cut."""
    limit = "the end of the window" if reply.finish == "window" else "its length limit"
    return f"at {limit}" + (f" after {reply.usage.output:,} tokens" if reply.usage else "")


def unended(reply: Reply) -> RequestFailed:
    """*reply* came without a reason for its end: nobody says that it is whole."""
    failed = _refused(reply, "invalid_reply", "no reason was given why the reply ended: it may be cut")
    return replace(failed, hint="if this server never gives one, set `gives_reason: false` at its provider")


def _refused(reply: Reply, error_class: ErrorClass, what: str, body: str = "") -> RequestFailed:
    return RequestFailed(
        message=f"{reply.model}: {what}",
        phase="reply",
        status=200,
        headers=reply.headers,
        body=body[: 64 * 1024],
        error_class=error_class,
        usage=reply.usage.to_json() if reply.usage else {},
    )
