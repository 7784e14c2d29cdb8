"""A server that refuses what its provider would refuse: the fault server with a dialect's rules, and for Anthropic
and Gemini their own routes.

    with StrictServer("mistral", Script(["done"])) as server:
        ...  # point a client at server.url; server.complaints has every refusal
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agentx.testing.brain import Brain, Said
from agentx.testing.counting import Json
from agentx.testing.faults import Instead
from agentx.testing.plans import EVENTS, Plan, instead, plain
from agentx.testing.server import FaultServer, Seen, says_hello
from agentx.testing.strict import Strict, complaints, refusal
from agentx.testing.strict_form import objects, parts_of

ANTHROPIC_CHAT = "/v1/messages"
GEMINI_CHAT = re.compile(r"/v1(?:beta)?/models/[^/]+:(?:streamGenerateContent|generateContent)")


class StrictServer(FaultServer):
    """Use it with `with`. `issued` are the signatures that it has given and takes back: as Anthropic it signs
    every thought, as Gemini every call. `complaints` is everything that it had against a request."""

    def __init__(self, strict: Strict, brain: Brain = says_hello, **more: Any) -> None:
        super().__init__(brain, face="ollama" if strict == "ollama" else "openai", **more)
        self.strict: Strict = strict
        self.issued: list[str] = []
        self.complaints: list[str] = []

    def _is_chat(self, path: str) -> bool:
        if self.strict == "anthropic":
            return path == ANTHROPIC_CHAT
        if self.strict == "gemini":
            return GEMINI_CHAT.fullmatch(path) is not None
        return super()._is_chat(path)

    def _chat(self, seen: Seen, body: Json, number: int) -> Plan:
        fault = self.schedule(number)
        if fault is None or not isinstance(fault, Instead):
            found = complaints(self.strict, body, self.issued)
            self.complaints += found
            if found:
                return plain(refusal(self.strict, found[0]))
        if self.strict not in ("anthropic", "gemini"):
            return super()._chat(seen, body, number)
        seen.fault = fault
        if fault is not None and isinstance(fault, Instead):
            return instead(fault, self.face, native=False, stream=True, now=self._now())
        anthropic = self.strict == "anthropic"
        said = self.brain(_of_anthropic(body) if anthropic else _of_gemini(body), objects(body.get("tools")))
        signature = f"c2lnbmVk{number:04}"  # base64, since Gemini's is decoded
        if said.reasoning or not anthropic:
            self.issued.append(signature)
        pieces = _anthropic(said, signature, number) if anthropic else _gemini(said, signature)
        data = tuple(
            f"{f'event: {name}' if name else ''}\ndata: {json.dumps(piece)}\n\n".encode() for name, piece in pieces
        )
        return Plan(status=200, headers={"content-type": EVENTS}, pieces=data)


def _of_anthropic(body: Json) -> list[Json]:
    """What the brain is shown: texts and results, in the normal form."""
    shown: list[Json] = []
    for message in objects(body.get("messages")):
        for block in parts_of(message):
            if block["type"] == "tool_result":
                shown.append({"role": "tool", "content": str(block.get("content", ""))})
            elif block["type"] == "text":
                shown.append({"role": message["role"], "content": block["text"]})
    return shown


def _of_gemini(body: Json) -> list[Json]:
    shown: list[Json] = []
    for content in objects(body.get("contents")):
        for part in objects(content.get("parts")):
            role = "assistant" if content["role"] == "model" else "user"
            shown.append({"role": role, "content": str(part.get("text", ""))})
    return shown


def _anthropic(said: Said, signature: str, number: int) -> Iterator[tuple[str, Json]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    head: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "scripted",
    }
    blocks: list[tuple[Json, list[Json]]] = []
    if said.reasoning:
        thought: list[Json] = [
            {"type": "thinking_delta", "thinking": said.reasoning},
            {"type": "signature_delta", "signature": signature},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, thought))
    if said.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": said.text}]))
    for place, call in enumerate(said.calls):
        use: Json = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": call.name, "input": {}}
        blocks.append((use, [{"type": "input_json_delta", "partial_json": call.text}]))
    yield "message_start", {"type": "message_start", "message": {**head, "usage": usage}}
    for index, (start, deltas) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": "tool_use" if said.calls else "end_turn"}
    yield "message_delta", {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 20}}
    yield "message_stop", {"type": "message_stop"}


def _gemini(said: Said, signature: str) -> Iterator[tuple[str, Json]]:
    parts: list[Json] = [{"text": said.reasoning, "thought": True}] if said.reasoning else []
    parts += [{"text": said.text}] if said.text else []
    for place, call in enumerate(said.calls):
        signed = {"thoughtSignature": signature} if place == 0 else {}
        parts.append({"functionCall": {"name": call.name, "args": json.loads(call.text)}, **signed})
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    content = {"role": "model", "parts": parts}
    candidates = [{"content": content, "index": 0, "finishReason": "STOP"}]
    yield "", {"candidates": candidates, "usageMetadata": counts}  # its events have no name
