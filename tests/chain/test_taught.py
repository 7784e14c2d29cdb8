"""A card of one's own teaches agentx the words in which an unknown gateway refuses too long a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentx.chain.classify import classify
from agentx.chain.walk import Chain
from agentx.config.links import ErrorPattern, Link, Provider
from agentx.config.load import load
from agentx.config.paths import paths
from agentx.errors import RequestFailed
from agentx.testing import faults
from agentx.testing.server import FaultServer
from agentx.windows.registry import open_registry
from agentx.wires.make import wire_for
from agentx.wires.messages import Message, Request, Timers, Wire

CARD = """\
title: Acme gateway
wire: openai
base_url: {url}
api_key_env: ACME_API_KEY
errors:
  - {{match: 'conversation of (?P<actual>[\\d.]+) units is beyond the (?P<limit>[\\d.]+) units', means: overflow}}
  - {{match: 'reply_room: (?P<limit>\\d+)', means: output_cap}}
  - {{match: 'come back tomorrow', means: quota}}
"""
REFUSAL = {"problem": {"explanation": "a conversation of 9214 units is beyond the 8192 units of this desk"}}


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_refusal_in_words_that_only_the_users_card_knows_teaches_the_window(tmp_path: Path) -> None:
    """Over a real socket: refused, learned, asked again with less; another process knows it, too."""
    environ = {"AGENTX_HOME": str(tmp_path), "ACME_API_KEY": "k"}
    place = paths(environ)
    folder = place.config / "providers"
    folder.mkdir(parents=True)
    asked: list[int] = []

    async def run(url: str) -> tuple[int, str]:
        (folder / "acme.yaml").write_text(CARD.format(url=url))
        link = load(place, tmp_path, environ).link("acme/scripted")
        async with httpx.AsyncClient(trust_env=False) as client:
            registry = open_registry(client=client, paths=place, environ=environ)

            async def prepare(link: Link, reason: str) -> Request:
                size = min(9000, registry.window(link).size * 9 // 10)
                asked.append(size)
                return Request(
                    model=link.model, messages=[Message(role="user", text="hello")], max_tokens=50, estimate=size
                )

            def wire(link: Link) -> Wire:
                return wire_for(link, client, environ)

            timers = Timers(connect=20, first=30, idle=30, total=60)
            chain = Chain(
                [link], wires=wire, timers=timers, sleep=no_sleep, random=lambda: 0.0, learn=registry.learn
            )
            await chain.ask(prepare)
            window = registry.window(link)
            assert registry.window(link) == open_registry(client=client, paths=place, environ=environ).window(link)
            return window.size, window.source

    with FaultServer(schedule=faults.first(1, faults.Status(400, {}, REFUSAL))) as server:
        assert asyncio.run(run(server.v1)) == (8192, "learned")
    assert asked == [9000, 7372]


def failure(body: str, *patterns: ErrorPattern, status: int = 400) -> tuple[Any, ...]:
    provider = Provider(name="acme", card="acme", wire="openai", errors=patterns)
    found = classify(RequestFailed("x", phase="status", status=status, body=body), provider, now=0)
    return found.error_class, found.limit, found.actual


LIMIT = ErrorPattern(match=r"at most (?P<limit>[\d,' ]*\d)", means="overflow")


@pytest.mark.parametrize(
    ("body", "patterns", "expected"),
    [
        ("at most 8,192 please", [LIMIT], ("overflow", 8192, None)),
        ("at most 8'192 please", [LIMIT], ("overflow", 8192, None)),
        ("at most 8 192 please", [LIMIT], ("overflow", 8192, None)),
        ("at most 12 please", [LIMIT], ("overflow", None, None)),
        ("at most 99999999999999999999999 please", [LIMIT], ("overflow", None, None)),
        # Numbers that stand beside the words, in fields of their own.
        (
            '{"error": {"kind": "too_big", "room": 4096, "came": 5000}}',
            [ErrorPattern(match=r"(?s)too_big.*room: (?P<limit>\d+)\ncame: (?P<actual>\d+)", means="overflow")],
            ("overflow", 4096, 5000),
        ),
        # What a pattern does not say, the words that all servers use may.
        (
            "E77: prompt is too long: 210194 tokens > 200000 maximum",
            [ErrorPattern(match="E77", means="overflow")],
            ("overflow", 200_000, 210_194),
        ),
        # The first pattern that matches counts, and a quota teaches no window.
        (
            "no more today: at most 8192",
            [ErrorPattern(match="no more", means="quota"), LIMIT],
            ("quota", None, None),
        ),
        # A status that such refusals do not have elsewhere; and a pattern for another one.
        ("at most 8192", [LIMIT], ("overflow", 8192, None)),
        (
            "at most 8192",
            [ErrorPattern(match=LIMIT.match, means="overflow", status=418)],
            ("bad_request", None, None),
        ),
    ],
    ids=str,
)
def test_the_numbers_of_a_cards_own_words_are_read(
    body: str, patterns: Sequence[ErrorPattern], expected: tuple[Any, ...]
) -> None:
    assert failure(body, *patterns) == expected


def test_a_card_is_believed_even_where_no_other_refusal_speaks_of_windows() -> None:
    assert failure("at most 8192", LIMIT, status=429) == ("overflow", 8192, None)


def test_what_a_server_repeats_of_the_conversation_is_not_its_refusal() -> None:
    assert failure('{"error": "bad", "input": "at most 8192"}', LIMIT) == ("bad_request", None, None)
