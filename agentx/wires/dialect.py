"""The canonical messages in the words of a provider. The same messages always give the same bytes.

Nothing is changed in place: what one provider needs never reaches the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentx.config.links import Provider
from agentx.wires.arrange import arranged, safe_id
from agentx.wires.cache import marked_messages
from agentx.wires.families import PLAIN, Dialect, dialect_of
from agentx.wires.messages import Image, Message, Request, Tool, ToolCall
from agentx.wires.rendered import Json, Rendered
from agentx.wires.schemas import Schemas, cleaned

GOOGLES_PLACEHOLDER = "skip_thought_signature_validator"
"""What Google documents for a call that another model made (ai.google.dev, thought signatures)."""
NO_THOUGHT = " "
"""Stands for the reasoning of another model. Moonshot refuses an empty one (charmbracelet/crush#2696)."""


def openai_body(request: Request, provider: Provider, rendered: Rendered) -> bytes:
    """A chat completion that is streamed. *rendered* keeps what the next one can be made of."""
    dialect = dialect_of(provider, request.model, images=request.shows_images)
    messages = openai_messages(request.messages, dialect, rendered)
    if dialect.cache is not None:
        messages = marked_messages(messages, dialect.cache)
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = rendered.once(
            "tools", dialect.schemas, lambda: openai_tools(request.tools, dialect.schemas), request.tools
        )
    if request.max_tokens is not None:
        body[dialect.output_field] = request.max_tokens
    if request.temperature is not None and dialect.temperature:
        body["temperature"] = request.temperature
    body["stream"] = True
    if provider.stream_usage:
        body["stream_options"] = {"include_usage": True}
    apply_changes(body, request)
    return rendered.body(body)


def ollama_body(request: Request, provider: Provider, rendered: Rendered) -> bytes:
    """A native chat that is streamed and may not be truncated in silence. *rendered* as in `openai_body`.

    `shift` is left alone: another value than the loaded one makes Ollama load the model again.
    """
    dialect = dialect_of(provider, request.model, images=request.shows_images)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": ollama_messages(request.messages, dialect, rendered),
    }
    if request.tools:
        body["tools"] = rendered.once(
            "tools", dialect.schemas, lambda: openai_tools(request.tools, dialect.schemas), request.tools
        )
    options: dict[str, Any] = {}
    if request.num_ctx is not None:
        options["num_ctx"] = request.num_ctx
    if request.max_tokens is not None:
        options["num_predict"] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    return rendered.body({**body, "stream": True, "truncate": False, "options": options})


def apply_changes(parameters: dict[str, Any], request: Request) -> None:
    """Rename or leave out what the model of *request* refuses."""
    for name, new in request.changes.items():
        value = parameters.pop(name, None)
        if new is not None and value is not None:
            parameters[new] = value


def openai_tools(tools: Sequence[Tool], schemas: Schemas = "whole") -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": cleaned(tool.parameters, schemas),
            },
        }
        for tool in tools
    ]


def openai_messages(
    messages: Sequence[Message], dialect: Dialect = PLAIN, rendered: Rendered | None = None
) -> list[Json]:
    """Messages of a chat completion. Tool results are plain text, since many servers take nothing else."""

    def one(message: Message) -> Json:
        return openai_message(message, dialect)

    in_order = arranged(messages, dialect.order)
    return list(map(one, in_order)) if rendered is None else rendered.each(dialect, one, in_order)


def openai_message(message: Message, dialect: Dialect) -> Json:
    """One message, of which nothing but itself and *dialect* is needed."""
    if message.role == "tool":
        id_ = safe_id(message.tool_call_id or "", dialect.order.ids)
        return {"role": "tool", "tool_call_id": id_, "content": message.text}
    if message.images:
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
        parts += [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in message.images]
        return {"role": message.role, "content": parts}
    # Else never null: llama-cpp-python refuses it beside tool calls.
    content = None if dialect.null_content and not message.text else message.text
    rendered: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "assistant":
        rendered |= _thoughts(message, dialect)
    if message.tool_calls:
        rendered["tool_calls"] = [
            _call(call, dialect, first=place == 0, own=message.issuer == dialect.issuer)
            for place, call in enumerate(message.tool_calls)
        ]
    return rendered


def _thoughts(message: Message, dialect: Dialect) -> dict[str, Any]:
    """The model's own reasoning, for the endpoint that made it. Never that of another one."""
    own = bool(message.issuer) and message.issuer == dialect.issuer
    match dialect.thoughts:
        case "text":
            return {"reasoning_content": message.reasoning if own and message.reasoning else NO_THOUGHT}
        case "details" if own and message.sealed:
            return {"reasoning_details": json.loads(message.sealed)}
        case "blocks" if own and message.sealed:
            return {"thinking_blocks": json.loads(message.sealed)}
        case _:
            return {}


def _call(call: ToolCall, dialect: Dialect, *, first: bool, own: bool) -> dict[str, Any]:
    rendered: dict[str, Any] = {
        "id": safe_id(call.id, dialect.order.ids),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }
    signature = call.signature if own else ""
    if dialect.signatures == "litellm" and signature:  # it fills in the placeholder by itself
        rendered["provider_specific_fields"] = {"thought_signature": signature}
    if dialect.signatures == "google" and (signature or first):
        signed = {"thought_signature": signature or GOOGLES_PLACEHOLDER}
        rendered["extra_content"] = {"google": signed}
    return rendered


def ollama_messages(
    messages: Sequence[Message], dialect: Dialect = PLAIN, rendered: Rendered | None = None
) -> list[Json]:
    """Messages of Ollama's own chat: arguments are objects, images bare base64, results name their tool and stand
    in the order of the calls, since nothing else pairs them."""
    in_order = arranged(messages, dialect.order)
    if rendered is None:
        return list(map(ollama_message, in_order))
    return rendered.each(ollama_message, ollama_message, in_order)


def ollama_message(message: Message) -> Json:
    rendered: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.images:
        rendered["images"] = [image.data for image in message.images]
    if message.tool_calls:
        rendered["tool_calls"] = [
            {"function": {"name": call.name, "arguments": _object(call)}} for call in message.tool_calls
        ]
    if message.role == "tool" and message.name:
        rendered["tool_name"] = message.name
    return rendered


def _object(call: ToolCall) -> dict[str, Any]:
    try:
        return call.parsed()
    except (ValueError, RecursionError):  # not ours: every reply is checked; a journal from elsewhere may hold it
        return {"arguments": call.arguments}


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}"
