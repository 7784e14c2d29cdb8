"""A model server on a real socket whose window, manners and faults are chosen, and which keeps a log.

It speaks like an OpenAI-style service, Ollama, LM Studio, llama.cpp, vLLM, SGLang, TGI or KoboldCpp; what it
answers comes from a *brain*, which is shown only what the server kept of the conversation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, cast

from agentx.testing import refusals
from agentx.testing.brain import Brain, Said, ScriptOver
from agentx.testing.counting import Json, count_prompt, normal
from agentx.testing.door import Asked, Door
from agentx.testing.faces import Answer, Face, Facts, about
from agentx.testing.faults import (
    CutReply,
    FakeUsage,
    Fault,
    Instead,
    Refused,
    Schedule,
    Slow,
    TlsCut,
    Unreachable,
    Unresolvable,
    healthy,
)
from agentx.testing.keeping import Overflow, keep
from agentx.testing.plans import Plan, answered, instead, plain, spoiled
from agentx.testing.replies import told_of

Claim = int | Literal["true", "absent"]
OPENAI_CHAT = ("/v1/chat/completions", "/chat/completions")
OLLAMA_CHAT = "/api/chat"
OPEN_WITHOUT_KEY = ("/health", "/v1/models", "/models")
"""What llama.cpp (b10434) answers without its key."""
NOBODY = "nobody.invalid"
"""A name that no DNS may ever know (RFC 6761)."""


def says_hello(_messages: Sequence[Json], _tools: Sequence[Json]) -> Said:
    return Said("Hello.")


@dataclass(slots=True)
class Seen:
    """One request in the log. It stands there from the moment it came; what follows is filled in as it happens.

    `chat` is its number among the chat requests, from 1. `kept` is what the brain was shown, `prompt_tokens`
    their count, `dropped` how many messages the brain did not see. `gone`: the client left before the end.
    """

    time: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    chat: int | None = None
    fault: Fault | None = None
    kept: tuple[Json, ...] | None = None
    prompt_tokens: int | None = None
    dropped: int = 0
    window: int | None = None
    status: int | None = None
    answer: str = ""
    done: bool = False
    gone: bool = False


class FaultServer:
    """Use it with `with`. `window` is what it really keeps and may be changed while it runs.

    `claims` is the window that its lists name: `true` (the real one), `absent`, or another number.
    `trained` is what its cards say the model was trained for. `overflow`: see `keeping.Overflow`.
    `schedule` gives the faults of chat requests by their number, `list_fault` one for all other routes;
    `unreachable` keeps every request away.
    Only for the Ollama face: `modelfile` is a `num_ctx` in the model's file, `honours_num_ctx` and
    `honours_truncate` whether the request's own settings count (`/v1` ignores both always).
    Only for Ollama and LM Studio: `loaded` says whether the model is in memory before the first chat.
    """

    def __init__(
        self,
        brain: Brain = says_hello,
        *,
        face: Face = "openai",
        models: Sequence[str] = ("scripted",),
        window: int = 32_768,
        claims: Claim = "true",
        trained: int = 131_072,
        overflow: Overflow = "refuse",
        schedule: Schedule = healthy,
        list_fault: Instead | Slow | None = None,
        unreachable: Unreachable | None = None,
        key: str | None = None,
        modelfile: int | None = None,
        honours_num_ctx: bool = True,
        honours_truncate: bool = False,
        loaded: bool = False,
        port: int = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.brain = brain
        self.face: Face = face
        self.models = tuple(models)
        self.window = window
        self.claims = claims
        self.trained = trained
        self.overflow: Overflow = overflow
        self.schedule = schedule
        self.list_fault = list_fault
        self.key = key
        self.modelfile = modelfile
        self.honours_num_ctx = honours_num_ctx
        self.honours_truncate = honours_truncate
        self.loaded = loaded
        self.loads: list[int] = []
        """Each window that the model was loaded with, in order: a second entry is a reload."""
        self._now = now
        self._lock = threading.RLock()
        self._log: list[Seen] = []
        self.unreachable = unreachable
        deaf = isinstance(unreachable, Refused | Unresolvable)
        self._door = Door(self._site, port, "deaf" if deaf else "cuts" if unreachable else "talks")
        self.port = self._door.port

    def __enter__(self) -> Self:
        self._door.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.close()

    @property
    def url(self) -> str:
        """The root of the server; OpenAI-style clients want `v1`."""
        host = NOBODY if isinstance(self.unreachable, Unresolvable) else "127.0.0.1"
        return f"{'https' if isinstance(self.unreachable, TlsCut) else 'http'}://{host}:{self.port}"

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"

    @property
    def connections(self) -> int:
        """How many there were so far. What nobody listens for, nobody counts."""
        return self._door.accepted

    @property
    def requests(self) -> list[Seen]:
        """Every request so far, in the order in which they came."""
        with self._lock:
            return list(self._log)

    @property
    def chats(self) -> list[Seen]:
        """Only the chat requests."""
        return [seen for seen in self.requests if seen.chat is not None]

    def _site(self, asked: Asked) -> tuple[Plan, Callable[[bool], None]]:
        with self._lock:
            seen = Seen(self._now(), asked.method, asked.path, asked.headers, asked.body)
            if asked.method == "POST" and self._is_chat(asked.path):
                seen.chat = 1 + sum(1 for other in self._log if other.chat is not None)
            self._log.append(seen)
            plan = self._plan(seen)
            seen.status, seen.answer = plan.status, plan.text

        def done(gone: bool) -> None:
            with self._lock:
                seen.done, seen.gone = True, gone

        return plan, done

    def _is_chat(self, path: str) -> bool:
        return path in OPENAI_CHAT or (self.face == "ollama" and path == OLLAMA_CHAT)

    def _plan(self, seen: Seen) -> Plan:
        body = _object(seen.body)
        if self.key is not None and not self._has_key(seen):
            return plain(refusals.wrong_key(self.face))
        if seen.chat is not None:
            return self._chat(seen, body, seen.chat)
        if self.list_fault is not None and not isinstance(self.list_fault, Slow):
            return instead(self.list_fault, self.face, native=False, stream=False, now=self._now())
        answer = about(self._facts(), seen.method, seen.path, body) or self._no_such_route(seen)
        delay = 0.0 if self.list_fault is None else self.list_fault.seconds
        return replace(plain(answer), delay=delay)

    def _has_key(self, seen: Seen) -> bool:
        if self.face == "llamacpp" and seen.path in OPEN_WITHOUT_KEY:
            return True
        return seen.headers.get("authorization") == f"Bearer {self.key}"

    def _no_such_route(self, seen: Seen) -> Answer:
        """LM Studio says 200 to everything that it does not know."""
        if self.face == "lmstudio":
            return Answer(200, {"error": f"Unexpected endpoint or method. ({seen.method} {seen.path})"})
        if self.face == "ollama":
            return Answer(404, "404 page not found")
        if self.face == "vllm":
            return Answer(404, {"detail": "Not Found"})
        return refusals.failure(self.face, False, 404, "File Not Found", "not_found_error")

    def _facts(self, window: int | None = None) -> Facts:
        if self.face == "ollama":
            window = window or (self.loads[-1] if self.loads else self.modelfile)
        window = window or self.window
        claim = {"true": window, "absent": None}[self.claims] if isinstance(self.claims, str) else self.claims
        return Facts(
            face=self.face,
            models=self.models,
            window=window,
            claim=claim,
            trained=self.trained,
            modelfile=self.modelfile,
            loaded=self.loaded,
            created=int(self._now()),
        )

    def _chat(self, seen: Seen, body: Json, number: int) -> Plan:
        native = seen.path == OLLAMA_CHAT
        stream = bool(body.get("stream", native))
        fault = seen.fault = self.schedule(number)
        if fault is not None and isinstance(fault, Instead):
            return instead(fault, self.face, native=native, stream=stream, now=self._now())
        model = str(body.get("model", ""))
        if not self._facts().knows(model):
            return plain(refusals.unknown_model(self.face, native, model))
        window = self._load(body, native)
        facts = self._facts(window)
        messages, tools = normal(body.get("messages") or []), list[Json](body.get("tools") or [])
        asked = _asked_output(body, native)
        refusal = self._refusal(facts, body, native, count_prompt(messages, tools), asked)
        kept = None if refusal else keep(messages, tools, window, self.overflow)
        seen.window = window
        if refusal is not None or kept is None:
            return plain(refusal or refusals.overflow(facts, native, count_prompt(messages, tools)))
        seen.kept, seen.prompt_tokens, seen.dropped = kept.messages, kept.tokens, kept.dropped
        try:
            said = spoiled(self.brain(kept.messages, tools), fault, tools)
        except ScriptOver as error:
            return plain(refusals.failure(self.face, native, 500, str(error)))
        room = window - kept.tokens if self.overflow in ("refuse", "refuse_total") else None
        cut = fault.tokens if isinstance(fault, CutReply) else None
        limit = min((value for value in (asked, room, cut) if value is not None), default=None)
        usage = fault.prompt_tokens if isinstance(fault, FakeUsage) else kept.tokens
        told = told_of(said, None if limit is None else max(1, limit), self.face, native, model, usage)
        include_usage = bool(_object(body.get("stream_options")).get("include_usage"))
        cached = fault.cached if isinstance(fault, FakeUsage) else 0
        told = replace(told, number=number, created=self._now(), cached=cached)
        return answered(told, fault, stream=stream, include_usage=include_usage)

    def _load(self, body: Json, native: bool) -> int:
        """The window of this request. Ollama loads the model anew when the asked one differs."""
        window = self.window
        if self.face == "ollama":
            asked = _options(body).get("num_ctx") if native and self.honours_num_ctx else None
            window = min(int(asked or self.modelfile or self.window), self.trained)
        if not self.loads or self.loads[-1] != window:
            self.loads.append(window)
        self.loaded = True
        return window

    def _refusal(self, facts: Facts, body: Json, native: bool, prompt: int, asked: int | None) -> Answer | None:
        """What is refused before anything is cut."""
        if self.face == "vllm" and asked is not None and asked > facts.window:
            field = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
            return refusals.output_too_large(facts, field, asked)
        wants_error = native and self.honours_truncate and body.get("truncate") is False
        if wants_error and prompt > facts.window:
            return refusals.overflow(facts, native, prompt)
        total = self.overflow == "refuse_total" and asked is not None and prompt + asked > facts.window
        return (
            refusals.total_overflow(facts, native, prompt, asked or 0) if total and prompt < facts.window else None
        )


def _asked_output(body: Json, native: bool) -> int | None:
    """The output that the request allows, None where it sets no limit."""
    if native:
        asked = _options(body).get("num_predict")
    else:
        asked = body.get("max_completion_tokens", body.get("max_tokens"))
    return int(asked) if asked is not None and int(asked) >= 0 else None


def _options(body: Json) -> Json:
    return _object(body.get("options"))


def _object(value: Any) -> Json:
    """*value* when it is a JSON object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}
