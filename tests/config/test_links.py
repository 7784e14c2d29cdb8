"""From a name to a link: cards, overrides, addresses, chains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.config.addresses import address, is_local
from agentx.config.links import Link, Provider
from agentx.config.load import numbered
from agentx.errors import ConfigError, UsageError
from agentx.wires.messages import Timers
from agentx.wires.timing import general, timers_for

if TYPE_CHECKING:
    from tests.config.conftest import Place


def test_a_model_may_hold_slashes_and_colons(place: Place) -> None:
    link = place.load().link("openrouter/qwen/qwen3-coder:free")
    assert (link.provider.name, link.model, link.name) == (
        "openrouter",
        "qwen/qwen3-coder:free",
        "openrouter/qwen/qwen3-coder:free",
    )


def test_a_provider_is_a_card_and_what_differs(place: Place) -> None:
    place.user(
        "providers:\n"
        "  gpu-box:\n"
        "    card: vllm\n"
        "    base_url: http://gpu-box:8000/v1/\n"
        "    api_key_env: GPU_KEY\n"
        "    headers: {X-Team: a}\n"
        "    options: {a: 1}\n"
    )
    config = place.load()
    vllm, own = config.provider("vllm"), config.provider("gpu-box")
    assert (own.name, own.card, own.base_url, own.api_key_env) == (
        "gpu-box",
        "vllm",
        "http://gpu-box:8000/v1",
        "GPU_KEY",
    )
    assert (own.clamps_output, own.probes, own.errors) == (vllm.clamps_output, vllm.probes, vllm.errors)
    assert (vllm.key_optional, own.key_optional) == (True, False)
    assert (own.headers, own.options) == ({"X-Team": "a"}, {"a": 1})


def test_an_entry_of_a_chain_keeps_what_it_says(place: Place) -> None:
    place.user(
        "chains:\n  night:\n"
        "    - {model: openai/gpt-5, name: main, window: 100000, force: true, max_tokens: 500, temperature: 0.5,"
        " api_key_env: MY_KEY}\n    - ollama/qwen3:14b\n"
    )
    first, second = place.load().chain()
    assert (first.name, first.window, first.force, first.max_tokens, first.temperature, first.key_variable) == (
        "main",
        100000,
        True,
        500,
        0.5,
        "MY_KEY",
    )
    assert (second.name, second.window, second.key_variable) == ("ollama/qwen3:14b", None, "OLLAMA_API_KEY")


def test_a_link_may_have_timers_of_its_own(place: Place) -> None:
    """Over the general ones; a model that thinks unseen gets longer without being told."""
    place.user(
        "timers: {connect: 2, first: 30}\nchains:\n  night:\n"
        "    - {model: openai/gpt-5, timers: {headers: 20, first: 60}}\n"
        "    - openai/o3\n    - {model: openai/o3, timers: {first: 40}}\n    - ollama/qwen3:14b\n"
    )
    config = place.load()
    timers = general(config.settings.timers)
    assert timers == Timers(connect=2, headers=None, first=30, idle=120, total=3600)
    assert [timers_for(link, timers) for link in config.chain()] == [
        replace(timers, headers=20, first=60),
        replace(timers, first=1200),
        replace(timers, first=40),
        timers,
    ]


def test_a_chain_may_be_written_on_the_command_line(place: Place) -> None:
    place.user("chains: {night: [openai/a, openai/b]}\n")
    config = place.load()
    names = [link.name for link in config.chain("ollama/qwen3:14b, night,openai/a")]
    assert names == ["ollama/qwen3:14b", "openai/a", "openai/b", "openai/a#2"]


@given(st.lists(st.sampled_from(["a", "b", "a#2", "b#2", "a#3"]), max_size=8))
def test_links_of_one_name_get_names_that_differ(names: list[str]) -> None:
    provider = Provider(name="p", card="p", wire="openai")
    links = numbered([Link(provider=provider, model="m", name=name) for name in names])
    given_names = [link.name for link in links]
    assert len(set(given_names)) == len(names)
    assert all(new.startswith(old) for new, old in zip(given_names, names, strict=True))


def test_the_only_chain_is_the_default_and_one_of_several_must_be_named(place: Place) -> None:
    place.user("chains: {a: [openai/x]}\n")
    assert [link.name for link in place.load().chain()] == ["openai/x"]
    place.user("chains: {a: [openai/x], b: [openai/y]}\n")
    with pytest.raises(ConfigError, match="several chains are set and none is the default"):
        place.load().chain()
    place.user("default_chain: b\nchains: {a: [openai/x], b: [openai/y]}\n")
    assert [link.name for link in place.load().chain()] == ["openai/y"]
    place.user("default_chain: bb\nchains: {aa: [openai/x], b-b: [openai/y]}\n")
    with pytest.raises(ConfigError) as caught:
        place.load().chain()
    assert (caught.value.problems[0].where, caught.value.hint) == (
        f"{place.user_file}:1:16",
        "did you mean `b-b`?",
    )


def test_what_is_not_there_is_said_with_the_nearest_name(place: Place) -> None:
    place.user("chains: {overnight: [openai/x]}\n")
    config = place.load()
    said: dict[str, tuple[str, str | None]] = {}
    for text in ("olama/x", "overnigth", "gpt-5", "", "openai-compatible/x"):
        with pytest.raises(UsageError) as caught:
            config.chain(text)
        said[text] = caught.value.message, caught.value.hint
    assert said["olama/x"] == ("there is no provider `olama`", "did you mean `ollama`?")
    assert said["overnigth"] == ("there is no chain `overnigth`", "did you mean `overnight`?")
    assert said["gpt-5"] == ("there is no chain `gpt-5`", "known: `overnight`")
    assert said[""][0] == "the chain is empty"
    assert said["openai-compatible/x"][0] == "the provider `openai-compatible` has no `base_url`"


def test_what_a_file_says_wrongly_is_said_with_its_place(place: Place) -> None:
    place.user(
        "chains:\n"
        "  night:\n"
        "    - model: olama/x\n"
        "    - openai-compatible/x\n"
        "    - box/x\n"
        "providers:\n"
        "  box: {base_url: http://box/v1}\n"
        "  bax: {card: vlm}\n"
        "default_chain: nihgt\n"
    )
    problems = [str(problem) for problem in place.load().problems()]
    file = place.user_file
    assert problems == [
        f"{file}:7:8: the provider `box` needs `card`: there is no card of its own name",
        f"{file}:8:8: there is no card `vlm`",
        f"{file}:3:14: there is no provider `olama`",
        f"{file}:4:7: the provider `openai-compatible` has no `base_url`",
        f"{file}:9:16: default_chain: there is no chain `nihgt`",
    ]


ADDRESSES = [
    ("box", "http://box:11434"),
    ("box:80", "http://box:80"),
    (":8080", "http://127.0.0.1:8080"),
    ("0.0.0.0", "http://127.0.0.1:11434"),
    ("0.0.0.0:9", "http://127.0.0.1:9"),
    ("[::]:9", "http://127.0.0.1:9"),
    ("[fe80::1]", "http://[fe80::1]:11434"),
    ("http://box", "http://box"),
    ("https://box:443/", "https://box:443"),
    ("https://box/ollama/", "https://box/ollama"),
    (" box ", "http://box:11434"),
]


@pytest.mark.parametrize(("text", "meant"), ADDRESSES, ids=[text for text, _ in ADDRESSES])
def test_ollama_host_is_read_as_ollama_reads_it(place: Place, text: str, meant: str) -> None:
    assert address(text, "http://127.0.0.1:11434") == meant
    assert place.load(environ={"OLLAMA_HOST": text}).provider("ollama").base_url == meant


def test_a_variable_that_holds_no_address_is_named(place: Place) -> None:
    for text in ("ftp://box", "box:port", "a b", "http://me:secret@box"):
        with pytest.raises(UsageError) as caught:
            place.load(environ={"OLLAMA_HOST": text}).provider("ollama")
        assert caught.value.message == "OLLAMA_HOST holds no address of a server"


def test_the_settings_win_over_the_variable(place: Place) -> None:
    place.user("providers: {ollama: {base_url: 'http://mine:1'}}\n")
    assert place.load(environ={"OLLAMA_HOST": "other"}).provider("ollama").base_url == "http://mine:1"


def test_a_hosted_card_at_a_local_address_is_ones_own_server(place: Place) -> None:
    """Its catalogue and its prices hold at the hosted service only, and who answers here may truncate."""
    hosted = place.load().provider("openai")
    assert (hosted.self_hosted, hosted.may_truncate, hosted.key_optional) == (False, False, False)
    own = place.load(environ={"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"}).provider("openai")
    assert (own.self_hosted, own.may_truncate, own.key_optional) == (True, True, True)
    place.user("providers: {openai: {base_url: 'http://10.0.0.7/v1', may_truncate: false}}\n")
    own = place.load().provider("openai")
    assert (own.self_hosted, own.may_truncate) == (True, False)
    elsewhere = place.load(environ={"OPENAI_BASE_URL": "https://proxy.example.com/v1"}).provider("groq")
    assert not elsewhere.self_hosted


def test_local_addresses_are_known() -> None:
    local = [
        "http://localhost:1/v1",
        "http://127.0.0.1",
        "http://192.168.1.9",
        "http://[::1]:1",
        "http://gpu-box:8000",
    ]
    assert all(map(is_local, local))
    assert not any(map(is_local, ["https://api.openai.com/v1", "http://8.8.8.8", "https://gpu.example.com"]))
