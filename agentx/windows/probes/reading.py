"""What a probe is: the questions it puts to a server, and a pure reader of the answers.

A probe only ever reads. None loads, unloads or reloads a model: no `?model=` on a llama.cpp router, no LM Studio
load route, no request to a model (facts: windows, trap 2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agentx.config.links import Link
from agentx.windows.record import believable

Table = dict[str, Any]
Kind = Literal["served", "listed"]
VERSIONS = re.compile(r"/(openai/v1|v1beta/openai|v1beta|engines(/[^/]+)?/v1|api/v1|v1|api)$")
"""How base addresses end: with OpenAI's version, Gemini's, Docker's engine, Lemonade's, or Ollama's."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One cheap question. `body` is the JSON text of a POST, None for a GET; `headers` are extra ones."""

    url: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """How the question is called in details: `GET /v1/models`."""
        path = "/" + self.url.split("://", 1)[-1].partition("/")[2].partition("?")[0]
        return f"{'GET' if self.body is None else 'POST'} {path}"


def post(url: str, body: Mapping[str, Any]) -> Ask:
    return Ask(url, json.dumps(body, sort_keys=True))


class Answers:
    """The answers that came, by question. A question that got no JSON, or no 2xx, has no answer here."""

    def __init__(self, answers: Mapping[Ask, Any]) -> None:
        self._answers = answers

    def has(self, ask: Ask) -> bool:
        return ask in self._answers

    def table(self, ask: Ask) -> Table | None:
        """The answer when it is a JSON object."""
        value = self._answers.get(ask)
        return cast("Table", value) if isinstance(value, dict) else None

    def any(self, ask: Ask) -> Any:
        return self._answers.get(ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a server said of one model; all numbers are tokens.

    `default` is what it will serve when a request asks for nothing (Ollama's Modelfile). `refused` has a line for
    each number that stood there and is no window.
    """

    kind: Kind
    detail: str
    served: int | None = None
    trained: int | None = None
    prompt: int | None = None
    output: int | None = None
    default: int | None = None
    shared: bool = True
    refused: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Something that budgets can be made from."""
        return bool(self.served or self.prompt)


def no_more(_link: Link, _answers: Answers) -> tuple[Ask, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Probe:
    """`read` gives None when the answers are not those of this kind of server.

    `owners` is what such a server writes under `owned_by` in its list of models, where that tells it from others.
    `more` are questions that are only worth asking after the answers to `asks`: old routes, slower ones.
    """

    name: str
    asks: Callable[[Link], tuple[Ask, ...]]
    read: Callable[[Link, Answers], Reading | None]
    owners: tuple[str, ...] = ()
    more: Callable[[Link, Answers], tuple[Ask, ...]] = no_more


@dataclass(slots=True)
class Numbers:
    """Takes numbers out of an answer and remembers those that are no windows."""

    refused: list[str] = field(default_factory=list[str])

    def take(self, where: str, value: Any) -> int | None:
        """*value* as tokens, None when it is absent or not believable."""
        good = believable(value)
        if good is None and value is not None:
            self.refused.append(f"{where} is {_shown(value)}: not a window")
        return good


def _shown(value: Any) -> str:
    """A list or table may be as long and as deep as it likes: only that it is one is said."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    return json.dumps(value[:40] if isinstance(value, str) else value)[:40]


def root(base_url: str) -> str:
    """The address without its version: what a server's own routes are appended to."""
    return VERSIONS.sub("", base_url.rstrip("/")).rstrip("/")


def address(link: Link, default: str = "") -> str:
    return (link.provider.base_url or default).rstrip("/")


def dig(entry: Any, path: str) -> Any:
    """The value at a dotted *path* of nested objects, None where it ends early."""
    for name in path.split("."):
        if not isinstance(entry, dict):
            return None
        entry = cast("Table", entry).get(name)
    return entry


def rows(value: Any, *names: str) -> list[Table]:
    """The list of objects under one of *names*, or *value* itself when it is a bare list."""
    found: Any = value
    if isinstance(value, dict):
        table = cast("Table", value)
        found = next((table[name] for name in names if isinstance(table.get(name), list)), None)
    if not isinstance(found, list):
        return []
    return [cast("Table", item) for item in cast("list[Any]", found) if isinstance(item, dict)]


def by_id(entries: list[Table], model: str, *fields: str) -> Table | None:
    """The entry whose *fields* (by default `id`) name *model*: exactly, else without regard to case."""
    for fold in (str, str.casefold):
        wanted = fold(model)
        for entry in entries:
            names: list[Any] = [entry.get(name) for name in (fields or ("id",))]
            aliases = entry.get("aliases")
            names += cast("list[Any]", aliases) if isinstance(aliases, list) else []
            if any(isinstance(name, str) and fold(name) == wanted for name in names):
                return entry
    return None


def lists(link: Link) -> Ask:
    """The OpenAI-style list of models. One's own server may be named without the `/v1` that its list needs."""
    base = address(link)
    if link.provider.self_hosted and not base.endswith("/v1"):
        base = f"{root(base)}/v1"
    return Ask(f"{base}/models")
