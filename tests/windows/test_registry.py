"""Asking real sockets, and what the registry makes of the answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentx.config.links import Link, Provider
from agentx.windows.record import Window
from agentx.windows.registry import WindowRegistry
from tests.windows.conftest import run

Make = Callable[..., Link]
Payload = Callable[[str], Any]
DAY = 24 * 3600.0


def ollama(payload: Payload, served: int = 4096) -> dict[str, Any]:
    ps = payload("ollama_api_ps")
    ps["models"][0]["context_length"] = served
    return {
        "GET /api/ps": ps,
        "GET /api/tags": payload("ollama_api_tags"),
        "GET /v1/models": payload("ollama_v1_models"),
    }


def test_a_window_is_assumed_until_the_server_says_it(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    one = link(serve(ollama(payload)).url, wire="ollama", may_truncate=True)

    async def work(registry: WindowRegistry) -> None:
        assert registry.window(one).source == "assumed"
        await registry.refresh([one])
        window = registry.window(one)
        assert (window.size, window.trained, window.source) == (4096, 40_960, "served")
        assert window.detail == "GET /api/ps models[].context_length"
        assert registry.num_ctx(one) == 4096

    run(work, clock)


def test_an_ollama_behind_an_openai_compatible_link_is_recognised(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    one = link(serve(ollama(payload)).url + "/v1", probes=("openai_list",), may_truncate=True)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert (registry.window(one).size, registry.window(one).source) == (4096, "served")

    run(work, clock)


def taken(listening: socket.socket) -> int:
    """How many connections wait to be taken; they are taken and closed."""
    listening.setblocking(False)
    for count in range(100):
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return count
    return 100


def test_a_dead_server_costs_two_seconds_at_most_and_is_not_asked_again_for_a_minute(
    link: Make, clock: Any
) -> None:
    """One port refuses; the other takes the connection and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hanging = link(f"http://127.0.0.1:{silent.getsockname()[1]}")
        refusing = link("http://127.0.0.1:9")

        async def work(registry: WindowRegistry) -> None:
            await registry.refresh([hanging, refusing], timeout=0.5)
            asked = taken(silent)
            await registry.refresh([hanging, refusing], timeout=0.5)
            assert (asked > 0, taken(silent)) == (True, 0)
            assert registry.window(refusing).source == "assumed"
            said = {one.source: one.reason for one in registry.explain(refusing).candidates}
            assert "http://127.0.0.1:9: " in said["served"]
            assert any("does not answer" in text for text in registry.warnings(hanging))

        run(work, clock)


def test_a_server_that_starts_later_is_found_after_the_first_success(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve({})
    one = link(server.url, "m")

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        server.routes |= {"GET /v1/models": payload("llamacpp_v1_models")}
        await registry.refresh([one])
        assert registry.window(one).source == "assumed", "what failed is left alone for a minute"
        registry.succeeded(one, 100)
        await registry.refresh([one])
        assert (registry.window(one).size, registry.window(one).source) == (16_384, "served")

    run(work, clock)


def test_a_local_server_is_asked_again_cheaply_and_not_too_often(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve(ollama(payload))
    one = link(server.url)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        server.log.clear()
        server.routes |= ollama(payload, 8192)
        await registry.touch(one)
        assert (server.asked(), registry.window(one).size) == ([], 4096)
        clock.at += 11
        await registry.touch(one)
        assert set(server.asked()) <= {"GET /api/ps", "GET /api/tags", "POST /api/show"}
        assert registry.window(one).size == 8192

    run(work, clock)


def test_a_hosted_list_is_kept_for_a_day(
    serve: Any, link: Make, payload: Payload, clock: Any, tmp_path: Path
) -> None:
    server = serve({"GET /v1/models": payload("groq_models")})
    one = link(f"{server.url}/v1", "qwen/qwen3-32b", self_hosted=False, probes=("openai_list",))
    file = tmp_path / "windows.json"
    seen: list[tuple[str, int, int]] = []

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        seen.append((registry.window(one).source, registry.window(one).size, len(server.log)))

    run(work, clock, file=file)
    clock.at += DAY - 1
    run(work, clock, file=file)
    clock.at += 1
    run(work, clock, file=file)
    assert seen == [("listed", 131_072, 1), ("cache", 131_072, 1), ("listed", 131_072, 2)]


def test_a_forced_refresh_asks_a_hosted_provider_again(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve({"GET /v1/models": payload("groq_models")})
    one = link(f"{server.url}/v1", "qwen/qwen3-32b", self_hosted=False, probes=("openai_list",))

    async def work(registry: WindowRegistry) -> None:
        for _ in range(2):
            await registry.refresh([one])
        await registry.refresh([one], force=True)

    run(work, clock)
    assert len(server.log) == 2


def test_the_key_goes_along_as_the_provider_wants_it_and_is_not_asked_for_without(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve({"GET /v1/models": payload("anthropic_models")})
    keyed = {"self_hosted": False, "probes": ("anthropic",), "auth": "x-api-key", "api_key_env": "THE_KEY"}
    one = link(server.url, "claude-sonnet-4-6", **keyed)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])

    run(work, clock)
    assert server.log == []
    run(work, clock, environ={"THE_KEY": "not ascii \u00e9\n"})
    run(work, clock, environ={"THE_KEY": " secret\n"})
    _, headers = server.log[-1]
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("secret", "2023-06-01")
    assert "authorization" not in headers


def test_models_at_one_server_share_the_questions(serve: Any, link: Make, payload: Payload, clock: Any) -> None:
    server = serve({"GET /v1/models": payload("vllm_v1_models")})
    links = [link(server.url, model) for model in ("Qwen/Qwen3-32B", "my-lora")]

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh(links)
        assert [registry.window(one).size for one in links] == [40_960, 40_960]

    run(work, clock)
    assert server.asked().count("GET /v1/models") == 1


def test_a_redirect_is_not_followed_since_it_would_take_the_key_along(serve: Any, link: Make, clock: Any) -> None:
    server = serve({"GET /v1/models": 302})
    one = link(f"{server.url}/v1", "m", self_hosted=False, probes=("openai_list",))

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert registry.window(one).source == "assumed"

    run(work, clock)


def test_an_answer_that_is_no_json_is_no_error(serve: Any, link: Make, clock: Any) -> None:
    server = serve(
        {"GET /v1/models": "<html>", "GET /api/ps": "[" * 100_000, "GET /props": "3", "GET /info": "null"}
    )

    async def work(registry: WindowRegistry) -> None:
        one = link(server.url)
        await registry.refresh([one])
        assert registry.window(one).source == "assumed"

    run(work, clock)


def test_a_proven_limit_holds_for_other_jobs_for_a_day(link: Make, clock: Any, tmp_path: Path) -> None:
    one, file = link("http://127.0.0.1:9"), tmp_path / "windows.json"

    async def learns(registry: WindowRegistry) -> None:
        window = registry.learn(one, 8192, "refused: limit 8,192")
        assert window is not None
        assert (window.size, window.source, window.confidence) == (8192, "learned", "proven")
        assert registry.learn(one, 9000, "later") is None, "only ever lowers"
        assert registry.learn(one, 0, "broken") is None

    async def knows(registry: WindowRegistry) -> None:
        assert registry.window(one).size == 8192
        clock.at += DAY
        assert registry.window(one).source == "assumed"

    run(learns, clock, file=file)
    run(knows, clock, file=file)


def test_a_success_above_a_proven_limit_drops_it(link: Make, clock: Any) -> None:
    one = link("http://127.0.0.1:9")

    async def work(registry: WindowRegistry) -> None:
        registry.learn(one, 8192, "refused")
        registry.succeeded(one, 8192)
        assert registry.window(one).size == 8192
        registry.succeeded(one, 8193)
        assert registry.window(one).source == "assumed"

    run(work, clock)


def test_a_reload_drops_a_proven_limit(serve: Any, link: Make, payload: Payload, clock: Any) -> None:
    server = serve(ollama(payload, 8192))
    one = link(server.url)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        registry.learn(one, 4096, "cut at 4,096")
        await registry.refresh([one])
        assert registry.window(one).size == 4096
        server.routes |= ollama(payload, 16_384)
        await registry.refresh([one])
        assert (registry.window(one).size, registry.window(one).source) == (16_384, "served")

    run(work, clock)


def test_num_ctx_stays_the_same_for_the_whole_job(serve: Any, link: Make, payload: Payload, clock: Any) -> None:
    """Another value on a later call would reload the model."""
    server = serve(ollama(payload, 8192))
    one = link(server.url, wire="ollama", may_truncate=True)

    async def work(registry: WindowRegistry) -> None:
        assert registry.num_ctx(one) == 4096, "nothing known yet: the assumed window, for this call only"
        await registry.refresh([one])
        assert registry.num_ctx(one) == 8192
        server.routes |= ollama(payload, 4096)
        await registry.refresh([one])
        registry.learn(one, 6000, "cut")
        assert registry.num_ctx(one) == 8192
        assert registry.window(one).size == 6000

    run(work, clock)


def test_a_server_that_grants_less_than_asked_is_believed_right_after_the_request(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve(ollama(payload, 4096))
    one = link(server.url, wire="ollama", window=32_768)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert (registry.window(one).size, registry.num_ctx(one)) == (32_768, 32_768)
        server.routes |= ollama(payload, 8192)
        registry.succeeded(one, 500)
        await registry.refresh([one])
        assert (registry.window(one).size, registry.window(one).source) == (8192, "served")
        assert len([text for text in registry.untold(one) if "window: 32768" in text]) == 1
        assert registry.untold(one) == ()
        clock.at += 60
        server.routes |= ollama(payload, 4096)
        await registry.touch(one)
        assert registry.window(one).size == 8192, "another client's load does not bind"

    run(work, clock)


def test_a_model_that_was_unloaded_keeps_its_last_window_as_a_hint(
    serve: Any, link: Make, payload: Payload, clock: Any, tmp_path: Path
) -> None:
    server = serve(ollama(payload, 8192))
    one, file = link(server.url, may_truncate=True), tmp_path / "windows.json"

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])

    async def later(registry: WindowRegistry) -> None:
        server.routes["GET /api/ps"] = payload("ollama_api_ps_empty")
        await registry.refresh([one])
        window = registry.window(one)
        assert (window.size, window.source, window.seen_at) == (8192, "cache", clock.at - 500)

    run(work, clock, file=file)
    clock.at += 500
    run(later, clock, file=file)


def test_forgetting_drops_all_that_was_heard_and_learned(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    one = link(serve(ollama(payload)).url)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        registry.learn(one, 3000, "cut")
        registry.forget(one)
        assert registry.window(one).source == "assumed"

    run(work, clock)


@given(st.integers(256, 200_000) | st.none(), st.lists(st.integers(-5, 300_000), max_size=6))
def test_learning_only_ever_lowers(user: int | None, limits: list[int]) -> None:
    provider = Provider(name="p", card="p", wire="openai", base_url="http://127.0.0.1:9", self_hosted=True)
    one = Link(provider=provider, model="m", name="p/m", window=user)

    async def work(registry: WindowRegistry) -> None:
        for limit in limits:
            before: Window = registry.window(one)
            new = registry.learn(one, limit, "e")
            after = registry.window(one)
            assert after.size <= before.size
            assert (new is not None) == (after.size < before.size)
            assert new is None or new == after

    run(work, lambda: 1.0)
