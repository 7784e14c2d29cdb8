"""Each server is read for what it serves now, and for nothing that only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentx.config.links import Link
from agentx.windows.probes import PROBES, SELF_HOSTED, Answers, Ask, Reading, probes_for, questions, read_all

Make = Callable[..., Link]
Payload = Callable[[str], Any]
BASE = "http://server:1"
API = "https://api.example.org/v1"


def read(name: str, link: Link, answers: dict[str, Any]) -> Reading | None:
    """What the probe *name* reads, given answers by the end of the question's path."""
    probe = PROBES[name]
    given = {ask: answers[path] for ask in probe.asks(link) if (path := ending(ask, answers))}
    given |= {ask: answers[path] for ask in probe.more(link, Answers(given)) if (path := ending(ask, answers))}
    return probe.read(link, Answers(given))


def ending(ask: Ask, answers: dict[str, Any]) -> str | None:
    return next((end for end in answers if ask.url.partition("?")[0].endswith(end)), None)


def sizes(reading: Reading | None) -> tuple[int | None, ...]:
    """Served, trained, prompt, output."""
    assert reading is not None
    return reading.served, reading.trained, reading.prompt, reading.output


def test_ollama_serves_what_api_ps_says_and_not_the_trained_length(link: Make, payload: Payload) -> None:
    answers = {"/api/ps": payload("ollama_api_ps"), "/api/tags": payload("ollama_api_tags")}
    assert sizes(read("ollama", link(BASE), answers)) == (4096, 40960, None, None)


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "library/Nomic-Embed-Text"])
def test_ollama_names_are_the_same_with_and_without_latest(name: str, link: Make, payload: Payload) -> None:
    assert sizes(read("ollama", link(BASE, name), {"/api/ps": payload("ollama_api_ps")}))[0] == 2048


def test_ollama_reads_the_length_of_the_models_own_architecture(link: Make, payload: Payload) -> None:
    """The rope's original length stands beside it under nearly the same name."""
    answers = {"/api/ps": payload("ollama_api_ps_empty"), "/api/show": payload("ollama_api_show")}
    reading = read("ollama", link(BASE, "example:20b"), answers)
    assert sizes(reading) == (None, 131072, None, None)
    assert reading is not None and reading.default == 32768


def test_an_ollama_cloud_model_runs_at_its_maximum(link: Make, payload: Payload) -> None:
    answers = {"/api/ps": payload("ollama_api_ps_empty"), "/api/show": payload("ollama_api_show_cloud")}
    assert sizes(read("ollama", link(BASE, "deepseek-v4-flash:cloud"), answers)) == (1048576, 1048576, None, None)


def test_sglang_and_llamacpp_are_not_taken_for_ollama(link: Make, payload: Payload) -> None:
    show = {"details": {"format": "sglang"}, "model_info": {"general.architecture": "m", "m.context_length": 9000}}
    assert read("ollama", link(BASE), {"/api/show": show}) is None
    assert read("ollama", link(BASE), {"/api/ps": {"error": "unknown route"}}) is None


def test_lm_studio_counts_the_loaded_length_only_when_loaded(link: Make, payload: Payload) -> None:
    v0 = {"/api/v0/models": payload("lmstudio_api_v0_models")}
    assert sizes(read("lmstudio", link(BASE, "qwen3-coder-30b"), v0)) == (81920, 262144, None, None)
    assert sizes(read("lmstudio", link(BASE, "qwen/Qwen3-Coder-30B"), v0)) == (81920, 262144, None, None)
    assert sizes(read("lmstudio", link(BASE, "meta-llama-3.1-8b-instruct"), v0)) == (None, 131072, None, None)


def test_lm_studio_takes_the_smallest_instance_unless_one_is_named(link: Make) -> None:
    instances = [
        {"id": "m", "config": {"context_length": 16384}},
        {"id": "m:2", "config": {"context_length": 8192}},
    ]
    v1 = {
        "/api/v1/models": {"models": [{"key": "a/m", "max_context_length": 65536, "loaded_instances": instances}]}
    }
    assert sizes(read("lmstudio", link(BASE, "a/m"), v1))[0] == 8192
    assert sizes(read("lmstudio", link(BASE, "m"), v1))[0] == 16384
    assert sizes(read("lmstudio", link(BASE, "m:2"), v1))[0] == 8192


def test_llamacpp_serves_the_window_of_one_slot(link: Make, payload: Payload) -> None:
    """A single server takes any model name."""
    listed = {"/v1/models": payload("llamacpp_v1_models")}
    assert sizes(read("llamacpp", link(BASE, "whatever"), listed)) == (16384, 40960, None, None)


def test_llamacpp_builds_without_the_field_say_it_in_props(link: Make, payload: Payload) -> None:
    answers = {"/v1/models": payload("llamacpp_v1_models_loading"), "/props": payload("llamacpp_props")}
    assert sizes(read("llamacpp", link(BASE, "m"), answers)) == (16384, None, None, None)


def test_a_llamacpp_router_is_read_by_model_and_its_zero_is_no_window(link: Make, payload: Payload) -> None:
    answers = {
        "/v1/models": payload("llamacpp_router_models"),
        "/props": {"role": "router", "default_generation_settings": {"n_ctx": 0}},
    }
    assert sizes(read("llamacpp", link(BASE, "gemma"), answers)) == (8192, 131072, None, None)
    assert sizes(read("llamacpp", link(BASE, "ggml-org/gpt-oss-20b-GGUF"), answers))[0] is None


def test_a_llamacpp_probe_never_names_a_model_since_that_would_load_it(link: Make) -> None:
    assert all("?" not in ask.url for ask in PROBES["llamacpp"].asks(link(BASE)))


def test_vllm_counts_the_parents_window_for_an_adapter(link: Make, payload: Payload) -> None:
    listed = {"/v1/models": payload("vllm_v1_models")}
    assert sizes(read("vllm", link(BASE, "Qwen/Qwen3-32B"), listed))[0] == 40960
    assert sizes(read("vllm", link(BASE, "my-lora"), listed))[0] == 40960
    assert sizes(read("vllm", link(BASE, "nope"), listed))[0] is None


def test_vllm_adapters_in_a_circle_end(link: Make) -> None:
    rows = [{"id": a, "parent": b, "max_model_len": None} for a, b in (("a", "b"), ("b", "a"))]
    assert sizes(read("vllm", link(BASE, "a"), {"/v1/models": {"data": rows}}))[0] is None


def test_sglang_is_held_to_what_it_enforces(link: Make, payload: Payload) -> None:
    answers = {"/v1/models": payload("sglang_v1_models"), "/server_info": payload("sglang_server_info")}
    assert sizes(read("sglang", link(BASE, "Qwen/Qwen3-32B"), answers)) == (65536, None, 65530, None)
    assert read("vllm", link(BASE, "Qwen/Qwen3-32B"), answers) is None


def test_tgi_says_both_limits(link: Make, payload: Payload) -> None:
    assert sizes(read("tgi", link(BASE), {"/info": payload("tgi_info")})) == (8192, None, 8191, None)


def test_a_litellm_proxy_is_read_by_alias_and_the_smallest_deployment_counts(link: Make, payload: Payload) -> None:
    info = payload("litellm_v1_model_info")
    answers = {"/v1/model/info": info}
    assert sizes(read("litellm", link(BASE, "prod-coder"), answers)) == (None, None, 40960, 8192)
    assert sizes(read("litellm", link(BASE, "mystery"), answers)) == (None, None, None, None)
    info["data"].append({"model_name": "prod-coder", "model_info": {"max_input_tokens": 8192}})
    assert sizes(read("litellm", link(BASE, "prod-coder"), answers))[2] == 8192


def test_openrouter_takes_the_smallest_endpoint_else_the_top_provider(link: Make, payload: Payload) -> None:
    one = link(API, "qwen/qwen3-coder:free", self_hosted=False)
    listed = {"/models": payload("openrouter_models")}
    assert sizes(read("openrouter", one, listed)) == (262000, None, None, 262000)
    endpoints = {
        "data": {"endpoints": [{"context_length": 131072}, {"context_length": 65536, "max_prompt_tokens": 60000}]}
    }
    assert sizes(read("openrouter", one, listed | {"/endpoints": endpoints})) == (65536, None, 60000, None)
    assert read("openrouter", link(API, "openrouter/auto", self_hosted=False), listed) is None


def test_anthropic_says_window_and_output_and_an_undated_name_stands_for_its_snapshot(
    link: Make, payload: Payload
) -> None:
    listed = {"/v1/models": payload("anthropic_models")}

    def numbers(model: str) -> tuple[int | None, ...]:
        return sizes(read("anthropic", link(None, model, self_hosted=False), listed))

    assert numbers("claude-sonnet-4-6") == (1000000, None, None, 128000)
    assert numbers("claude-sonnet-4-5") == numbers("claude-sonnet-4-5-20250929") == (200000, None, None, 64000)
    assert numbers("claude-old") == (None, None, None, None)


def test_gemini_has_two_separate_budgets(link: Make, payload: Payload) -> None:
    reading = read(
        "gemini", link(None, "gemini-2.5-pro", self_hosted=False), {"/models": payload("gemini_models")}
    )
    assert sizes(reading) == (None, None, 1048576, 65536)
    assert reading is not None and not reading.shared


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("groq_models", "qwen/qwen3-32b", (131072, None, None, 40960)),
        ("groq_models", "llama3-8b-8192", (None, None, None, None)),
        ("mistral_models", "mistral-large-latest", (262144, None, None, None)),
        ("mistral_models", "mistral-large-2512", (262144, None, None, None)),
        ("litellm_v1_models", "prod-coder", (None, None, 40960, 8192)),
        ("vercel_models", "anthropic/claude-sonnet-4.5", (200000, None, None, None)),
        ("openai_models", "gpt-5", (None, None, None, None)),
        ("deepseek_models", "deepseek-chat", (None, None, None, None)),
        ("ollama_v1_models", "qwen3:14b", (None, None, None, None)),
        ("lmstudio_v1_models", "qwen3-coder-30b", (None, None, None, None)),
        ("mlx_lm_models", "mlx-community/Qwen3-8B-4bit", (None, None, None, None)),
        ("xai_language_models", "grok-4.5", (None, None, None, None)),
        ("llamacpp_v1_models", "Qwen3-4B-Q4_K_M.gguf", (16384, 40960, None, None)),
        ("lmstudio_api_v0_models", "qwen3-coder-30b", (81920, None, None, None)),
        ("lmstudio_api_v0_models", "meta-llama-3.1-8b-instruct", (None, None, None, None)),
    ],
)
def test_a_plain_list_is_read_by_the_names_servers_use(
    name: str, model: str, expected: tuple[int | None, ...], link: Make, payload: Payload
) -> None:
    assert sizes(read("openai_list", link(API, model, self_hosted=False), {"/models": payload(name)})) == expected


def test_a_bare_array_and_nested_limits_are_lists_too(link: Make) -> None:
    one = link(API, "m", self_hosted=False)
    assert sizes(read("openai_list", one, {"/models": [{"id": "m", "context_length": 32768}]}))[0] == 32768
    limits = {"max_context_window_tokens": 400000, "max_prompt_tokens": 128000, "max_output_tokens": 16000}
    copilot = {"data": [{"id": "m", "capabilities": {"limits": limits}}]}
    assert sizes(read("openai_list", one, {"/models": copilot})) == (400000, None, 128000, 16000)


@pytest.mark.parametrize("value", [0, -1, 1e30, "8192", True, None, [], 255, 20_000_001])
def test_what_is_no_window_is_refused_and_said(value: Any, link: Make) -> None:
    listed = {"/models": {"data": [{"id": "m", "context_length": value}]}}
    reading = read("openai_list", link(API, "m", self_hosted=False), listed)
    assert reading is not None and not reading.found
    assert bool(reading.refused) == (value is not None)


@pytest.mark.parametrize(
    "value", [None, [], {}, "x", 3, {"data": None}, {"data": [None, 1]}, {"models": {"a": 1}}]
)
def test_no_answer_breaks_a_probe(value: Any, link: Make) -> None:
    for probe in PROBES.values():
        one = link(BASE, "m")
        reading = probe.read(one, Answers(dict.fromkeys(probe.asks(one), value)))
        assert reading is None or not reading.found


def test_a_self_hosted_address_is_asked_as_every_kind_of_server(link: Make) -> None:
    names = [probe.name for probe in probes_for(link(BASE, probes=("openai_list", "from-the-future")))]
    assert names == [*SELF_HOSTED, "openai_list"]
    assert [probe.name for probe in probes_for(link(API, self_hosted=False, probes=("openai_list",)))] == [
        "openai_list"
    ]


def test_the_readers_agree_on_one_reading_with_all_that_is_known(link: Make, payload: Payload) -> None:
    """The server behind an `openai-compatible` card is an Ollama: what it serves is found all the same."""
    one = link(f"{BASE}/v1", probes=("openai_list",))
    paths = {"/v1/models": "ollama_v1_models", "/api/ps": "ollama_api_ps", "/api/tags": "ollama_api_tags"}
    given: dict[Ask, Any] = {}
    while asks := questions(one, Answers(given), given):
        given |= {
            ask: payload(paths[path]) if (path := ask.url.removeprefix(BASE)) in paths else None for ask in asks
        }
    assert len(given) == 4, "only Ollama's questions, and the list"
    found = read_all(one, Answers(given))
    assert found is not None
    assert (found[0].name, *sizes(found[1])) == ("ollama", 4096, 40960, None, None)
