"""What servers saw of a job: facts, overflows, tokens. Pure functions of their logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from agentx.testing.brain import text_of
from agentx.testing.counting import Json, count_text, normal
from agentx.testing.server import FaultServer, Seen
from longjob.job import EXAM, GROUPS, Group, LongJob
from longjob.model import known

Kind = Literal["turn", "summary", "probe"]
SMALLEST_ANSWER = 16
"""Tokens: who asks for no more only wants to know whether somebody is there, or what is counted."""


@dataclass(slots=True)
class Measured:
    """`kept` facts by group, those that the last request showed. Tokens are the servers' own count of prompts
    that were answered; `resent` of turns only."""

    kept: dict[Group, int] = field(default_factory=lambda: dict.fromkeys(GROUPS, 0))
    turns: int = 0
    overflows: int = 0
    sent: int = 0
    resent: int = 0
    summaries: int = 0
    summary_tokens: int = 0
    probes: int = 0
    largest: int = 0
    by_link: list[int] = field(default_factory=list[int])
    """Turns that each link answered."""

    @property
    def facts(self) -> int:
        return sum(self.kept.values())


def measured(servers: Sequence[FaultServer], job: LongJob) -> Measured:
    """What *servers*, the links of one chain in their order, saw of *job*."""
    found = Measured(by_link=[0] * len(servers))
    last: tuple[float, Seen] | None = None
    for index, server in enumerate(servers):
        cache = Cache()
        for seen in server.chats:
            if seen.kept is None or seen.prompt_tokens is None:
                found.overflows += seen.fault is None
                continue
            kind = kind_of(seen)
            found.sent += seen.prompt_tokens
            found.summaries += kind == "summary"
            found.summary_tokens += seen.prompt_tokens if kind == "summary" else 0
            found.probes += kind == "probe"
            if kind == "turn":
                found.turns += 1
                found.by_link[index] += 1
                found.largest = max(found.largest, seen.prompt_tokens)
                found.resent += cache.resent(seen)
                if last is None or seen.time > last[0]:
                    last = seen.time, seen
    if last is not None and last[1].kept and EXAM in last[1].kept[-1]["content"]:
        codes = known(text_of(last[1].kept))
        for fact in job.facts:
            found.kept[fact.group] += codes.get(fact.name) == fact.code
    return found


def answered(server: FaultServer) -> int:
    """How many turns *server* has answered so far."""
    return sum(seen.kept is not None and kind_of(seen) == "turn" for seen in server.chats)


def kind_of(seen: Seen) -> Kind:
    asked = seen.body.get("max_completion_tokens", seen.body.get("max_tokens"))
    if asked is not None and asked <= SMALLEST_ANSWER:
        return "probe"
    return "turn" if seen.body.get("tools") else "summary"


class Cache:
    """What a provider has cached of one conversation: the request before, line by line."""

    def __init__(self) -> None:
        self._before: list[str] = []

    def resent(self, seen: Seen) -> int:
        """The tokens of lines that the request before had, too, but that stand behind the place where this one
        begins to differ from it."""
        lines, before = lines_of(seen.body), self._before
        self._before = lines
        same = next((n for n, pair in enumerate(zip(lines, before, strict=False)) if pair[0] != pair[1]), None)
        if same is None:
            return 0
        there = set(before)
        return sum(_tokens(line) for line in lines[same:] if line in there)


def lines_of(body: Mapping[str, Any]) -> list[str]:
    """A request as a template would write it: the tools, then each message, then its calls."""
    lines = [json.dumps(tool) for tool in body.get("tools") or ()]
    for message in normal(body["messages"]):
        lines += [f"<{message['role']}>", *message["content"].splitlines(), *map(_written, calls_of(message))]
    return lines


def calls_of(message: Json) -> Sequence[Json]:
    return message.get("tool_calls", ())


def _written(call: Json) -> str:
    return f"{call['function']['name']} {call['function']['arguments']}"


@lru_cache(maxsize=100_000)
def _tokens(line: str) -> int:
    return count_text(line)
