"""Every face says its window where the real server says it, and nowhere else."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agentx.testing.conversations import conversation27
from agentx.testing.counting import count_prompt
from agentx.testing.faces import Face
from agentx.testing.faults import Slow, Status
from agentx.testing.server import Claim, FaultServer

ASK: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "Say hello."}]}


@pytest.mark.parametrize(("claims", "said"), [("true", 4_096), ("absent", None), (131_072, 131_072)])
def test_a_list_says_the_truth_nothing_or_something_else(
    client: httpx.Client, claims: Claim, said: int | None
) -> None:
    with FaultServer(window=4_096, claims=claims) as server:
        (entry,) = client.get(f"{server.v1}/models").json()["data"]
    assert entry["id"] == "scripted"
    assert entry.get("context_length") == said


def test_ollama_says_its_window_only_when_it_is_loaded(client: httpx.Client) -> None:
    with FaultServer(face="ollama", models=["qwen3:14b"], window=4_096, trained=40_960) as server:
        assert client.get(f"{server.url}/api/ps").json() == {"models": []}
        client.post(f"{server.url}/api/chat", json=ASK | {"model": "qwen3:14b"})
        (running,) = client.get(f"{server.url}/api/ps").json()["models"]
        shown = client.post(f"{server.url}/api/show", json={"model": "qwen3:14b"}).json()
        (tag,) = client.get(f"{server.url}/api/tags").json()["models"]
        (listed,) = client.get(f"{server.v1}/models").json()["data"]
        assert "version" in client.get(f"{server.url}/api/version").json()
    assert (running["name"], running["context_length"]) == ("qwen3:14b", 4_096)
    assert shown["model_info"]["general.architecture"] == "qwen2"
    assert shown["model_info"]["qwen2.context_length"] == 40_960
    assert "parameters" not in shown
    assert tag["name"] == "qwen3:14b"
    assert set(listed) == {"id", "object", "created", "owned_by"}


def test_an_old_ollama_says_no_window_and_a_modelfile_sets_one(client: httpx.Client) -> None:
    with FaultServer(face="ollama", modelfile=8_192, claims="absent", loaded=True) as server:
        (running,) = client.get(f"{server.url}/api/ps").json()["models"]
        shown = client.post(f"{server.url}/api/show", json={"model": "scripted:latest"}).json()
        client.post(f"{server.url}/api/chat", json=ASK)
        assert server.loads == [8_192]
    assert "context_length" not in running
    assert shown["parameters"].splitlines()[0].split() == ["num_ctx", "8192"]


def test_llamacpp_says_its_window_in_three_places_and_counts(client: httpx.Client) -> None:
    messages = conversation27()
    with FaultServer(face="llamacpp", window=4_096, trained=32_768) as server:
        meta = client.get(f"{server.v1}/models").json()["data"][0]["meta"]
        props = client.get(f"{server.url}/props").json()
        (slot,) = client.get(f"{server.url}/slots").json()
        prompt = client.post(f"{server.url}/apply-template", json={"messages": messages}).json()["prompt"]
        tokens = client.post(f"{server.url}/tokenize", json={"content": prompt}).json()["tokens"]
        counted = client.post(f"{server.v1}/chat/completions/input_tokens", json={"messages": messages}).json()
        assert client.get(f"{server.url}/health").json() == {"status": "ok"}
    assert (meta["n_ctx"], meta["n_ctx_train"]) == (4_096, 32_768)
    assert props["default_generation_settings"]["n_ctx"] == 4_096
    assert props["total_slots"] == 1
    assert slot["n_ctx"] == 4_096
    assert counted == {"input_tokens": count_prompt(messages), "object": "response.input_tokens"}
    assert 0.9 < len(tokens) / counted["input_tokens"] < 1.1


def test_lmstudio_says_the_loaded_window_in_both_lists(client: httpx.Client) -> None:
    with FaultServer(face="lmstudio", window=8_192, trained=262_144) as server:
        (before,) = client.get(f"{server.url}/api/v0/models").json()["data"]
        (empty,) = client.get(f"{server.url}/api/v1/models").json()["models"]
        client.post(f"{server.v1}/chat/completions", json=ASK)
        after = client.get(f"{server.url}/api/v0/models/scripted").json()
        (full,) = client.get(f"{server.url}/api/v1/models").json()["models"]
        unknown = client.get(f"{server.url}/props")
    assert (before["state"], before["max_context_length"]) == ("not-loaded", 262_144)
    assert "loaded_context_length" not in before
    assert (after["state"], after["loaded_context_length"]) == ("loaded", 8_192)
    assert empty["loaded_instances"] == []
    assert full["loaded_instances"][0]["config"]["context_length"] == 8_192
    assert unknown.status_code == 200
    assert "Unexpected endpoint" in unknown.json()["error"]


def test_vllm_says_its_window_in_the_list_and_when_it_counts(client: httpx.Client) -> None:
    with FaultServer(face="vllm", window=40_960) as server:
        (entry,) = client.get(f"{server.v1}/models").json()["data"]
        counted = client.post(f"{server.url}/tokenize", json=ASK).json()
    assert entry["max_model_len"] == 40_960
    assert counted["count"] == count_prompt(ASK["messages"]) == len(counted["tokens"])
    assert counted["max_model_len"] == 40_960


def test_lists_can_fail_and_be_slow_while_chats_go_on(client: httpx.Client) -> None:
    with FaultServer(list_fault=Status(503)) as server:
        assert client.get(f"{server.v1}/models").status_code == 503
        assert client.post(f"{server.v1}/chat/completions", json=ASK).status_code == 200
    with FaultServer(list_fault=Slow(0.01)) as server:
        assert client.get(f"{server.v1}/models").status_code == 200


def test_the_window_can_change_while_the_server_runs(client: httpx.Client) -> None:
    with FaultServer(face="llamacpp", window=8_192) as server:
        client.post(f"{server.v1}/chat/completions", json=ASK)
        server.window = 2_048
        assert client.get(f"{server.url}/props").json()["default_generation_settings"]["n_ctx"] == 2_048


def test_routes_of_other_servers_are_404(client: httpx.Client) -> None:
    with FaultServer(face="openai") as server:
        assert client.get(f"{server.url}/api/ps").status_code == 404
        assert client.post(f"{server.url}/api/chat", json=ASK).status_code == 404


@pytest.mark.parametrize(
    ("face", "route", "said"),
    [
        ("sglang", "/server_info", {"max_total_num_tokens": 8_192, "max_req_input_len": 8_186}),
        ("tgi", "/info", {"max_total_tokens": 8_192, "max_input_tokens": 8_191}),
        ("koboldcpp", "/api/extra/true_max_context_length", {"value": 8_192}),
    ],
)
def test_engines_say_their_window_on_one_route(
    client: httpx.Client, face: Face, route: str, said: dict[str, int]
) -> None:
    with FaultServer(face=face, window=8_192, trained=131_072) as server:
        assert client.get(server.url + route).json().items() >= said.items()
        (entry,) = client.get(f"{server.v1}/models").json()["data"]
        assert 8_192 not in entry.values()
        server.claims = "absent"
        silent = client.get(server.url + route)
        assert silent.status_code == 404 or not silent.json().keys() & said.keys()
        assert client.get(f"{server.url}/props").status_code == 404
