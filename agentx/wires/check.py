"""Is this a reply at all? A 200 is not a success: what is empty, cut in a call or filtered is asked again."""

from __future__ import annotations

from agentx.errors import ErrorClass, RequestFailed
from agentx.wires.gather import is_object
from agentx.wires.messages import Reply

CUT = ("length", "window")


def check(reply: Reply) -> None:
    """Raises RequestFailed (phase `reply`) for what must not be committed.

    `empty_reply`: neither text nor tool calls. `invalid_reply`: a tool call without a name, with arguments
    that are not one JSON object, or with an id that another call of the reply has. `content_filter`: the
    provider held the reply back. Text that was cut at a length limit is a reply; the caller sees its `finish`.
    """
    message = reply.message
    if reply.finish == "content_filter":
        raise _refused(reply, "content_filter", "the provider's content filter ended the reply")
    if not message.tool_calls and not message.text.strip():
        what = "reasoning and no answer" if message.reasoning.strip() else "an empty reply"
        if reply.finish in CUT:
            what += ", cut at its length limit"
        raise _refused(reply, "empty_reply", what)
    if reply.finish == "tool_calls" and not message.tool_calls:
        raise _refused(reply, "invalid_reply", "a tool call was announced and none came")
    ids: set[str] = set()
    for call in message.tool_calls:
        if not call.name:
            raise _refused(reply, "invalid_reply", "a tool call without a name", call.arguments)
        if not is_object(call.arguments):
            cut = " (cut at the length limit)" if reply.finish in CUT else ""
            what = f"the arguments of `{call.name}` are not one JSON object{cut}"
            raise _refused(reply, "invalid_reply", what, call.arguments)
        if not call.id or call.id in ids:
            raise _refused(reply, "invalid_reply", f"the id `{call.id}` of a tool call is not its own")
        ids.add(call.id)


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
