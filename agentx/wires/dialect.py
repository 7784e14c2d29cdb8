"""The canonical messages in the words of a provider. The same messages always give the same bytes.

Nothing is changed in place: what one provider needs never reaches the next one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentx.config.links import Provider
from agentx.wires.cache import marked_messages
from agentx.wires.families import cache_style
from agentx.wires.messages import Image, Message, Request, Tool, ToolCall
from agentx.wires.rendered import Json, Rendered

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def openai_body(request: Request, provider: Provider, rendered: Rendered) -> bytes:
    """A chat completion that is streamed. *rendered* keeps what the next one can be made of."""
    messages = openai_messages(request.messages, mistral=is_mistral(provider), rendered=rendered)
    if (style := cache_style(provider, request.model)) is not None:
        messages = marked_messages(messages, style)
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = openai_tools(request.tools)
    if request.max_tokens is not None:
        body[provider.output_field] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    body["stream"] = True
    if provider.stream_usage:
        body["stream_options"] = {"include_usage": True}
    apply_changes(body, request)
    return rendered.body(body)


def ollama_body(request: Request, rendered: Rendered) -> bytes:
    """A native chat that is streamed and may not be truncated in silence. *rendered* as in `openai_body`.

    `shift` is left alone: another value than the loaded one makes Ollama load the model again.
    """
    body: dict[str, Any] = {"model": request.model, "messages": ollama_messages(request.messages, rendered)}
    if request.tools:
        body["tools"] = openai_tools(request.tools)
    options: dict[str, Any] = {}
    if request.num_ctx is not None:
        options["num_ctx"] = request.num_ctx
    if request.max_tokens is not None:
        options["num_predict"] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    return rendered.body({**body, "stream": True, "truncate": False, "options": options})


def is_mistral(provider: Provider) -> bool:
    """Whether the provider wants Mistral's ids and order of roles."""
    return provider.card == "mistral" or "mistral.ai" in (provider.base_url or "")


def apply_changes(parameters: dict[str, Any], request: Request) -> None:
    """Rename or leave out what the model of *request* refuses."""
    for name, new in request.changes.items():
        value = parameters.pop(name, None)
        if new is not None and value is not None:
            parameters[new] = value


def openai_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def openai_messages(
    messages: Sequence[Message], *, mistral: bool = False, rendered: Rendered | None = None
) -> list[Json]:
    """Messages of a chat completion. Tool results are plain text, since many servers take nothing else."""
    one: Callable[[Message], Json] = _mistral_message if mistral else _openai_message
    in_order = arranged(messages)
    made = list(map(one, in_order)) if rendered is None else rendered.each(one, one, in_order)
    return _mistral_order(made) if mistral else made


def _mistral_order(messages: Sequence[Json]) -> list[Json]:
    """Mistral refuses a user's message right after a tool's result."""
    ordered: list[Json] = []
    for message in messages:
        if message["role"] == "user" and ordered and ordered[-1]["role"] == "tool":
            ordered.append({"role": "assistant", "content": "Noted."})
        ordered.append(message)
    return ordered


def _mistral_message(message: Message) -> Json:
    return _openai_message(message, mistral=True)


def _openai_message(message: Message, *, mistral: bool = False) -> Json:
    if message.role == "tool":
        id_ = safe_id(message.tool_call_id or "", mistral=mistral)
        return {"role": "tool", "tool_call_id": id_, "content": message.text}
    if message.images:
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
        parts += [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in message.images]
        return {"role": message.role, "content": parts}
    # Never null: llama-cpp-python refuses it beside tool calls.
    rendered: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        rendered["tool_calls"] = [
            {
                "id": safe_id(call.id, mistral=mistral),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for call in message.tool_calls
        ]
    return rendered


def ollama_messages(messages: Sequence[Message], rendered: Rendered | None = None) -> list[Json]:
    """Messages of Ollama's own chat: arguments are objects, images bare base64, results name their tool."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    in_order = [_named(message, names) for message in arranged(messages)]
    if rendered is None:
        return list(map(_ollama_message, in_order))
    return rendered.each(_ollama_message, _ollama_message, in_order)


def _named(message: Message, names: Mapping[str, str]) -> Message:
    """A tool's result with the name of its tool."""
    if message.role != "tool" or message.name or not (name := names.get(message.tool_call_id or "")):
        return message
    return replace(message, name=name)


def _ollama_message(message: Message) -> Json:
    made: Json = {"role": message.role, "content": message.text}
    if message.images:
        made["images"] = [image.data for image in message.images]
    if message.tool_calls:
        made["tool_calls"] = [
            {"function": {"name": call.name, "arguments": _object(call)}} for call in message.tool_calls
        ]
    if message.role == "tool" and message.name:
        made["tool_name"] = message.name
    return made


def _object(call: ToolCall) -> dict[str, Any]:
    try:
        return call.parsed()
    except ValueError:  # not ours: every reply is checked; a journal from elsewhere may hold it
        return {"arguments": call.arguments}


def arranged(messages: Sequence[Message]) -> list[Message]:
    """The messages in an order that strict templates take: never two of the user in a row, nothing empty from
    the assistant, images of tool results in a user's message after them."""
    kept: list[Message] = []
    for message in _images_after_results(messages):
        if message.role == "assistant" and not message.text and not message.tool_calls:
            continue
        if kept and message.role == kept[-1].role and message.role in ("user", "system"):
            kept[-1] = _joined(kept[-1], message)
        else:
            kept.append(message)
    return kept


def _images_after_results(messages: Sequence[Message]) -> Iterator[Message]:
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
    return replace(first, text=text, images=first.images + second.images)


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}"


def safe_id(id_: str, *, mistral: bool = False) -> str:
    """The id of a tool call in a form that the provider takes; one that fits is left as it is.

    By hash, never by cutting: the first letters of many ids are all the same. Mistral: exactly nine letters or
    digits. Elsewhere: at most 64 of `A-Z a-z 0-9 _ -` (Anthropic's rule, which satisfies OpenAI's).
    """
    if (_MISTRAL_ID if mistral else _PLAIN_ID).fullmatch(id_):
        return id_
    digest = hashlib.sha256(id_.encode("utf-8", "replace"))
    if not mistral:
        return f"call_{digest.hexdigest()[:32]}"
    number = int.from_bytes(digest.digest())
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(9))
