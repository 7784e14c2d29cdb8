"""How each kind of server says a reply: as one body, or as the pieces of a stream.

A piece knows what it carries, so that a fault can break the stream at the right place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from agentx.testing.brain import Call, Said
from agentx.testing.counting import PER_MESSAGE, Json, count_text, head
from agentx.testing.faces import Face

PIECES = 12
"""Into how many pieces a text is cut at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Everything that stands in a reply. `prompt` None leaves the usage out; of it `cached` came from a cache.
    `number` makes ids unique."""

    face: Face
    native: bool
    model: str
    said: Said
    finish: Literal["stop", "tool_calls", "length"]
    prompt: int | None
    output: int
    number: int
    created: float
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """`begin` and `content` carry the reply, `finish` ends it, `last` is what comes after that."""

    kind: Literal["begin", "content", "finish", "last"]
    data: bytes


def output_tokens(said: Said) -> int:
    calls = sum(PER_MESSAGE + count_text(call.name) + count_text(call.text) for call in said.calls)
    return count_text(said.text or "") + count_text(said.reasoning) + calls + 1


def shortened(said: Said, tokens: int) -> Said:
    """*said* as it is when generation stops after *tokens* tokens: a text ends early, a call in its arguments."""
    text = head(said.text or "", tokens)
    left = max(0, tokens - count_text(text))
    calls: list[Call] = []
    for call in said.calls:
        if left <= PER_MESSAGE:
            break
        calls.append(Call(call.name, head(call.text, left - PER_MESSAGE)))
        left -= PER_MESSAGE + count_text(call.text)
    return replace(said, text=text, calls=tuple(calls))


def told_of(said: Said, limit: int | None, face: Face, native: bool, model: str, prompt: int | None) -> Told:
    """The reply, cut where it meets its limit."""
    output = output_tokens(said)
    finish: Literal["stop", "tool_calls", "length"] = "tool_calls" if said.calls else "stop"
    if limit is not None and output > limit:
        said, output, finish = shortened(said, limit), limit, "length"
    return Told(
        face=face,
        native=native,
        model=model,
        said=said,
        finish=finish,
        prompt=prompt,
        output=output,
        number=0,
        created=0.0,
    )


def whole(told: Told) -> Json:
    """The reply as one JSON body."""
    if told.native:
        return _line(told, _ollama_message(told, told.said.text or "", told.said.calls)) | _ollama_end(told)
    message: Json = {"role": "assistant", "content": told.said.text}
    if told.said.reasoning:
        message["reasoning_content"] = told.said.reasoning
    if told.said.calls:
        message["tool_calls"] = [_call(told, index, call) for index, call in enumerate(told.said.calls)]
    body = _head(told, "chat.completion")
    body["choices"] = [{"index": 0, "message": message, "finish_reason": told.finish}]
    if told.prompt is not None:
        body["usage"] = _usage(told, told.prompt)
        if told.face == "llamacpp":
            body["timings"] = _timings(told, told.prompt)
    return body


def pieces(told: Told, *, include_usage: bool) -> list[Piece]:
    """The reply as a stream: server-sent events, or Ollama's lines of JSON."""
    return _lines(told) if told.native else _events(told, include_usage)


def event(body: Any) -> bytes:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def json_line(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


def _events(told: Told, include_usage: bool) -> list[Piece]:
    made = [
        Piece("begin", _delta(told, {"role": "assistant", "content": None if told.face == "llamacpp" else ""}))
    ]
    deltas: list[Json] = [{"reasoning_content": text} for text in _cut(told.said.reasoning)]
    deltas += [{"content": text} for text in _cut(told.said.text or "")]
    for index, call in enumerate(told.said.calls):
        deltas += _call_deltas(told, index, call)
    made += [Piece("content", _delta(told, delta)) for delta in deltas]
    finish = _head(told, "chat.completion.chunk")
    finish["choices"] = [{"index": 0, "delta": {}, "finish_reason": told.finish}]
    if told.face == "llamacpp" and not include_usage and told.prompt is not None:
        finish["timings"] = _timings(told, told.prompt)
    made.append(Piece("finish", event(finish)))
    if include_usage and told.prompt is not None:
        last = _head(told, "chat.completion.chunk")
        last["choices"], last["usage"] = list[Json](), _usage(told, told.prompt)
        if told.face == "llamacpp":
            last["timings"] = _timings(told, told.prompt)
        made.append(Piece("last", event(last)))
    return [*made, Piece("last", event("[DONE]"))]


def _call_deltas(told: Told, index: int, call: Call) -> list[Json]:
    """Ollama sends a call whole; the others begin with its name and send the arguments in parts."""
    shape = _call(told, index, call)
    if told.face == "ollama":
        return [{"role": "assistant", "content": "", "tool_calls": [shape]}]
    start: Json = {**shape, "index": index, "function": {"name": call.name, "arguments": ""}}
    parts = [{"index": index, "function": {"arguments": text}} for text in _cut(call.text)]
    return [{"tool_calls": [delta]} for delta in [start, *parts]]


def _lines(told: Told) -> list[Piece]:
    texts = _cut(told.said.text or "")
    messages = [_ollama_message(told, text, (), thinking=False) for text in texts]
    if told.said.reasoning:
        messages.insert(0, {"role": "assistant", "content": "", "thinking": told.said.reasoning})
    if told.said.calls:
        messages.append(_ollama_message(told, "", told.said.calls, thinking=False))
    made = [Piece("content", json_line(_line(told, message) | {"done": False})) for message in messages]
    end = _line(told, {"role": "assistant", "content": ""}) | _ollama_end(told)
    return [*made, Piece("finish", json_line(end))]


def _ollama_message(told: Told, text: str, calls: Sequence[Call], *, thinking: bool = True) -> Json:
    message: Json = {"role": "assistant", "content": text}
    if thinking and told.said.reasoning:
        message["thinking"] = told.said.reasoning
    if calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": _object(call.arguments)}} for call in calls
        ]
    return message


def _object(arguments: Any) -> Any:
    """Ollama parses calls itself: what is no object stays the text that it is."""
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _line(told: Told, message: Json) -> Json:
    stamp = datetime.fromtimestamp(told.created, UTC).isoformat().replace("+00:00", "Z")
    return {"model": told.model, "created_at": stamp, "message": message}


def _ollama_end(told: Told) -> Json:
    end: Json = {"done": True, "done_reason": "length" if told.finish == "length" else "stop"}
    end |= {"total_duration": 302_703_716, "load_duration": 10_417_705}
    if told.prompt is not None:
        end |= {"prompt_eval_count": told.prompt, "prompt_eval_duration": 98_000_000}
        end |= {"eval_count": told.output, "eval_duration": 193_000_000}
    return end


def _head(told: Told, kind: str) -> Json:
    body: Json = {
        "id": f"chatcmpl-{told.number}",
        "object": kind,
        "created": int(told.created),
        "model": told.model,
    }
    prints = {"ollama": "fp_ollama", "llamacpp": "b1-7e4c0a9"}
    if mark := prints.get(told.face):
        body["system_fingerprint"] = mark
    return body


def _delta(told: Told, delta: Json) -> bytes:
    body = _head(told, "chat.completion.chunk")
    body["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
    return event(body)


def _call(told: Told, index: int, call: Call) -> Json:
    mark = hashlib.sha256(f"{told.number} {index} {call.name} {call.text}".encode()).hexdigest()[:8]
    shape: Json = {
        "id": f"call_{mark}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.text},
    }
    return shape | {"index": index} if told.face == "ollama" else shape


def _usage(told: Told, prompt: int) -> Json:
    usage: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": told.output,
        "total_tokens": prompt + told.output,
    }
    if told.face in ("openai", "llamacpp", "vllm"):
        usage["prompt_tokens_details"] = {"cached_tokens": told.cached}
    return usage


def _timings(told: Told, prompt: int) -> Json:
    return {"cache_n": 0, "prompt_n": prompt, "predicted_n": told.output}


def _cut(text: str) -> list[str]:
    """*text* in at most PIECES pieces of at least four characters."""
    size = max(4, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]
