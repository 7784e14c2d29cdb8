"""What is done on the socket for one request, as a value: decided here, carried out by the door."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Literal

from agentx.testing.brain import Call, Said
from agentx.testing.counting import Json
from agentx.testing.faces import Answer, Face
from agentx.testing.faults import (
    RATE_LIMIT,
    Blanks,
    Broken,
    Close,
    CutStream,
    Drip,
    EmptyChoices,
    EmptyStream,
    ErrorIn200,
    ErrorInStream,
    Garbage200,
    HalfToolCall,
    Hang,
    HeadersThenHang,
    Html200,
    Instead,
    KeepaliveForever,
    NoDone,
    NoFinish,
    NullContent,
    ReasoningOnly,
    Reset,
    RetryOn,
    ShortBody,
    Slow,
    Stall,
    Status,
    Wrong,
)
from agentx.testing.refusals import failure
from agentx.testing.replies import Piece, Told, event, json_line, pieces, whole

JSON, EVENTS, LINES = "application/json; charset=utf-8", "text/event-stream", "application/x-ndjson"
PAGE = "<!doctype html><html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>"
REASONS = {
    401: "Invalid API Key",
    403: "You have no access to this model.",
    408: "Request timed out.",
    429: "Rate limit reached for requests.",
    500: "The server had an error while processing your request.",
    502: "Bad gateway.",
    503: "The model is overloaded. Please try again later.",
    529: "Overloaded",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`status` None sends nothing. A stream has `pieces` (chunked), anything else `body` with its length.

    `delay` seconds pass before the first byte, `drip` seconds before each byte. `then`: `end` properly, `break` or
    `reset` the connection, `hang` until the server closes, or `beat` for ever every `every` seconds.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    pieces: tuple[bytes, ...] | None = None
    delay: float = 0.0
    drip: float = 0.0
    then: Literal["end", "break", "reset", "hang", "beat"] = "end"
    beat: bytes = b""
    every: float = 0.02
    announced: int | None = None

    @property
    def text(self) -> str:
        """What the client is sent, as text."""
        return b"".join(self.pieces or (self.body,)).decode(errors="replace")


def plain(answer: Answer) -> Plan:
    """A whole answer, as it stands."""
    if isinstance(answer.body, str):
        kind, body = "text/plain; charset=utf-8", answer.body.encode()
    else:
        kind, body = JSON, json.dumps(answer.body, ensure_ascii=False).encode()
    return Plan(status=answer.status, headers={"content-type": kind} | dict(answer.headers or {}), body=body)


def instead(fault: Instead, face: Face, *, native: bool, stream: bool, now: float) -> Plan:
    """What comes instead of an answer."""
    kind = LINES if native else EVENTS
    match fault:
        case Status(status, headers, body):
            if isinstance(body, str):
                return plain(Answer(status, body, headers))
            said = failure(face, native, status, REASONS.get(status, "The request failed.")).body
            return plain(Answer(status, said if body is None else dict(body), headers))
        case RetryOn(seconds):
            return plain(Answer(429, RATE_LIMIT, {"retry-after": formatdate(now + seconds, usegmt=True)}))
        case Hang():
            return Plan(status=None, then="hang")
        case HeadersThenHang():
            return Plan(status=200, headers={"content-type": kind if stream else JSON}, pieces=(), then="hang")
        case Close():
            return Plan(status=None, then="break")
        case Reset():
            return Plan(status=None, then="reset")
        case Html200():
            return Plan(status=200, headers={"content-type": "text/html"}, body=PAGE.encode())
        case Garbage200():
            return Plan(status=200, headers={"content-type": JSON}, body=b'{"choices": [{"mess')
        case EmptyStream():
            return Plan(status=200, headers={"content-type": kind}, pieces=())
        case ErrorIn200(message, type_):
            body = _error(message, type_, native)
            if stream:
                data = json_line(body) if native else event(body)
                return Plan(status=200, headers={"content-type": kind}, pieces=(data,))
            return plain(Answer(200, body))


def spoiled(said: Said, fault: Wrong | Broken | None, tools: Sequence[Json]) -> Said:
    """*said* as a faulty model would have it; *tools* were offered."""
    match fault:
        case NullContent():
            return Said(None)
        case ReasoningOnly():
            return Said("", reasoning=said.reasoning or "Let me think about what to do next.")
        case HalfToolCall():
            if not said.calls:
                said = Said(calls=(Call(_first_name(tools), {"path": "notes/note-01.txt"}),))
            calls = tuple(replace(call, arguments=call.text[: len(call.text) // 2]) for call in said.calls)
            return replace(said, calls=calls)
        case _:
            return said


def _first_name(tools: Sequence[Json]) -> str:
    return tools[0]["function"]["name"] if tools else "read_file"


def answered(told: Told, fault: Wrong | Broken | None, *, stream: bool, include_usage: bool) -> Plan:
    """The reply on its way, broken as *fault* says."""
    delay = fault.seconds if isinstance(fault, Slow) else 0.0
    drip = fault.every if isinstance(fault, Drip) else 0.0
    if not stream or isinstance(fault, ShortBody):
        return replace(_one_body(told, fault), delay=delay, drip=drip)
    made = pieces(told, include_usage=include_usage)
    if isinstance(fault, EmptyChoices):
        made = [
            piece for piece in made if piece.kind in ("finish", "last") and (told.native or piece.kind == "last")
        ]
    kind = LINES if told.native else EVENTS
    return replace(_stream(told, made, fault), headers={"content-type": kind}, delay=delay, drip=drip)


def _one_body(told: Told, fault: Wrong | Broken | None) -> Plan:
    body = whole(told)
    if isinstance(fault, EmptyChoices):
        body |= {"message": {}} if told.native else {"choices": []}
    if isinstance(fault, ErrorInStream):
        return plain(Answer(500, _error(fault.message, fault.type, told.native)))
    plan = plain(Answer(200, body))
    if isinstance(fault, CutStream | ShortBody | NoFinish):
        return replace(plan, body=plan.body[: len(plan.body) // 2], announced=len(plan.body), then="break")
    if isinstance(fault, KeepaliveForever | Stall):
        return Plan(status=None, then="hang")
    if isinstance(fault, Blanks):  # as services do it that keep a slow plain answer alive
        headers = {"content-type": JSON}
        return Plan(status=200, headers=headers, pieces=(), then="beat", beat=b"\n", every=fault.every)
    return plan


def _stream(told: Told, made: Sequence[Piece], fault: Wrong | Broken | None) -> Plan:
    reply = [piece.data for piece in made if piece.kind in ("begin", "content")]
    match fault:
        case CutStream(count):
            return Plan(status=200, pieces=tuple(reply[:count]), then="break")
        case Stall(count):
            return Plan(status=200, pieces=tuple(reply[:count]), then="hang")
        case NoFinish():
            return Plan(status=200, pieces=tuple(reply))
        case NoDone():
            return Plan(status=200, pieces=tuple(piece.data for piece in made if piece.data != event("[DONE]")))
        case ErrorInStream(count, message, type_):
            body = _error(message, type_, told.native)
            data = json_line(body) if told.native else event(body)
            return Plan(status=200, pieces=(*reply[:count], data))
        case KeepaliveForever(count, every, kind):
            beat = _beat(told, kind)
            return Plan(status=200, pieces=tuple(reply[:count]), then="beat", beat=beat, every=every)
        case Blanks(count, every):
            beat = _beat(told, "empty", "  ")
            return Plan(status=200, pieces=tuple(reply[:count]), then="beat", beat=beat, every=every)
        case _:
            return Plan(status=200, pieces=tuple(piece.data for piece in made))


def _beat(told: Told, kind: Literal["comment", "empty"], text: str = "") -> bytes:
    """A sign of life; Ollama's lines know no comments."""
    if told.native:
        empty = {"model": told.model, "message": {"role": "assistant", "content": text}, "done": False}
        return json_line(empty)
    if kind == "comment":
        return b": keepalive\n\n"
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return event({"id": f"chatcmpl-{told.number}", "object": "chat.completion.chunk", "choices": [choice]})


def _error(message: str, kind: str, native: bool) -> dict[str, object]:
    return {"error": message if native else {"message": message, "type": kind, "param": None, "code": None}}
