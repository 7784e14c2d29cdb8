"""Strict servers: what each provider refuses in a request, as pure functions of its body.

A check gives complaints in the provider's own words, none for a body that is taken. Gathered from refusals that
users reported; a rule stands here only if some real server has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, cast

from agentx.testing.counting import Json
from agentx.testing.faces import Answer
from agentx.testing.strict_foreign import Issued, anthropic, gemini
from agentx.testing.strict_form import objects, walk

Strict = Literal["openai", "anthropic", "gemini", "mistral", "deepseek", "moonshot", "ollama", "text_only"]

_PARAMETERS_OF_REASONING = re.compile(r"(?:^|/)(?:o[1-9]|gpt-5)(?!.*chat)", re.IGNORECASE)
_MISTRAL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_OPENAI_KEYS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call"}
)


def complaints(strict: Strict, body: Json, issued: Issued = ()) -> list[str]:
    """What the server says against *body*, nothing for one that it takes."""
    if strict == "anthropic":
        return list(anthropic(body, issued))
    if strict == "gemini":
        return list(gemini(body, issued))
    return list(_CHECKS[strict](body))


def refusal(strict: Strict, complaint: str) -> Answer:
    """The 400 of that provider."""
    if strict == "anthropic":
        return Answer(400, {"type": "error", "error": {"type": "invalid_request_error", "message": complaint}})
    if strict == "gemini":
        return Answer(400, {"error": {"code": 400, "message": complaint, "status": "INVALID_ARGUMENT"}})
    if strict == "mistral":
        code = "3280" if complaint.startswith("Tool call id") else "3230"
        kind = "invalid_function_call" if code == "3280" else "invalid_request_message_order"
        return Answer(400, {"object": "error", "message": complaint, "type": kind, "param": None, "code": code})
    if strict == "ollama":
        return Answer(400, {"error": complaint})
    error = {"message": complaint, "type": "invalid_request_error", "param": None, "code": None}
    return Answer(400, {"error": error})


# OpenAI's form ----------------------------------------------------------------------------------------------


def openai(body: Json) -> Iterator[str]:
    yield from _paired(body)
    for place, message in enumerate(_messages(body)):
        for key in message.keys() - _OPENAI_KEYS:
            yield f"Unrecognized request argument supplied: messages[{place}].{key}"
        for number, id_ in enumerate(_ids(message)):
            if len(id_) > 64:
                yield (
                    f"Invalid 'messages[{place}].tool_calls[{number}].id': string too long. Expected a string "
                    f"with maximum length 64, but instead got a string with length {len(id_)} instead."
                )
        if message["role"] != "user" and _images(message):
            yield (
                f"Invalid 'messages[{place}]'. Image URLs are only allowed for messages with role 'user', but "
                f"this message with role '{message['role']}' contains an image URL."
            )
        if message.get("content") is None and not message.get("tool_calls"):
            yield f"Invalid value for 'content': expected a string, got null. (messages[{place}])"
    for name, schema in _schemas(body):
        for path, part in walk(schema):
            if part.get("type") == "array" and "items" not in part:
                yield f"Invalid schema for function '{name}': In context={path}, array schema missing items."
    if _PARAMETERS_OF_REASONING.search(str(body.get("model"))):
        if "max_tokens" in body:
            yield (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead."
            )
        if body.get("temperature", 1) != 1:
            yield (
                f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. Only "
                "the default (1) value is supported."
            )
        if "parallel_tool_calls" in body:
            yield "Unsupported parameter: 'parallel_tool_calls' is not supported with this model."


def _paired(body: Json) -> Iterator[str]:
    """Calls and results of a chat completion belong together."""
    open_: list[str] = []
    for place, message in enumerate(_messages(body)):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{place}])"
                )
            else:
                open_.remove(str(message["tool_call_id"]))
            continue
        if open_:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_)}"
            )
        open_ = _ids(message)
        if len(set(open_)) < len(open_):
            yield f"Duplicate value for 'tool_call_id' in messages[{place}]"
    if open_:
        yield f"The following tool_call_ids did not have response messages: {', '.join(open_)}"


def mistral(body: Json) -> Iterator[str]:
    yield from _paired(body)
    before = ""
    for place, message in enumerate(_messages(body)):
        role = message["role"]
        for id_ in [*_ids(message), *([message["tool_call_id"]] if role == "tool" else [])]:
            if not _MISTRAL_ID.fullmatch(id_):
                yield f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of 9."
        if (before, role) in (("tool", "user"), ("user", "system"), ("assistant", "system"), ("tool", "system")):
            yield f"Unexpected role '{role}' after role '{before}'"
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield "Assistant message must have either content or tool_calls, but not none."
        for key in message.keys() - {"role", "content", "name", "tool_calls", "tool_call_id", "prefix"}:
            yield f"Extra inputs are not permitted: body.messages.{place}.{role}.{key}"
        before = role
    if before == "assistant":
        yield "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    if "stream_options" in body:
        yield "Extra inputs are not permitted: body.stream_options"


def deepseek(body: Json) -> Iterator[str]:
    yield from _paired(body)
    for message in _messages(body):
        if message["role"] == "assistant" and message.get("reasoning_content") is None:
            yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def moonshot(body: Json) -> Iterator[str]:
    yield from _paired(body)
    for place, message in enumerate(_messages(body)):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            yield (
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index "
                f"{place}"
            )
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield f"the message at position {place} with role 'assistant' must not be empty"


def text_only(body: Json) -> Iterator[str]:
    """A local server with a strict template and a model that sees no images."""
    before = ""
    yield from _paired(body)
    for message in _messages(body):
        role = message["role"]
        if _images(message):
            yield "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
        elif not isinstance(message.get("content"), str):
            yield "Failed to parse messages: content must be a string"
        if role == "system" and before:
            yield "System message must be at the beginning."
        if role == before and role in ("user", "assistant"):
            yield "Conversation roles must alternate user/assistant/user/assistant/..."
        before = role
    for _, schema in _schemas(body):
        for _, part in walk(schema):
            pattern = part.get("pattern", "^$")
            if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
                yield "Failed to parse grammar: Pattern must start with '^' and end with '$'"


def ollama(body: Json) -> Iterator[str]:
    field = "json: cannot unmarshal {} into Go struct field ChatRequest.messages.{} of type {}"
    for message in _messages(body):
        if not isinstance(message.get("content", ""), str):
            yield field.format("array", "content", "string")
        for call in objects(message.get("tool_calls")):
            if not isinstance(call["function"].get("arguments"), dict):
                kind = "api.ToolCallFunctionArguments"
                yield field.format("string", "tool_calls.function.arguments", kind)
        for image in cast("list[str]", message.get("images") or []):
            if not _BASE64.fullmatch(image):
                yield "illegal base64 data at input byte 4"
        if message["role"] == "tool" and not message.get("tool_name"):
            yield "a result must name its tool"


_CHECKS: Mapping[str, Callable[[Json], Iterator[str]]] = {
    "openai": openai,
    "mistral": mistral,
    "deepseek": deepseek,
    "moonshot": moonshot,
    "ollama": ollama,
    "text_only": text_only,
}


# Common -----------------------------------------------------------------------------------------------------


def _messages(body: Json) -> list[Json]:
    return objects(body.get("messages"))


def _ids(message: Json) -> list[str]:
    return [str(call.get("id", "")) for call in objects(message.get("tool_calls"))]


def _images(message: Json) -> bool:
    return any(part.get("type") == "image_url" for part in objects(message.get("content")))


def _schemas(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in objects(body.get("tools")):
        yield str(tool["function"]["name"]), cast(Json, tool["function"].get("parameters") or {})
