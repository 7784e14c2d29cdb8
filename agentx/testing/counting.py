"""How the fault server counts tokens: simple, always the same, and near to what small real models count.

Measured against it: the 27-message conversation of 6,175 characters / 4 is 5,454 tokens for Qwen 2.5 on
llama.cpp and Ollama; here it is within a few per cent of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

Json = dict[str, Any]

TOKEN = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[!-/:-@\[-`{-~]{1,3}|[^\s!-~]")
PER_MESSAGE = 5
IMAGE = 768
"""What Ollama takes for an image, whatever its size."""


@lru_cache(maxsize=4096)
def count_text(text: str) -> int:
    """The tokens of *text*: up to seven letters, three digits, three ASCII signs, or one of any other sign."""
    return sum(1 for _ in TOKEN.finditer(text))


def tail(text: str, tokens: int) -> str:
    """The end of *text* that has *tokens* tokens; empty for none."""
    starts = [match.start() for match in TOKEN.finditer(text)]
    return text[starts[-tokens] :] if 0 < tokens <= len(starts) else text if tokens > 0 else ""


def head(text: str, tokens: int) -> str:
    """The beginning of *text* that has *tokens* tokens."""
    ends = [match.end() for match in TOKEN.finditer(text)]
    return text if tokens >= len(ends) else text[: ends[tokens - 1]] if tokens > 0 else ""


def count_message(message: Mapping[str, Any]) -> int:
    """One message in the normal form: its text, its images, its calls, and what surrounds it."""
    total = PER_MESSAGE + count_text(message["content"] or "") + IMAGE * message.get("images", 0)
    for call in message.get("tool_calls", ()):
        function = call["function"]
        total += PER_MESSAGE + count_text(function["name"]) + count_text(function["arguments"])
    return total


def count_prompt(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """What a request holds: messages and tool schemas."""
    schemas = count_text(json.dumps(list(tools))) if tools else 0
    return sum(map(count_message, messages)) + schemas


def normal(messages: Sequence[Mapping[str, Any]]) -> list[Json]:
    """*messages* of either protocol in one form: role, content (text), images (their number), tool_calls with
    arguments as text, tool_call_id, name."""
    return [_normal(message) for message in messages]


def _normal(message: Mapping[str, Any]) -> Json:
    content, images = message.get("content"), len(message.get("images") or ())
    if isinstance(content, list):
        parts = cast(list[Json], content)
        images += sum(1 for part in parts if part.get("type") != "text")
        content = "\n".join(part["text"] for part in parts if part.get("type") == "text")
    result: Json = {"role": message["role"], "content": content or ""}
    if images:
        result["images"] = images
    if calls := message.get("tool_calls"):
        result["tool_calls"] = [_normal_call(call) for call in calls]
    for key, also in (("tool_call_id", ""), ("name", "tool_name")):
        if value := message.get(key) or message.get(also):
            result[key] = value
    return result


def _normal_call(call: Mapping[str, Any]) -> Json:
    function = call["function"]
    arguments = function.get("arguments") or "{}"
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call.get("id", ""), "function": {"name": function["name"], "arguments": text}}
