"""Messages in OpenAI's chat form as a transcript, and back: what was not changed comes back as it was given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from agentx.context.index import ALL, result_lines
from agentx.context.items import Item, Kind, Transcript
from agentx.context.measure import message_tokens, text_tokens
from agentx.errors import UsageError
from agentx.wires.messages import Image, Message, ToolCall

Json = dict[str, Any]
KINDS: dict[str, Kind] = {"user": "user", "system": "user", "assistant": "assistant", "tool": "tool"}
DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
MARKED = re.compile(r"r(\d+)")


@dataclass(frozen=True, slots=True)
class Chat:
    """`system` are the messages before the conversation; the `seq` of an item is its place in the list, from 1."""

    given: Sequence[Mapping[str, Any]]
    system: int
    system_tokens: int
    transcript: Transcript


def chat_of(messages: Sequence[Mapping[str, Any]]) -> Chat:
    """*messages* as a transcript. Raises UsageError for what is no chat message."""
    read = [_message(place, given) for place, given in enumerate(messages, 1)]
    system = next((place for place, message in enumerate(read) if message.role != "system"), len(read))
    transcript = Transcript()
    task = False
    called: dict[str | None, str] = {}
    for place, message in enumerate(read[system:], system + 1):
        kind: Kind = KINDS[message.role]
        called |= {call.id: call.name for call in message.tool_calls}
        if kind == "tool" and not message.name:
            message = replace(message, name=called.get(message.tool_call_id))
        if kind == "user" and message.role == "user" and not task:
            kind, task = "task", True
        transcript.add(Item(place, kind, message, message_tokens(message)))
    return Chat(messages, system, sum(map(message_tokens, read[:system])), transcript)


def dicts_of(chat: Chat, shown: Iterable[Message] | None) -> list[Json]:
    """The messages *shown* (None: all) in the form in which they were given, the system prompt first."""
    if shown is None:
        return [dict(message) for message in chat.given]
    given = {id(item.message): chat.given[item.seq - 1] for item in chat.transcript.between(0)}
    before = [dict(message) for message in chat.given[: chat.system]]
    return before + [dict(given.get(id(message)) or _dict(message)) for message in shown]


def tokens_of_tools(tools: Sequence[Mapping[str, Any]]) -> int:
    """The plain estimate of *tools* as they stand in a request."""
    return sum(text_tokens(json.dumps(dict(tool), ensure_ascii=False, separators=(",", ":"))) for tool in tools)


def restore_tool_result(messages: Sequence[Mapping[str, Any]], id_: str) -> str:
    """The whole text that a marker or a note in a view stands for; *messages* are all that there are. The id
    `list` names all tool results with theirs.

    Raises UsageError when nothing has that id.
    """
    if id_ == ALL:
        return "\n".join(result_lines(chat_of(messages).transcript.between(0)))
    found = MARKED.fullmatch(id_)
    if not found or not 1 <= int(found[1]) <= len(messages):
        raise UsageError(f"nothing has the id `{id_}`", hint="ids look like `r12`")
    return _message(int(found[1]), messages[int(found[1]) - 1]).text


def _message(place: int, given: Mapping[str, Any]) -> Message:
    role = "system" if given.get("role") == "developer" else given.get("role")
    if role not in KINDS:
        raise UsageError(f"message {place}: its role is `{role}`", hint=f"known are {', '.join(KINDS)}")
    text, images = _content(place, given.get("content"))
    try:
        calls = tuple(
            ToolCall(*map(_is_text, (call["id"], call["function"]["name"], call["function"]["arguments"])))
            for call in given.get("tool_calls") or ()
        )
    except (KeyError, TypeError) as error:
        raise UsageError(f"message {place}: a tool call without id, name or arguments") from error
    return Message(
        role=cast(Any, role),
        text=text,
        images=images,
        tool_calls=calls,
        tool_call_id=given.get("tool_call_id"),
        name=given.get("name"),
    )


def _content(place: int, content: Any) -> tuple[str, tuple[Image, ...]]:
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, list):
        raise UsageError(f"message {place}: its content is neither text nor a list of parts")
    texts: list[str] = []
    images: list[Image] = []
    for part in cast("list[Any]", content):
        if not isinstance(part, Mapping):
            raise UsageError(f"message {place}: a part of its content is no object")
        part = cast("Mapping[str, Any]", part)
        if part.get("type") == "image_url":
            try:
                url = _is_text(part["image_url"]["url"])
            except (KeyError, TypeError) as error:
                raise UsageError(f"message {place}: an image without `image_url.url`") from error
            found = DATA_URL.fullmatch(url)
            images.append(Image(found[1], found[2]) if found else Image("", url))
        else:
            texts.append(str(part.get("text") or f"[a part of type {part.get('type')}]"))
    return "\n".join(texts), tuple(images)


def _is_text(value: Any) -> str:
    """*value*. Raises TypeError when it is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _dict(message: Message) -> Json:
    made: Json = {"role": message.role, "content": message.text}
    if message.images:
        parts = [{"type": "image_url", "image_url": {"url": _url(image)}} for image in message.images]
        made["content"] = [*([{"type": "text", "text": message.text}] if message.text else []), *parts]
    if message.tool_calls:
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    for key in ("tool_call_id", "name"):
        if value := getattr(message, key):
            made[key] = value
    return made


def _url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}" if image.media_type else image.data
