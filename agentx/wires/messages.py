"""The canonical form of what is said to a model and what it answers; every wire renders it in its own way.

A message is written once, kept in the journal as JSON, and never rewritten for the sake of one provider.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentx.events import Purpose

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "tool_calls", "length", "content_filter", "window"]
"""Why a reply ended. `window`: prompt and output together reached the window."""


@dataclass(frozen=True, slots=True)
class Image:
    """`data` is base64 without a prefix."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the text of one JSON object, byte-stable: it is sent again as it stands. `signature` is that
    of the thought behind it, for Gemini alone."""

    id: str
    name: str
    arguments: str
    signature: str = ""

    def parsed(self) -> dict[str, Any]:
        """The arguments as an object. Raises ValueError when they are none."""
        value = json.loads(self.arguments or "{}")
        if not isinstance(value, dict):
            raise ValueError("the arguments are not a JSON object")
        return value  # pyright: ignore[reportUnknownVariableType]  json gives Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. `reasoning` is kept apart from `text`; `sealed` is a JSON list, as text, of what only its maker
    can read: signed or encrypted thoughts. Both go back only to `issuer`, the identity of the link that made them.
    """

    role: Role
    text: str = ""
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str = ""
    sealed: str = ""
    issuer: str = ""
    link: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Only what is set, for the journal."""
        data: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.images:
            data["images"] = [[image.media_type, image.data] for image in self.images]
        if self.tool_calls:
            data["tool_calls"] = [
                [call.id, call.name, call.arguments, *([call.signature] if call.signature else [])]
                for call in self.tool_calls
            ]
        for key in ("tool_call_id", "name", "reasoning", "sealed", "issuer", "link"):
            if value := getattr(self, key):
                data[key] = value
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        return cls(
            role=data["role"],
            text=data.get("text", ""),
            images=tuple(Image(*image) for image in data.get("images", ())),
            tool_calls=tuple(ToolCall(*call) for call in data.get("tool_calls", ())),
            tool_call_id=data.get("tool_call_id"),
            name=data.get("name"),
            reasoning=data.get("reasoning", ""),
            sealed=data.get("sealed", ""),
            issuer=data.get("issuer", ""),
            link=data.get("link"),
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the model sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, normalised: `input` includes cached ones, `output` includes reasoning."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def to_json(self) -> dict[str, int]:
        return {key: getattr(self, key) for key in ("input", "output", "cache_read", "cache_write", "reasoning")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one link is asked. `max_tokens` None leaves it out; `num_ctx` is only for the `ollama` wire; `images`
    is false where it is known that the model sees none.

    `most_tokens` is what `max_tokens` may be raised to where it proves too small for a reply; None: no further.
    `estimate` is what the sender thinks the prompt holds, in tokens, before calibration; `threshold` is the size
    below which it keeps its requests to this link, None where it has none.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    max_tokens: int | None = None
    most_tokens: int | None = None
    temperature: float | None = None
    num_ctx: int | None = None
    purpose: Purpose = "turn"
    estimate: int = 0
    changes: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Parameters that this model wants under another name, or (None) not at all."""
    threshold: int | None = None
    images: bool = True

    @property
    def shows_images(self) -> bool:
        """Images go along as such: nobody knows, and the model did not say, that it sees none."""
        return self.images and self.changes.keys().isdisjoint(("images", "these images"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply: it was read to its terminal reason. `model` is the name the server gave.

    `said_truncated` is true when the server itself said that it cut the prompt.
    `headers` are those of the answer, with lower-case names.
    """

    message: Message
    finish: Finish
    usage: Usage | None
    model: str
    seconds: float
    said_truncated: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Timers:
    """Seconds. `connect`: until the connection stands. `headers`: until the answer begins, at most `first`; None
    for as long. `first`: from the start to the first content. `idle`: between two pieces of content (comments,
    blanks and empty deltas do not count). `total`: the whole attempt."""

    connect: float = 5.0
    headers: float | None = None
    first: float = 300.0
    idle: float = 120.0
    total: float = 3600.0


class Wire(Protocol):
    """A protocol, bound to one provider."""

    async def ask(self, request: Request, timers: Timers) -> Reply:
        """The whole reply, checked for completeness. Raises RequestFailed; never a half reply."""
        ...

    async def count(self, request: Request) -> int | None:
        """The prompt's tokens by the server's own counter; None where it has none or it does not answer.

        Never raises and never loads a model."""
        ...
