"""Readers of one answer: bytes of a chat completion or of Ollama's chat, into what was gathered. No network."""

from __future__ import annotations

import json
from typing import Any, cast

from agentx.wires.finish import finish_of
from agentx.wires.gather import Gathered, Hear, PartialCall, objects
from agentx.wires.messages import Usage
from agentx.wires.stream import Event, Events, Lines, looks_like_events
from agentx.wires.transport import Broken, excerpt

_BLANK = b" \t\r\n\xef\xbb\xbf"
_START = 8
"""Bytes that tell a stream of events from a plain answer."""
PIECE = 256
"""Bytes of a plain answer that count as content: one that drips byte by byte has stalled."""


class ChatReader:
    """A chat completion, streamed or not: a server may answer with plain JSON though a stream was asked for."""

    def __init__(self, hear: Hear | None = None) -> None:
        self.gathered = Gathered(hear=hear)
        self.ended = False
        self.streaming = True
        self._events = Events()
        self._body: list[bytes] = []
        self._start = b""
        self._decided = False
        self._unheard = 0

    @property
    def whole(self) -> bool:
        return self.ended or self.gathered.finish is not None

    def feed(self, data: bytes) -> bool:
        if not self._decided:
            data = self._start = (self._start + data).lstrip(_BLANK)
            if len(data) < _START:
                return False
            self._decide()
        if not self.streaming:
            self._body.append(data)
            self._unheard += len(data)
            if self._unheard < PIECE:
                return False
            self._unheard = 0
            return True
        return sum(self._event(event) for event in self._events.feed(data)) > 0

    def close(self) -> None:
        if not self._decided and self._start:
            self._decide()
            self.feed(self._start)
        if self.streaming:
            for event in self._events.close():
                self._event(event)
        else:
            self._plain(b"".join(self._body).decode("utf-8", "replace"))
        if not self.whole:
            came = self.gathered.text or self.gathered.reasoning or self.gathered.calls
            when = "in the middle of the reply" if came else "before anything came"
            raise Broken(f"the stream ended {when}")

    def _decide(self) -> None:
        self._decided = True
        self.streaming = looks_like_events(self._start)

    def _event(self, event: Event) -> bool:
        if event.data.strip() == "[DONE]":
            self.ended = True
            return False
        if self.ended:
            return False
        if event.kind == "error":
            raise Broken(f"an error in place of a reply: {excerpt(event.data)}", event.data)
        try:
            chunk = json.loads(event.data)
        except (ValueError, RecursionError) as error:
            raise Broken(f"a piece of the stream is not JSON: {excerpt(event.data, 80)}", event.data) from error
        return self.gathered.add(cast("dict[str, Any]", chunk)) if isinstance(chunk, dict) else False

    def _plain(self, body: str) -> None:
        try:
            # A blank line and `data: [DONE]` may follow an error that was written without its field's name.
            answer, _ = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError) as error:
            what = "HTML" if body.lower().startswith(("<!doctype", "<html", "<")) else "no JSON"
            raise Broken(f"answered 200 with {what}: {excerpt(body, 80)}", body, phase="body") from error
        if isinstance(answer, list):  # Gemini's compatible route wraps errors so
            answer = cast("list[Any]", answer)[0] if answer else None
        if not isinstance(answer, dict):
            raise Broken("answered 200 with JSON that is no reply", body, phase="body")
        try:
            self.gathered.add(cast("dict[str, Any]", answer))
        except Broken as error:
            raise Broken(error.what, body, phase="body") from error
        if not self.gathered.chose and "choices" not in answer:
            raise Broken("answered 200 with JSON that is no reply", body, phase="body")
        self.ended = True


class OllamaReader:
    """Ollama's chat: one JSON object a line, the last with `done`."""

    def __init__(self, hear: Hear | None = None) -> None:
        self.gathered = Gathered(hear=hear)
        self.ended = False
        self.streaming = True
        self._lines = Lines()

    @property
    def whole(self) -> bool:
        return self.ended

    def feed(self, data: bytes) -> bool:
        return sum(self._line(line) for line in self._lines.feed(data)) > 0

    def close(self) -> None:
        for line in self._lines.close():
            self._line(line)
        if not self.ended:
            came = self.gathered.text or self.gathered.reasoning or self.gathered.calls
            raise Broken(f"the stream ended {'in the middle of the reply' if came else 'before anything came'}")

    def _line(self, line: str) -> bool:
        if not line.strip() or self.ended:
            return False
        try:
            piece: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Broken(f"a line of the answer is not JSON: {excerpt(line, 80)}", line, phase="body") from error
        if not isinstance(piece, dict):
            raise Broken("answered 200 with JSON that is no reply", line, phase="body")
        return self._piece(cast("dict[str, Any]", piece))

    def _piece(self, piece: dict[str, Any]) -> bool:
        if piece.get("error"):
            body = inner_error(json.dumps(piece, ensure_ascii=False))
            raise Broken(f"an error in place of a reply: {excerpt(body)}", body)
        message: Any = piece.get("message") or {}
        calls: Any = cast("dict[str, Any]", message).get("tool_calls") or [] if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(calls, list):
            body = json.dumps(piece, ensure_ascii=False)
            raise Broken("answered 200 with JSON that is no reply", body, phase="body")
        message = cast("dict[str, Any]", message)
        heard = self.gathered.add(
            {
                "model": piece.get("model"),
                "truncated": piece.get("truncated"),
                "choices": [{"delta": {"content": message.get("content"), "reasoning": message.get("thinking")}}],
            }
        )
        for call in cast("list[Any]", calls):
            self.gathered.calls.append(_ollama_call(call))
            heard = True
        if piece.get("done") is True:
            self.ended = True
            self.gathered.finish = finish_of(str(piece.get("done_reason") or "stop"))
            self.gathered.usage = _ollama_usage(piece)
        return heard


def _ollama_call(call: Any) -> PartialCall:
    """A call always comes whole; old servers give it no id. What is no call has no name, and is refused so."""
    whole = (objects(call) or [{}])[0]
    function = (objects(whole.get("function")) or [{}])[0]
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return PartialCall(id=str(whole.get("id") or ""), name=str(function.get("name") or ""), arguments=[text])


def _ollama_usage(piece: dict[str, Any]) -> Usage | None:
    """None without a prompt count: old servers leave it out when the prompt was in their cache."""
    prompt, output = piece.get("prompt_eval_count"), piece.get("eval_count")
    if not isinstance(prompt, int) or prompt <= 0:
        return None
    return Usage(input=prompt, output=output if isinstance(output, int) else 0)


def inner_error(body: str) -> str:
    """The JSON inside `{"error": "<JSON text>"}`, as Ollama passes on what its runner said; else *body*."""
    try:
        inner = json.loads(body)["error"]
        return inner if isinstance(json.loads(inner), dict) else body
    except (ValueError, KeyError, TypeError, RecursionError):
        return body
