"""Puts a reply together from the pieces of a chat completion: chunks of a stream, or one whole answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from agentx.errors import RequestFailed
from agentx.wires.finish import BROKEN, finish_of
from agentx.wires.messages import Finish, Usage
from agentx.wires.transport import Broken, excerpt
from agentx.wires.usage import usage_of, usage_of_timings


@dataclass(slots=True)
class PartialCall:
    """A tool call while it comes in; `id` and `index` are what the server gave, which may be nothing."""

    id: str = ""
    index: int | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    signature: str = ""

    def complete(self) -> bool:
        return is_object("".join(self.arguments))


Hear = Callable[[str], object]
"""Hears the text of a reply while it comes, before anybody knows whether it will be one."""


@dataclass(slots=True)
class Gathered:
    """What has come so far. `finish` is None until the server said why it ended."""

    text: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    sealed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Thoughts in the form that their maker wants back: LiteLLM's `thinking_blocks`, OpenRouter's
    `reasoning_details`."""
    calls: list[PartialCall] = field(default_factory=list[PartialCall])
    finish: Finish | None = None
    usage: Usage | None = None
    model: str = ""
    truncated: bool = False
    chose: bool = False
    """A choice was seen, even an empty one."""
    hear: Hear | None = None

    def add(self, chunk: dict[str, Any]) -> bool:
        """Takes in one chunk; True when it held content. Raises Broken for an error in place of a chunk."""
        if error_in(chunk):
            body = json.dumps(chunk, ensure_ascii=False)
            raise Broken(f"an error in place of a reply: {excerpt(body)}", body)
        self.model = _text(chunk.get("model")) or self.model
        self.truncated = self.truncated or chunk.get("truncated") is True
        if isinstance(timings := chunk.get("timings"), dict):
            self.usage = usage_of_timings(cast("dict[str, Any]", timings)) or self.usage
        heard = False
        for choice in objects(chunk.get("choices"))[:1]:
            heard = self._choice(choice)
            self._usage(choice.get("usage"))  # Moonshot puts it here
        self._usage(chunk.get("usage"))
        return heard

    def _usage(self, reported: Any) -> None:
        if isinstance(reported, dict):
            self.usage = usage_of(cast("dict[str, Any]", reported)) or self.usage

    def _choice(self, choice: dict[str, Any]) -> bool:
        self.chose = True
        piece: Any = choice.get("delta") or choice.get("message")
        heard = self._piece(cast("dict[str, Any]", piece)) if isinstance(piece, dict) else False
        if reason := _text(choice.get("finish_reason")):
            if reason.lower() in BROKEN:
                body = json.dumps(choice, ensure_ascii=False)
                raise Broken(f"the server gave up on the reply (`{reason}`)", body)
            self.finish = finish_of(reason)
        return heard

    def _piece(self, piece: dict[str, Any]) -> bool:
        text, thought = _parts(piece.get("content"))
        text += _text(piece.get("refusal"))
        # Some servers send both names with the same text.
        thought = thought or _text(piece.get("reasoning_content")) or _text(piece.get("reasoning"))
        calls = objects(piece.get("tool_calls"))
        if isinstance(old := piece.get("function_call"), dict):
            calls.append({"index": 0, "function": old})
        if text:
            self.text.append(text)
            if self.hear is not None:
                self.hear(text)
        if thought:
            self.reasoning.append(thought)
        for block in objects(piece.get("thinking_blocks")) or objects(piece.get("reasoning_details")):
            self._seal(block)
        heard = [self._call(call) for call in calls]
        return bool(text.strip() or thought.strip() or any(heard))  # blanks alone are a stall

    def _call(self, piece: dict[str, Any]) -> bool:
        function = piece.get("function")
        named = cast("dict[str, Any]", function) if isinstance(function, dict) else piece
        id_, name, arguments = _text(piece.get("id")), _text(named.get("name")), named.get("arguments")
        index = piece.get("index")
        call = self._slot(index if isinstance(index, int) else None, id_, name)
        call.id = call.id or id_
        call.signature = call.signature or _signature(piece)
        fresh = name != call.name  # a name comes whole, again and again, or in pieces
        if fresh:
            call.name += name
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.arguments.append(_text(arguments))
        return bool((fresh and name) or _text(arguments).strip())

    def _seal(self, block: dict[str, Any]) -> None:
        """A piece of a thought: texts go on, a signature comes at the end."""
        last = self.sealed[-1] if self.sealed else {}
        if (last.get("type"), last.get("index")) != (block.get("type"), block.get("index")):
            self.sealed.append(dict(block))
            return
        for key, value in block.items():
            before = last.get(key)
            if key in _GROWING and isinstance(before, str) and isinstance(value, str):
                last[key] = before + value
            elif value is not None:
                last[key] = value

    def _slot(self, index: int | None, id_: str, name: str) -> PartialCall:
        """The call that a piece belongs to: by index, but a new id or a new name after whole arguments begins
        another one, since some servers give every call the index 0 or none."""
        same = [call for call in self.calls if index is None or call.index == index]
        if same:
            last = same[-1]
            known = next((call for call in same if id_ and call.id == id_), None)
            if known is not None:
                return known
            another = bool(id_ and last.id) or bool(name and last.complete())
            if not another:
                return last
        self.calls.append(PartialCall(index=index))
        return self.calls[-1]


@contextmanager
def counted(gathered: Gathered) -> Generator[None]:
    """A failure inside says what the server had counted before: it is paid for all the same."""
    try:
        yield
    except RequestFailed as error:
        if gathered.usage is not None:
            error.usage = gathered.usage.to_json()
        raise


_GROWING = ("thinking", "text", "summary")


def _signature(call: dict[str, Any]) -> str:
    """Of the thought behind a call of Gemini: LiteLLM's place for it, or Google's."""
    own: Any = call.get("provider_specific_fields")
    if not isinstance(own, dict):
        extra: Any = call.get("extra_content")
        own = cast("dict[str, Any]", extra).get("google") if isinstance(extra, dict) else None
    return _text(cast("dict[str, Any]", own).get("thought_signature")) if isinstance(own, dict) else ""


def error_in(chunk: dict[str, Any]) -> bool:
    """Whether a server wrote an error where a chunk should be (OpenAI's form, and old vLLM's flat one)."""
    return bool(chunk.get("error")) or chunk.get("object") == "error" or chunk.get("type") == "error"


def is_object(text: str) -> bool:
    """Whether *text* is one whole JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; one object alone counts as a list of one."""
    if isinstance(value, dict):
        return [cast("dict[str, Any]", value)]
    if isinstance(value, list):
        return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]
    return []


def _parts(content: Any) -> tuple[str, str]:
    """Text and reasoning of a content that is a string, or a list of parts (Mistral)."""
    if isinstance(content, str):
        return content, ""
    text, thought = "", ""
    for part in objects(content):
        text += _text(part.get("text"))
        inner = part.get("thinking")
        thought += _text(inner) if isinstance(inner, str) else _parts(inner)[0]
    return text, thought
