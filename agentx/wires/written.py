"""What weak models and bare templates write into the text: their reasoning, and tool calls as plain JSON.

Pure functions of the text; seen on llama.cpp, vLLM and Ollama with small Qwen models, whose own templates
make them write `{"name": ..., "arguments": ...}` where a call was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

_OPEN, _CLOSE = "<think>", "</think>"
_LONE_CLOSE = re.compile(r"(?:\A|\n)[ \t]*</think>[ \t]*(?:\n|\Z)")
_WRAPPED = re.compile(
    r"\A\s*(?:```[a-z]*\s*\n(?P<fenced>.*?)\n?\s*```|<tool_call>(?P<tagged>.*?)(?:</tool_call>)?|(?P<bare>\{.*\}))\s*\Z",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Thought:
    reasoning: str
    text: str


def without_thought(text: str) -> Thought:
    """Takes a leading `<think>` block out of *text*; one that was never closed is all reasoning.

    A template may put the opening tag into the prompt: then a closing tag on a line of its own ends it.
    """
    start = text.lstrip()
    if start.startswith(_OPEN):
        reasoning, _, rest = start.removeprefix(_OPEN).partition(_CLOSE)
        return Thought(reasoning.strip(), rest.lstrip())
    if _OPEN not in text and (close := _LONE_CLOSE.search(text)):
        return Thought(text[: close.start()].strip(), text[close.end() :].lstrip())
    return Thought("", text)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """`arguments` is the text of one JSON object."""

    name: str
    arguments: str


def written_call(text: str, offered: Collection[str]) -> WrittenCall | None:
    """The tool call that *text* is: one JSON object, bare, fenced or tagged, with a name that was offered.

    Text around it, a second object or another key makes it ordinary text.
    """
    match = _WRAPPED.match(text)
    if match is None:
        return None
    try:
        value: Any = json.loads(next(group for group in match.groups() if group is not None))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    data = cast("dict[str, Any]", value)
    # Llama 3 says `parameters`.
    key = "parameters" if "parameters" in data else "arguments"
    name, arguments = data.get("name"), data.get(key)
    if data.keys() != {"name", key} or not isinstance(name, str) or name not in offered:
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if not isinstance(arguments, dict):
        return None
    return WrittenCall(name, json.dumps(arguments, ensure_ascii=False))
