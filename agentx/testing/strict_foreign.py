"""What Anthropic and Gemini refuse in a request of their own form, as pure functions of its body."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Sequence
from typing import cast

from agentx.testing.counting import Json
from agentx.testing.strict_form import objects, parts_of, walk

Issued = Collection[str]
"""Signatures that this server has given: a thought that is signed otherwise is another one's."""

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_UNKNOWN = ("$schema", "const", "additionalProperties", "$ref", "$defs")
GEMINI_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What Google documents for calls that another model made."""

# Anthropic --------------------------------------------------------------------------------------------------


def anthropic(body: Json, issued: Issued = ()) -> Iterator[str]:
    messages = objects(body.get("messages"))
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    if not messages or messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    marks = sum("cache_control" in part for _, part in walk(body))
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    open_: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(messages):
        where, blocks = f"messages.{place}", parts_of(message)
        if message["role"] not in ("user", "assistant"):
            yield f"{where}.role: Input should be 'user' or 'assistant'"
        for key in message.keys() - {"role", "content"}:
            yield f"{where}.{key}: Extra inputs are not permitted"
        if not blocks:
            what = "all messages must have non-empty content except for the optional final assistant message"
            yield f"{where}: {what}"
        yield from _results(where, blocks, open_)
        open_ = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        for number, block in enumerate(blocks):
            yield from _block(f"{where}.content.{number}", block, seen, issued)
    if open_:
        yield _unanswered(f"messages.{len(messages) - 1}", open_)
    if messages and messages[-1]["role"] == "assistant":
        last = str(parts_of(messages[-1])[-1].get("text", "")) if parts_of(messages[-1]) else ""
        if last != last.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"
    for number, tool in enumerate(objects(body.get("tools"))):
        if cast(Json, tool.get("input_schema") or {}).get("type") != "object":
            yield f"tools.{number}.custom.input_schema.type: Input should be 'object'"


def _results(where: str, blocks: Sequence[Json], open_: Sequence[str]) -> Iterator[str]:
    answered = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
    for number, id_ in enumerate(answered):
        if id_ not in open_:
            yield (
                f"{where}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    if left := [id_ for id_ in open_ if id_ not in answered]:
        yield _unanswered(where, left)
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        yield f"{where}: `tool_result` blocks must come before all other content"


def _unanswered(where: str, ids: Sequence[str]) -> str:
    return (
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _block(where: str, block: Json, seen: set[str], issued: Issued) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"]:
            yield f"{where}: text content blocks must be non-empty"
        case "text" if not block["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"
        case "tool_use":
            if not _ANTHROPIC_ID.fullmatch(block["id"]):
                yield f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            if block["id"] in seen:
                yield f"{where}: `tool_use` ids must be unique"
            seen.add(block["id"])
        case "thinking" if "signature" not in block:
            yield f"{where}.thinking.signature: Field required"
        case "thinking" if block["signature"] not in issued:
            yield f"{where}: Invalid `signature` in `thinking` block"
        case "redacted_thinking" if block.get("data") not in issued:
            yield f"{where}: Invalid `data` in `redacted_thinking` block"
        case _:
            pass


# Gemini -----------------------------------------------------------------------------------------------------


def gemini(body: Json, issued: Issued = ()) -> Iterator[str]:
    contents = objects(body.get("contents"))
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
    before: Json = {}
    for place, content in enumerate(contents):
        if content.get("role") not in ("user", "model", "function"):
            yield "Please use a valid role: user, model."
        parts = objects(content.get("parts"))
        if not parts:
            yield f"* GenerateContentRequest.contents[{place}].parts: contents.parts must not be empty."
        calls = [part for part in objects(before.get("parts")) if "functionCall" in part]
        results = [part for part in parts if "functionResponse" in part]
        if len(calls) != len(results):
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if any("functionCall" in part for part in parts):
            if before.get("role") not in ("user", "function"):
                yield (
                    "Please ensure that function call turn comes immediately after a user turn or after a "
                    "function response turn."
                )
            yield from _signature(parts, issued)
        before = content
    for number, (where, schema) in enumerate(_gemini_schemas(body)):
        for path, part in walk(schema):
            for key in _GEMINI_UNKNOWN:
                if key in part and not path.endswith("/properties"):
                    at = f"tools[0].function_declarations[{number}].{where}"
                    yield f"Invalid JSON payload received. Unknown name \"{key}\" at '{at}': Cannot find field."
            if str(part.get("type")).lower() == "array" and "items" not in part:
                at = f"GenerateContentRequest.tools[0].function_declarations[{number}].{where}"
                yield f"* {at}{path.replace('/', '.')}.items: missing field."


def _signature(parts: Sequence[Json], issued: Issued) -> Iterator[str]:
    """The first call of each step must carry its thought's signature; parallel ones need none."""
    first = next(part for part in parts if "functionCall" in part)
    signature = first.get("thoughtSignature") or first.get("thought_signature")
    if not signature:
        yield (
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
            "work correctly, and missing thought_signature may lead to degraded model performance."
        )
    elif signature not in (*issued, *GEMINI_PLACEHOLDERS, *map(_encoded, GEMINI_PLACEHOLDERS)):
        yield "Thought signature is not valid."


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _gemini_schemas(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in objects(body.get("tools")):
        for declared in objects(tool.get("functionDeclarations") or tool.get("function_declarations")):
            if schema := declared.get("parameters"):
                yield "parameters", cast(Json, schema)
