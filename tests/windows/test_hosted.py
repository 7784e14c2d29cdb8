"""Hosted providers, each by its own card, asked over a real socket: what their lists say is what a link holds."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.config.cards import read_cards
from agentx.config.links import Link
from agentx.config.load import Config, load
from agentx.config.paths import paths
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue
from agentx.windows.probes import PROBES, Answers, probes_for, read_all
from agentx.windows.record import LARGEST, SMALLEST, Window
from agentx.windows.registry import WindowRegistry
from agentx.windows.tables import Tables

Payload = Callable[[str], Any]
Sizes = tuple[int | None, int | None, int | None, int | None]
KEY = "k-123"


def hosted(card: str, model: str, url: str = "https://api.example.org") -> Link:
    """A link by the shipped *card*, whose service is at *url* now and still hosted, though on loopback."""
    link = shipped_cards().link(f"{card}/{model}")
    return replace(link, provider=replace(link.provider, base_url=url, self_hosted=False, may_truncate=False))


@cache
def shipped_cards() -> Config:
    file = Path("/nonexistent")
    return load(paths({"AGENTX_HOME": str(file)}), file, {})


def window(link: Link) -> Window:
    """What the public registry says of *link* after it has asked."""

    async def go() -> Window:
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            registry = WindowRegistry(
                client=client,
                environ={link.key_variable or "": KEY},
                cache=Cache(None),
                tables=Tables(),
                catalogue=Catalogue(None),
                now=lambda: 1_800_000_000.0,
            )
            await registry.refresh([link])
            return registry.window(link)

    return asyncio.run(go())


def sizes(found: Window) -> Sizes:
    """Served, trained, prompt, output."""
    return found.served, found.trained, found.prompt, found.output


NOT_SAID = (32_768, None, None, None)
"""What is assumed of a hosted model where nobody says it."""
QWEN = "/api/v1/models/qwen/qwen3-coder/endpoints"
GLM = "accounts/fireworks/models/glm-4p7"

SAID: list[tuple[str, str, dict[str, str], str, Sizes]] = [
    # card, path of the address, answers by path, model, what it holds
    ("copilot", "", {"/models": "copilot_models"}, "gpt-5.5", (400_000, None, 272_000, 128_000)),
    ("copilot", "", {"/models": "copilot_models"}, "claude-sonnet-5", (200_000, None, 168_000, 64_000)),
    ("codex", "/codex", {"/codex/models": "codex_models"}, "gpt-6.1-sol", (272_000, 872_000, 258_400, None)),
    ("codex", "/codex", {"/codex/models": "codex_models"}, "gpt-5.5", (272_000, 272_000, 258_400, None)),
    ("codex", "/codex", {"/codex/models": "codex_models"}, "gpt-5.5-wm", (272_000, 272_000, 258_400, None)),
    ("codex", "/codex", {"/codex/models": "codex_models"}, "gpt-9", NOT_SAID),
    ("groq", "/openai/v1", {"/openai/v1/models": "groq_models"}, "qwen/qwen3-32b", (131_072, None, None, 40_960)),
    ("groq", "/openai/v1", {"/openai/v1/models": "groq_models"}, "llama3-8b-8192", NOT_SAID),
    ("mistral", "/v1", {"/v1/models": "mistral_models"}, "mistral-large-latest", (262_144, None, None, None)),
    ("mistral", "/v1", {"/v1/models": "mistral_models"}, "mistral-large-2512", (262_144, None, None, None)),
    ("together", "/v1", {"/v1/models": "together_models"}, "openai/gpt-oss-120b", (131_072, None, None, None)),
    ("together", "/v1", {"/v1/models": "together_models"}, "black-forest-labs/FLUX.1", NOT_SAID),
    ("fireworks", "/inference/v1", {f"/v1/{GLM}": "fireworks_model"}, GLM, (202_752, None, None, None)),
    ("fireworks", "/inference/v1", {"/inference/v1/models": "fireworks_list"}, GLM, (202_752, None, None, None)),
    ("cerebras", "/v1", {"/v1/models": "cerebras_openrouter"}, "gpt-oss-120b", (65_536, None, None, 32_768)),
    ("cerebras", "/v1", {"/v1/models": "cerebras_public"}, "qwen-3.8-27b", (131_000, None, None, 40_000)),
    ("cerebras", "/v1", {"/v1/models": "cerebras_models"}, "gpt-oss-120b", NOT_SAID),
    (
        "huggingface",
        "/v1",
        {"/v1/models": "huggingface_models"},
        "openai/gpt-oss-120b",
        (65_536, None, None, None),
    ),
    (
        "huggingface",
        "/v1",
        {"/v1/models": "huggingface_models"},
        "openai/gpt-oss-120b:fastest",
        (65_536, None, None, None),
    ),
    (
        "huggingface",
        "/v1",
        {"/v1/models": "huggingface_models"},
        "openai/gpt-oss-120b:cerebras",
        (131_072, None, None, None),
    ),
    ("huggingface", "/v1", {"/v1/models": "huggingface_models"}, "openai/gpt-oss-120b:novita", NOT_SAID),
    ("huggingface", "/v1", {"/v1/models": "huggingface_models"}, "openai/gpt-oss-120b:odd", NOT_SAID),
    ("huggingface", "/v1", {"/v1/models": "huggingface_models"}, "openai/gpt-oss-120b:nobody", NOT_SAID),
    (
        "vercel",
        "/v1",
        {"/v1/models": "vercel_models"},
        "anthropic/claude-sonnet-4.5",
        (200_000, None, None, 64_000),
    ),
    (
        "deepinfra",
        "/v1/openai",
        {"/v1/openai/models": "deepinfra_models"},
        "Qwen/Qwen3-235B-A22B",
        (40_960, None, None, None),
    ),
    ("nvidia", "/v1", {"/v1/models": "nvidia_models"}, "meta/llama-3.3-70b-instruct", NOT_SAID),
    ("nvidia", "/v1", {"/v1/models": "nim_models"}, "meta/llama-3.1-8b-instruct", (40_960, None, None, None)),
    ("xai", "/v1", {"/v1/models": "xai_language_models"}, "grok-4.5", NOT_SAID),
    ("deepseek", "/v1", {"/v1/models": "deepseek_models"}, "deepseek-chat", NOT_SAID),
    ("openai", "/v1", {"/v1/models": "openai_models"}, "gpt-5", NOT_SAID),
    ("anthropic", "", {"/v1/models": "anthropic_models"}, "claude-sonnet-4-6", (1_000_000, None, None, 128_000)),
    ("anthropic", "", {"/v1/models": "anthropic_models"}, "claude-sonnet-4-5", (200_000, None, None, 64_000)),
    ("anthropic", "", {"/v1/models": "anthropic_models"}, "claude-old", NOT_SAID),
    ("gemini", "", {"/v1beta/models": "gemini_models"}, "gemini-2.5-pro", (None, None, 1_048_576, 65_536)),
    ("gemini", "", {"/v1beta/models": "gemini_models"}, "gemini-2.5-pro-latest", (None, None, 1_048_576, 65_536)),
    ("gemini", "", {"/v1beta/models": "gemini_models"}, "gemini-2.5-pro-001", (None, None, 1_048_576, 65_536)),
    (
        "openrouter",
        "/api/v1",
        {"/api/v1/models": "openrouter_models", QWEN: "openrouter_endpoints"},
        "qwen/qwen3-coder",
        (131_072, None, 120_000, 65_536),
    ),
    (
        "openrouter",
        "/api/v1",
        {"/api/v1/models": "openrouter_models", QWEN: "openrouter_endpoints"},
        "qwen/qwen3-coder:nitro",
        (131_072, None, 120_000, 65_536),
    ),
    (
        "openrouter",
        "/api/v1",
        {"/api/v1/models": "openrouter_models", QWEN: "openrouter_endpoints"},
        "qwen/qwen3-coder:free",
        (262_000, None, None, 262_000),
    ),
    (
        "openrouter",
        "/api/v1",
        {"/api/v1/models": "openrouter_models"},
        "xiaomi/mimo-v2.5",
        (32_000, None, None, None),
    ),
    (
        "litellm-proxy",
        "/v1",
        {"/v1/model/info": "litellm_v1_model_info", "/v1/models": "litellm_v1_models"},
        "prod-coder",
        (None, None, 40_960, 8192),
    ),
    ("litellm-proxy", "/v1", {"/v1/models": "litellm_v1_models"}, "prod-coder", (None, None, 40_960, 8192)),
    ("litellm-proxy", "/v1", {"/v1/model/info": "litellm_v1_model_info"}, "mystery", NOT_SAID),
]


@pytest.fixture
def bodies(payload: Payload) -> Payload:
    """A body by its name: a file of its own, or one of the many in one file."""
    many = payload("hosted_shapes")
    return lambda name: copy.deepcopy(many[name]) if name in many else payload(name)


@pytest.mark.parametrize(
    ("card", "path", "answers", "model", "expected"),
    SAID,
    ids=[f"{card}-{model}-{'-'.join(answers.values())}" for card, _, answers, model, _ in SAID],
)
def test_a_hosted_provider_is_read_for_what_its_list_says(
    card: str, path: str, answers: dict[str, str], model: str, expected: Sizes, serve: Any, bodies: Payload
) -> None:
    server = serve({f"GET {at}": bodies(name) for at, name in answers.items()})
    found = window(hosted(card, model, server.url + path))
    assert sizes(found) == expected
    assert found.source == ("assumed" if expected == NOT_SAID else "listed")
    assert {line.split()[0] for line in server.asked()} == {"GET"}, "a probe only ever reads"


def test_every_hosted_provider_is_asked_with_its_key_as_it_wants_it(serve: Any) -> None:
    for name, card in read_cards(Path("/nonexistent")).items():
        server = serve({})
        if card.self_hosted or not card.probes or card.api_key_env is None:
            continue
        window(hosted(name, "accounts/a/models/m", server.url))
        for _, headers in server.log:
            sent = headers.get("authorization") if card.auth == "bearer" else headers.get(card.auth)
            assert sent == (f"Bearer {KEY}" if card.auth == "bearer" else KEY), name
            assert headers.items() >= {key.lower(): value for key, value in card.headers.items()}.items()
        assert server.log, name


def test_copilots_limits_are_never_added_and_a_reply_takes_nothing_where_there_is_room(
    serve: Any, bodies: Payload
) -> None:
    server = serve({"GET /models": bodies("copilot_models")})
    roomy, tight = (window(hosted("copilot", model, server.url)) for model in ("gpt-5.5", "claude-sonnet-5"))
    assert (roomy.size, roomy.shared) == (272_000, False)
    assert (tight.size, tight.shared) == (168_000, True)


def test_a_fireworks_deployment_holds_what_it_was_made_for_and_zero_means_its_model(
    serve: Any, bodies: Payload
) -> None:
    both = f"{GLM}#accounts/acme/deployments/d1"
    deployment = {"name": "accounts/acme/deployments/d1", "baseModel": GLM, "maxContextLength": 0}
    routes = {f"GET /v1/{GLM}": bodies("fireworks_model"), "GET /v1/accounts/acme/deployments/d1": deployment}
    server = serve(routes)
    link = hosted("fireworks", both, f"{server.url}/inference/v1")
    assert window(link).size == 202_752
    deployment["maxContextLength"] = 65_536
    assert window(link).size == 65_536


@pytest.mark.parametrize("percent", [None, 0, 101, "80", True, 80.5])
def test_codex_keeps_95_percent_for_the_prompt_unless_the_list_says_it(
    percent: Any, serve: Any, bodies: Payload
) -> None:
    listed = bodies("codex_models")
    listed["models"][1]["effective_context_window_percent"] = percent
    server = serve({"GET /models": listed})
    assert window(hosted("codex", "gpt-5.5", server.url)).prompt == 258_400
    listed["models"][1]["effective_context_window_percent"] = 80
    assert window(hosted("codex", "gpt-5.5", server.url)).prompt == 217_600


@pytest.mark.parametrize("model", ["openrouter/auto", "~anthropic/claude-sonnet-latest"])
def test_a_name_that_stands_for_several_models_has_no_window(model: str, serve: Any, bodies: Payload) -> None:
    listed = bodies("openrouter_models")
    listed["data"].append({"id": model, "context_length": 2_000_000})
    server = serve({"GET /api/v1/models": listed})
    assert window(hosted("openrouter", model, f"{server.url}/api/v1")).source == "assumed"


def test_endpoints_that_say_nothing_leave_it_to_the_top_provider(serve: Any, bodies: Payload) -> None:
    """The list's own number is the model's: 1,048,576 where the provider takes 32,000."""
    endpoints = {"data": {"endpoints": [{"context_length": None, "max_completion_tokens": 16_000}]}}
    at = "GET /api/v1/models/xiaomi/mimo-v2.5/endpoints"
    server = serve({"GET /api/v1/models": bodies("openrouter_models"), at: endpoints})
    assert window(hosted("openrouter", "xiaomi/mimo-v2.5", f"{server.url}/api/v1")).size == 32_000


@pytest.mark.parametrize(
    ("model", "size"),
    [("m-1-2025-08-07", 9000), ("m-1-20250807", 9000), ("M-1", 9000), ("m-1-2026-01-01", 7000), ("m-12", 32_768)],
)
def test_a_dated_name_is_read_exactly_else_without_its_date(model: str, size: int, serve: Any) -> None:
    listed = {"data": [{"id": "m-1-2026-01-01", "context_window": 7000}, {"id": "m-1", "context_window": 9000}]}
    server = serve({"GET /v1/models": listed})
    assert window(hosted("groq", model, f"{server.url}/v1")).size == size


def test_an_undated_name_never_stands_for_a_snapshot_of_a_plain_list(serve: Any) -> None:
    server = serve({"GET /v1/models": {"data": [{"id": "m-1-2026-01-01", "context_window": 7000}]}})
    assert window(hosted("groq", "m-1", f"{server.url}/v1")).source == "assumed"


def test_what_a_proxy_says_of_all_deployments_together_is_not_called_served(serve: Any, bodies: Payload) -> None:
    server = serve({"GET /v1/models": bodies("litellm_v1_models")})
    own = replace(hosted("litellm-proxy", "prod-coder", f"{server.url}/v1"))
    found = window(replace(own, provider=replace(own.provider, self_hosted=True)))
    assert (found.size, found.confidence) == (40_960, "listed")
    assert "widest" in found.detail


ODD = [0, -1, 1, 255, 20_000_001, 1e30, 8192.5, "8192", "None", "", True, False, None, [], {}, [8192], {"a": 1}]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_no_list_makes_a_window_of_what_is_none(odd: Any, bodies: Payload) -> None:
    """Every number of every list is replaced: nothing is found, and nothing raises."""

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replaced(inner) for name, inner in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [replaced(inner) for inner in cast("list[Any]", value)]
        return odd if isinstance(value, int) and not isinstance(value, bool) else value

    for card, _, answers, model, _ in SAID:
        link = hosted(card, model)
        asks = [ask for probe in probes_for(link) for ask in probe.asks(link)]
        for name in answers.values():
            found = read_all(link, Answers(dict.fromkeys(asks, replaced(bodies(name)))))
            assert found is None or not found[1].found, (card, model, name)


NAMES = st.sampled_from(
    (
        *("data", "models", "providers", "endpoints", "id", "name", "slug", "model_name", "model_info", "limits"),
        *("capabilities", "context_length", "context_window", "max_tokens", "max_context_window", "metadata"),
        *("max_input_tokens", "max_output_tokens", "contextLength", "maxContextLength", "top_provider", "meta"),
        *("effective_context_window_percent", "max_prompt_tokens", "provider", "inputTokenLimit", "max_model_len"),
    )
)
ODDITIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["m", "m:x", "models/m", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


@given(
    ODDITIES, ODDITIES, st.sampled_from(["m", "m:x", "accounts/a/models/m", "m-2025-08-07", "", "#", "models/"])
)
def test_no_answer_breaks_a_probe_or_gives_more_than_a_window_can_be(one: Any, two: Any, model: str) -> None:
    for name in PROBES:
        card = "litellm-proxy" if name == "litellm" else "groq"
        link = replace(LINKS[card], model=model)
        probe = PROBES[name]
        asks = probe.asks(link)
        reading = probe.read(link, Answers(dict(zip(asks, (one, two, one), strict=False))))
        if reading is not None:
            for size in (reading.served, reading.trained, reading.prompt, reading.output, reading.default):
                assert size is None or SMALLEST <= size <= LARGEST


LINKS = {name: hosted(name, "m") for name in ("groq", "litellm-proxy")}
