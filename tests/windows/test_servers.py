"""Each server of one's own, on a real socket, read through the public registry: what it is, is what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentx.config.links import Link
from agentx.windows.record import Window
from agentx.windows.registry import WindowRegistry
from tests.windows.conftest import run

Make = Callable[..., Link]
Payload = Callable[[str], Any]
Size = tuple[int | None, ...]
"""Size, served, trained, prompt limit."""


def said(window: Window) -> Size:
    return window.size, window.served, window.trained, window.prompt


def entry(model: str, owner: str | None = None, **more: Any) -> dict[str, Any]:
    owned = {} if owner is None else {"owned_by": owner}
    return {"id": model, "object": "model", **owned, **more}


def listed(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


LM_INSTANCES: list[dict[str, Any]] = [
    {
        "key": "qwen/qwen3-4b",
        "max_context_length": 262144,
        "selected_variant": "qwen/qwen3-4b@q4_k_m",
        "loaded_instances": [
            {"id": "qwen/qwen3-4b", "config": {"context_length": 32768, "parallel": 1}},
            {"id": "qwen/qwen3-4b:2", "config": {"context_length": 8192, "parallel": 4}},
        ],
    },
    {"key": "google/gemma-3", "max_context_length": 131072, "loaded_instances": []},
]
ROUTER_OF_ONE = {"id": "a", "owned_by": "llamacpp", "status": {"value": "loaded"}, "meta": {"n_ctx": 9000}}
OLLAMA = {"GET /v1/models": "ollama_v1_models", "GET /api/ps": "ollama_api_ps", "GET /api/tags": "ollama_api_tags"}
KOBOLD = listed(entry("koboldcpp/Qwen3-30B", "koboldcpp", root="koboldcpp"))
KOBOLD_ROUTER = listed(entry("koboldcpp/one", "koboldcpp"), entry("two.kcpps", "koboldcpp"))
LEMONADE = listed(
    entry("Qwen3-4B-GGUF", "lemonade", recipe="llamacpp", recipe_options={"ctx_size": 8192}),
    entry("Idle-GGUF", "lemonade", recipe_options={"ctx_size": 16384}, max_context_window=65536),
    entry("Plain-GGUF", "lemonade"),
)
LEMONADE_HEALTH = {
    "status": "ok",
    "model_loaded": "Qwen3-4B-GGUF",
    "all_models_loaded": [
        {
            "model_name": "Qwen3-4B-GGUF",
            "type": "llm",
            "max_context_window": 40960,
            "recipe_options": {"ctx_size": 12288, "llamacpp_backend": "vulkan"},
        }
    ],
}
DOCKER = listed(entry("docker.io/ai/qwen2.5-coder:latest", "docker"), entry("ai/plain", "docker"))
DOCKER_PLAIN = {
    "id": "sha256:1",
    "tags": ["ai/plain:latest"],
    "config": {"format": "gguf", "architecture": "qwen2"},
}
SGLANG = {"GET /v1/models": "sglang_v1_models", "GET /server_info": "sglang_server_info"}
OLD_SGLANG = {"GET /v1/models": "sglang_v1_models", "GET /get_server_info": "sglang_server_info"}
LM0 = {"GET /v1/models": "lmstudio_v1_models", "GET /api/v0/models": "lmstudio_api_v0_models"}
LM1: dict[str, Any] = {"GET /v1/models": "lmstudio_v1_models", "GET /api/v1/models": {"models": LM_INSTANCES}}
LLAMACPP = {"GET /v1/models": "llamacpp_v1_models", "GET /props": "llamacpp_props"}
ROUTER = {"GET /v1/models": "llamacpp_router_models", "GET /props": {"role": "router", "n_ctx": 0}}
LITELLM = {"GET /v1/models": "litellm_v1_models", "GET /v1/model/info": "litellm_v1_model_info"}

SERVERS: list[tuple[str, dict[str, Any], str, Size | None]] = [
    # what it is, its routes, the model asked for, what is known of it (None: nobody says)
    ("ollama, loaded", OLLAMA, "qwen3:14b", (4096, 4096, 40960, None)),
    ("ollama, :latest is implied", OLLAMA, "nomic-embed-text:latest", (2048, 2048, None, None)),
    (
        "ollama, not loaded, a Modelfile",
        OLLAMA | {"GET /api/ps": "ollama_api_ps_empty", "POST /api/show": "ollama_api_show"},
        "example:20b",
        (32768, 32768, 131072, None),
    ),
    (
        "ollama, a cloud model",
        OLLAMA | {"GET /api/ps": "ollama_api_ps_empty", "POST /api/show": "ollama_api_show_cloud"},
        "deepseek-v4-flash:cloud",
        (1048576, 1048576, 1048576, None),
    ),
    (
        "ollama, an MLX model takes its maximum",
        OLLAMA
        | {
            "GET /api/ps": {
                "models": [{"name": "m", "details": {"format": "safetensors"}, "context_length": 4096}]
            },
            "POST /api/show": {
                "details": {"format": "safetensors"},
                "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
            },
        },
        "m",
        (40960, 40960, 40960, None),
    ),
    ("lm studio v0, loaded", LM0, "qwen3-coder-30b", (81920, 81920, 262144, None)),
    ("lm studio v0, not loaded", LM0, "meta-llama-3.1-8b-instruct", None),
    ("lm studio v1, its smallest instance", LM1, "qwen3-4b", (8192, 8192, 262144, None)),
    ("lm studio v1, the first instance", LM1, "qwen/qwen3-4b", (32768, 32768, 262144, None)),
    ("lm studio v1, the second instance", LM1, "qwen/qwen3-4b:2", (8192, 8192, 262144, None)),
    ("lm studio v1, no such instance", LM1, "qwen/qwen3-4b:3", None),
    ("lm studio v1, another variant", LM1, "qwen/qwen3-4b@q8_0", None),
    ("lm studio v1, the loaded variant", LM1, "qwen/qwen3-4b@Q4_K_M", (8192, 8192, 262144, None)),
    ("lm studio v1, not loaded", LM1, "google/gemma-3", None),
    ("llama.cpp", LLAMACPP, "any name", (16384, 16384, 40960, None)),
    (
        "llama.cpp, an older build",
        LLAMACPP | {"GET /v1/models": listed(entry("m", "llamacpp", meta={"n_ctx_train": 40960}))},
        "m",
        (16384, 16384, 40960, None),
    ),
    (
        "llama.cpp, loading",
        {"GET /v1/models": "llamacpp_v1_models_loading", "GET /props": 503},
        "m",
        None,
    ),
    (
        "llama.cpp, only the slots say it",
        {"GET /v1/models": "llamacpp_v1_models_loading", "GET /props": 401, "GET /slots": "llamacpp_slots"},
        "m",
        (16384, 16384, None, None),
    ),
    ("llama.cpp router, an alias", ROUTER, "gemma", (8192, 8192, 131072, None)),
    ("llama.cpp router, not loaded", ROUTER, "ggml-org/gpt-oss-20b-GGUF", None),
    ("llama.cpp router, unknown", ROUTER, "nope", None),
    ("llama.cpp router of one, unknown", {"GET /v1/models": listed(ROUTER_OF_ONE), "GET /props": 401}, "b", None),
    ("llama.cpp router of one", {"GET /v1/models": listed(ROUTER_OF_ONE), "GET /props": 401}, "a", (9000,) * 2),
    ("vllm", {"GET /v1/models": "vllm_v1_models"}, "Qwen/Qwen3-32B", (40960, 40960, None, None)),
    ("vllm, an adapter", {"GET /v1/models": "vllm_v1_models"}, "my-lora", (40960, 40960, None, None)),
    ("vllm, unknown", {"GET /v1/models": "vllm_v1_models"}, "nope", None),
    ("sglang", SGLANG, "Qwen/Qwen3-32B", (65530, 65536, None, 65530)),
    ("sglang, an adapter", SGLANG, "lora0", (65530, 65536, None, 65530)),
    ("sglang, an older build", OLD_SGLANG, "Qwen/Qwen3-32B", (65530, 65536, None, 65530)),
    (
        "sglang, also where it speaks Ollama",
        SGLANG
        | {
            "GET /api/tags": {"models": [{"name": "x", "details": {"format": "sglang"}}]},
            "POST /api/show": {
                "details": {"format": "sglang"},
                "model_info": {"general.architecture": "m", "m.context_length": 131072},
            },
        },
        "Qwen/Qwen3-32B",
        (65530, 65536, None, 65530),
    ),
    ("tgi", {"GET /v1/models": listed(entry("m")), "GET /info": "tgi_info"}, "m", (8191, 8192, None, 8191)),
    ("tgi, no list", {"GET /info": "tgi_info"}, "m", (8191, 8192, None, 8191)),
    ("litellm", LITELLM, "prod-coder", (40960, None, None, 40960)),
    ("litellm, nothing known", LITELLM, "mystery", None),
    (
        "litellm, its list is wider than its smallest deployment",
        LITELLM | {"GET /v1/models": listed(entry("prod-coder", "openai", max_input_tokens=131072))},
        "prod-coder",
        (40960, None, None, 40960),
    ),
    (
        "koboldcpp, among what it imitates",
        {
            "GET /v1/models": KOBOLD,
            "GET /api/extra/true_max_context_length": "koboldcpp_true_max",
            "GET /api/ps": {"models": [{"name": "koboldcpp/Qwen3-30B", "context_length": 4096}]},
            "GET /props": {"default_generation_settings": {"n_ctx": 2048}},
        },
        "koboldcpp/Qwen3-30B",
        (8192, 8192, None, None),
    ),
    (
        "koboldcpp, an older build",
        {"GET /v1/models": KOBOLD, "GET /api/v1/config/max_context_length": {"value": 2048}},
        "x",
        (2048, 2048, None, None),
    ),
    (
        "koboldcpp router, the loaded one",
        {"GET /v1/models": KOBOLD_ROUTER, "GET /api/extra/true_max_context_length": {"value": 6144}},
        "koboldcpp/one",
        (6144, 6144, None, None),
    ),
    (
        "koboldcpp router, another one",
        {"GET /v1/models": KOBOLD_ROUTER, "GET /api/extra/true_max_context_length": {"value": 6144}},
        "two.kcpps",
        None,
    ),
    (
        "lemonade, loaded",
        {"GET /v1/models": LEMONADE, "GET /api/v1/health": LEMONADE_HEALTH},
        "Qwen3-4B-GGUF",
        (12288, 12288, 40960, None),
    ),
    (
        "lemonade, not loaded, a saved size",
        {"GET /v1/models": LEMONADE, "GET /api/v1/health": LEMONADE_HEALTH},
        "Idle-GGUF",
        (16384, 16384, 65536, None),
    ),
    (
        "lemonade, nothing known",
        {"GET /v1/models": LEMONADE, "GET /api/v1/health": LEMONADE_HEALTH},
        "Plain-GGUF",
        None,
    ),
    (
        "docker, the model's own size",
        {"GET /v1/models": DOCKER, "GET /models/ai/qwen2.5-coder": "docker_model_runner_model"},
        "ai/qwen2.5-coder",
        (8192, 8192, 32768, None),
    ),
    (
        "docker, a configured size",
        {
            "GET /v1/models": DOCKER,
            "GET /models/ai/plain": DOCKER_PLAIN,
            "GET /engines/_configure": [{"Backend": "llama.cpp", "Config": {"context-size": 24576}}],
        },
        "ai/plain",
        (24576, 24576, None, None),
    ),
    (
        "docker, no size: its engine's default",
        {
            "GET /v1/models": DOCKER,
            "GET /models/ai/plain": DOCKER_PLAIN,
            "GET /api/ps": {"models": [{"name": "ai/plain"}]},
        },
        "ai/plain",
        (4096, 4096, None, None),
    ),
    (
        "text-generation-webui",
        {"GET /v1/models": listed(entry("m", "user")), "GET /v1/internal/model/info": "tgwui_model_info"},
        "m",
        None,
    ),
    ("mlx_lm", {"GET /v1/models": "mlx_lm_models"}, "mlx-community/Qwen3-8B-4bit", None),
    ("localai", {"GET /v1/models": listed(entry("m"))}, "m", None),
    ("jan, with llama.cpp's list", LLAMACPP, "Qwen3-4B-Q4_K_M.gguf", (16384, 16384, 40960, None)),
    ("an unknown server with a window", {"GET /v1/models": listed(entry("m", "me", n_ctx=1))}, "m", None),
    (
        "an unknown server with a field of the census",
        {"GET /v1/models": listed(entry("m", "me", context_length=5000))},
        "m",
        (5000, 5000, None, None),
    ),
]
CARDS = [(), ("llamacpp", "openai_list"), ("ollama", "openai_list")]
"""None, and wrong ones: a user may call any server anything."""


@pytest.mark.parametrize("probes", CARDS, ids=str)
@pytest.mark.parametrize(
    ("routes", "model", "expected"), [one[1:] for one in SERVERS], ids=[s[0] for s in SERVERS]
)
def test_a_server_is_read_for_what_it_is_whatever_its_card(
    routes: dict[str, Any],
    model: str,
    expected: Size | None,
    probes: tuple[str, ...],
    serve: Any,
    link: Make,
    payload: Payload,
    clock: Any,
) -> None:
    server = serve({route: payload(one) if isinstance(one, str) else one for route, one in routes.items()})
    one = link(f"{server.url}/v1", model, probes=probes)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        window = registry.window(one)
        if expected is None:
            assert window.source == "assumed", window
        else:
            assert said(window)[: len(expected)] == expected, window
            assert window.source in ("served", "listed")

    run(work, clock)
    assert not [line for line in server.asked() if "load" in line.removesuffix("all_models_loaded")]
    posts = {line for line in server.asked() if line.startswith("POST")}
    assert posts <= {"POST /api/show"}, "nothing that could wake a model"


@pytest.mark.parametrize(
    ("name", "probes", "most"),
    [
        ("ollama, loaded", ("ollama",), 4),
        ("lm studio v1, its smallest instance", ("lmstudio",), 3),
        ("llama.cpp", ("llamacpp",), 2),
        ("vllm", ("vllm",), 1),
        ("sglang", ("sglang",), 2),
        ("tgi", ("tgi",), 2),
        ("koboldcpp, among what it imitates", ("koboldcpp",), 2),
        ("lemonade, loaded", ("lemonade",), 2),
        ("docker, a configured size", ("docker",), 3),
        ("vllm", (), 1),
        ("koboldcpp, among what it imitates", ("ollama",), 4),
        ("llama.cpp", (), 2),
    ],
)
def test_one_server_is_asked_few_questions(
    name: str, probes: tuple[str, ...], most: int, serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    _, routes, model, _ = next(one for one in SERVERS if one[0] == name)
    server = serve({route: payload(one) if isinstance(one, str) else one for route, one in routes.items()})
    one = link(f"{server.url}/v1", model, probes=probes)

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert registry.window(one).source == "served"
        first = len(server.log)
        assert first <= most, server.asked()
        clock.at += 30
        await registry.touch(one)
        assert len(server.log) - first <= most, server.asked()

    run(work, clock)


def test_a_server_that_says_nothing_is_not_asked_everything_on_every_turn(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    """mlx_lm has a list and no more: what it does not have is asked again after ten minutes."""
    server = serve({"GET /v1/models": payload("mlx_lm_models")})
    one = link(f"{server.url}/v1", "mlx-community/Qwen3-8B-4bit")

    async def work(registry: WindowRegistry) -> None:
        for _ in range(20):
            await registry.touch(one)
            registry.succeeded(one, 100)
            await registry.refresh([one])
            clock.at += 25
        assert server.asked().count("GET /props") == 2, "the second time after the first success"
        assert server.asked().count("GET /v1/models") == 40
        clock.at += 600
        await registry.touch(one)
        assert server.asked().count("GET /props") == 3

    run(work, clock)


def test_an_address_without_its_version_or_with_more_of_it_is_the_same_server(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    health = {"GET /api/v1/health": LEMONADE_HEALTH, "GET /api/v1/models": LEMONADE, "GET /v1/models": LEMONADE}
    lemonade = serve(health)
    docker = serve(
        {
            "GET /engines/v1/models": DOCKER,
            "GET /engines/llama.cpp/v1/models": DOCKER,
            "GET /models/ai/qwen2.5-coder": payload("docker_model_runner_model"),
        }
    )
    links = [
        *(link(lemonade.url + path, "Qwen3-4B-GGUF") for path in ("", "/v1", "/api/v1")),
        *(link(docker.url + path, "ai/qwen2.5-coder") for path in ("/engines/v1", "/engines/llama.cpp/v1")),
    ]

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh(links)
        assert [registry.window(one).size for one in links] == [12288, 12288, 12288, 8192, 8192]

    run(work, clock)


def test_a_port_that_another_kind_of_server_has_taken_over_is_seen(
    serve: Any, link: Make, payload: Payload, clock: Any
) -> None:
    server = serve({"GET /v1/models": payload("vllm_v1_models")})
    one = link(f"{server.url}/v1", "Qwen/Qwen3-32B")

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        server.routes.clear()
        server.routes |= {
            "GET /v1/models": payload("sglang_v1_models"),
            "GET /server_info": payload("sglang_server_info"),
        }
        clock.at += 60
        await registry.touch(one)
        assert (registry.window(one).size, registry.window(one).prompt) == (65530, 65530)

    run(work, clock)
