"""What an endpoint proves: lower at once, higher on evidence, kept on disk, forgotten when it no longer holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentx.config.links import Link
from agentx.windows.record import Window
from agentx.windows.registry import WindowRegistry
from tests.windows.conftest import run

Make = Callable[..., Link]
Payload = Callable[[str], Any]
DAY = 24 * 3600.0
NOBODY = "http://127.0.0.1:9"


def short(window: Window) -> tuple[int, str, str]:
    return window.size, window.source, window.confidence


def llamacpp(served: int | None, trained: int = 131_072) -> dict[str, Any]:
    meta = {"n_ctx_train": trained} if served is None else {"n_ctx_train": trained, "n_ctx": served}
    return {"GET /v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": meta}]}}


def test_a_success_above_an_assumed_window_raises_it_for_all_jobs_and_for_a_day(
    link: Make, clock: Any, tmp_path: Path
) -> None:
    one, file = link(NOBODY), tmp_path / "windows.json"

    async def learns(registry: WindowRegistry) -> None:
        assert short(registry.window(one)) == (32_768, "assumed", "assumed")
        assert registry.succeeded(one, 30_000) is None
        raised = registry.succeeded(one, 40_000, 39_000)
        assert raised is not None
        assert short(raised) == (40_000, "learned", "proven")
        assert raised.detail == "a prompt and reply of 40,000 tokens fitted"
        assert registry.succeeded(one, 35_000) is None and registry.window(one).size == 40_000
        assert not any("assumed" in text for text in registry.warnings(one))

    async def knows(registry: WindowRegistry) -> None:
        assert registry.window(one).size == 40_000
        clock.at += DAY
        assert registry.window(one).source == "assumed"

    run(learns, clock, file=file)
    run(knows, clock, file=file)


def test_a_listed_and_a_cached_window_rise_and_their_other_numbers_stay(
    serve: Any, link: Make, payload: Payload, clock: Any, tmp_path: Path
) -> None:
    entry = {"id": "m", "context_window": 32_768, "max_completion_tokens": 8192}
    server = serve({"GET /v1/models": {"data": [entry]}})
    one = link(f"{server.url}/v1", "m", self_hosted=False, probes=("openai_list",))
    file = tmp_path / "windows.json"

    async def listed(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert short(registry.window(one)) == (32_768, "listed", "listed")
        registry.succeeded(one, 40_000)
        window = registry.window(one)
        assert (*short(window), window.output) == (40_000, "learned", "proven", 8192)

    async def cached(registry: WindowRegistry) -> None:
        assert registry.window(one).size == 40_000
        registry.succeeded(one, 50_000)
        assert registry.window(one).size == 50_000

    run(listed, clock, file=file)
    run(cached, clock, file=file)


def test_a_limit_of_the_prompt_rises_only_by_a_prompt(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    """Prompt and reply together say nothing where each has a budget of its own."""
    server = serve({"GET /v1/models": {"data": [{"id": "m", "max_input_tokens": 32_768}]}})
    one = link(f"{server.url}/v1", "m", self_hosted=False, probes=("openai_list",))

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert registry.succeeded(one, 40_000, 32_000) is None
        assert registry.window(one).size == 32_768
        registry.succeeded(one, 40_000, 36_000)
        assert registry.window(one).size == 36_000

    run(work, clock)


def test_where_the_server_may_drop_the_beginning_while_it_writes_only_the_prompt_counts(
    link: Make, clock: Any
) -> None:
    one = link(NOBODY, may_truncate=True)

    async def work(registry: WindowRegistry) -> None:
        assert registry.succeeded(one, 6000, 3900) is None
        assert registry.window(one).size == 4096
        registry.succeeded(one, 6000, 5500)
        assert registry.window(one).size == 5500

    run(work, clock)


def test_what_the_server_says_of_the_loaded_model_stays_the_truth(serve: Any, link: Make, clock: Any) -> None:
    """A total above it is the work of a context shift."""
    server = serve(llamacpp(8192))
    one = link(server.url, "m")

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert registry.succeeded(one, 12_000, 8000) is None
        assert short(registry.window(one)) == (8192, "served", "served")

    run(work, clock)


def test_a_served_window_ends_what_was_only_seen(serve: Any, link: Make, clock: Any) -> None:
    """The server is started again, smaller, and says so: the old success proves nothing any more."""
    server = serve({})
    one = link(server.url, "m")

    async def work(registry: WindowRegistry) -> None:
        registry.succeeded(one, 60_000)
        assert registry.window(one).size == 60_000
        server.routes |= llamacpp(8192)
        await registry.refresh([one])
        assert short(registry.window(one)) == (8192, "served", "served")
        server.routes |= {"GET /v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": None}]}}
        clock.at += 60
        await registry.touch(one)
        assert short(registry.window(one)) == (8192, "cache", "listed")

    run(work, clock)


@pytest.mark.parametrize("asks", [True, False])
def test_what_the_user_or_agentx_asks_for_does_not_rise(asks: bool, link: Make, clock: Any) -> None:
    one = link(NOBODY, wire="ollama" if asks else "openai", window=8192)

    async def work(registry: WindowRegistry) -> None:
        registry.succeeded(one, 40_000, 40_000)
        assert registry.window(one).size == 8192

    run(work, clock)


def test_a_refusal_after_a_success_wins_and_a_success_after_a_refusal_too(link: Make, clock: Any) -> None:
    one = link(NOBODY)

    async def work(registry: WindowRegistry) -> None:
        registry.succeeded(one, 50_000)
        lowered = registry.learn(one, 45_000, "refused: limit 45,000")
        assert lowered is not None and short(lowered) == (45_000, "learned", "proven")
        raised = registry.succeeded(one, 46_000)
        assert raised is not None and raised.size == 46_000
        assert registry.learn(one, 8192, "refused") is not None
        assert registry.window(one).size == 8192
        clock.at += DAY
        assert registry.window(one).source == "assumed", "neither outlives a day"

    run(work, clock)


@pytest.mark.parametrize("tokens", [0, -1, 255, 20_000_001, 10**12])
def test_a_count_that_no_window_can_have_proves_nothing(tokens: int, link: Make, clock: Any) -> None:
    one = link(NOBODY)

    async def work(registry: WindowRegistry) -> None:
        assert registry.succeeded(one, tokens) is None
        assert registry.window(one).source == "assumed"

    run(work, clock)


def test_a_reload_with_another_size_is_noticed_and_ends_what_was_learned(
    serve: Any, link: Make, clock: Any
) -> None:
    server = serve(llamacpp(16_384))
    one = link(server.url, "m")
    seen: list[tuple[int, str]] = []

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        registry.learn(one, 12_000, "refused: limit 12,000")
        for served in (16_384, 4096, 65_536):
            server.routes |= llamacpp(served)
            clock.at += 30
            await registry.touch(one)
            seen.append((registry.window(one).size, registry.window(one).source))

    run(work, clock)
    assert seen == [(12_000, "learned"), (4096, "served"), (65_536, "served")]


def test_a_guess_lowers_for_an_hour_is_never_called_proven_and_gives_way_to_a_reply(
    link: Make, clock: Any, tmp_path: Path
) -> None:
    one, file = link(NOBODY, window=100_000), tmp_path / "windows.json"
    begun = clock.at

    async def guesses(registry: WindowRegistry) -> None:
        learned = registry.learn(one, 20_000, "answered 400 without a word", guessed=True)
        assert learned is not None
        assert (learned.size, learned.source, learned.confidence) == (20_000, "learned", "assumed")

    async def another_process(registry: WindowRegistry) -> None:
        clock.at = begun + 3_599
        assert (registry.window(one).size, registry.window(one).confidence) == (20_000, "assumed")
        clock.at = begun + 3_600
        assert (registry.window(one).size, registry.window(one).source) == (100_000, "config")
        (learned,) = (c for c in registry.explain(one).candidates if c.source == "learned")
        assert learned.reason == "was a guess an hour ago: more is tried again"
        clock.at = begun + 60
        raised = registry.succeeded(one, 30_000)
        assert raised is not None
        assert (raised.size, raised.source) == (100_000, "config")

    run(guesses, clock, file=file)
    run(another_process, clock, file=file)


def test_a_guess_does_not_replace_a_proof_nor_go_below_what_a_reply_showed(link: Make, clock: Any) -> None:
    one, two, three = link(NOBODY, "a"), link(NOBODY, "b"), link(NOBODY, "c", window=9_000, force=True)

    async def work(registry: WindowRegistry) -> None:
        registry.learn(one, 12_000, "refused")
        registry.learn(one, 6_000, "no word", guessed=True)
        assert (registry.window(one).size, registry.window(one).confidence) == (6_000, "assumed")
        clock.at += 3_600
        assert (registry.window(one).size, registry.window(one).confidence) == (12_000, "proven")
        registry.succeeded(two, 14_000)
        registry.learn(two, 6_000, "no word", guessed=True)
        assert registry.window(two).size == 14_000
        registry.learn(three, 6_000, "no word", guessed=True)
        assert (registry.window(three).size, registry.window(three).source) == (9_000, "config")

    run(work, clock)


def test_two_links_to_one_server_learn_apart(link: Make, clock: Any) -> None:
    links = [link(NOBODY, model) for model in ("base", "lora", "base:2")]
    elsewhere = link("http://127.0.0.1:9/other", "base")

    async def work(registry: WindowRegistry) -> None:
        registry.learn(links[0], 8192, "refused")
        registry.succeeded(links[1], 50_000)
        assert [registry.window(one).size for one in (*links, elsewhere)] == [8192, 50_000, 32_768, 32_768]

    run(work, clock)


def test_the_file_says_in_plain_words_what_was_proved(link: Make, clock: Any, tmp_path: Path) -> None:
    file = tmp_path / "windows.json"

    async def work(registry: WindowRegistry) -> None:
        registry.succeeded(link(NOBODY, "a"), 40_000)
        registry.learn(link(NOBODY, "b"), 8192, "refused: 9,000 > 8,192")

    run(work, clock, file=file)
    assert json.loads(file.read_text())["links"] == {
        f"{NOBODY} a": {
            "held": {"tokens": 40_000, "evidence": "a prompt and reply of 40,000 tokens fitted", "at": clock.at}
        },
        f"{NOBODY} b": {
            "learned": {"limit": 8192, "evidence": "refused: 9,000 > 8,192", "at": clock.at, "served": None}
        },
    }


def test_processes_that_learn_at_the_same_time_keep_the_smallest_limit_of_all(link: Make, tmp_path: Path) -> None:
    """Real processes over one file, each with its own registry."""
    program = """
import asyncio, sys
from pathlib import Path
import httpx
from agentx.config.links import Link, Provider
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue
from agentx.windows.registry import WindowRegistry
from agentx.windows.tables import Tables
file, number = Path(sys.argv[1]), int(sys.argv[2])
provider = Provider(name="p", card="p", wire="openai", base_url="http://127.0.0.1:9", self_hosted=True)
registry = WindowRegistry(client=httpx.AsyncClient(), environ={}, cache=Cache(file), tables=Tables(),
                    catalogue=Catalogue(None), now=lambda: 1e9)
for step in range(8):
    shared = Link(provider=provider, model="shared", name="p/shared")
    own = Link(provider=provider, model=f"own-{number}", name="p/own")
    registry.learn(shared, 20_000 - 100 * step - number, "e")
    registry.succeeded(own, 40_000 + step)
"""
    file = tmp_path / "windows.json"
    started = [subprocess.Popen([sys.executable, "-c", program, str(file), str(n)]) for n in range(4)]
    assert [one.wait() for one in started] == [0] * 4
    links = json.loads(file.read_text())["links"]
    assert links[f"{NOBODY} shared"]["learned"]["limit"] == 20_000 - 700 - 3
    assert [links[f"{NOBODY} own-{n}"]["held"]["tokens"] for n in range(4)] == [40_007] * 4
