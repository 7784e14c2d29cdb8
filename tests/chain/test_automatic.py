"""A chain made from nothing: keys, then local servers that answer, then the embedded model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentx.chain.automatic import HOSTED, LOCAL, OWNERS, automatic_links
from agentx.chain.listing import Listed, list_url, names_in
from agentx.config.links import Link, Provider
from agentx.config.load import Config, load
from agentx.config.paths import paths
from agentx.config.resources import shipped
from agentx.errors import NoUsableModel
from agentx.testing.server import FaultServer
from agentx.wires.make import client

NOWHERE = "http://127.0.0.1:9"
"""Nothing listens on the discard port; a test must not find the servers of the machine it runs on."""

Configure = Callable[..., Config]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def made(environ: Mapping[str, str], **servers: str) -> Config:
        addresses = dict.fromkeys(LOCAL, f"{NOWHERE}/v1") | {"ollama": NOWHERE}
        lines = [f"  {name}: {{base_url: '{url}'}}" for name, url in (addresses | servers).items()]
        file = tmp_path / "config" / "agentx.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text("providers:\n" + "\n".join(lines) + "\n")
        home = {"AGENTX_HOME": str(tmp_path)}
        return load(paths(home), tmp_path, home | dict(environ), ())

    return made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def found(config: Config, environ: Mapping[str, str], local: Callable[[], bool] | None = None) -> tuple[Link, ...]:
    async def run() -> tuple[Link, ...]:
        async with client() as http:
            return await automatic_links(config, http, environ, local)

    return asyncio.run(run())


def test_keys_come_in_a_fixed_order_with_the_cards_model(configure: Configure) -> None:
    environ = {"GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": " "}
    config = configure(environ)
    links = found(config, environ)
    assert [link.provider.name for link in links] == ["anthropic", "groq"]
    assert [link.model for link in links] == [config.provider(n).default_model for n in ("anthropic", "groq")]


def test_a_local_server_gives_its_loaded_model_before_those_it_only_lists(
    configure: Configure, stack: ExitStack
) -> None:
    ollama = stack.enter_context(FaultServer(face="ollama", models=["qwen3:14b"], loaded=True))
    vllm = stack.enter_context(FaultServer(face="vllm", models=["nomic-embed-text", "qwen-coder"]))
    links = found(configure({}, ollama=ollama.url, vllm=vllm.v1), {})
    assert [link.name for link in links] == ["ollama/qwen3:14b", "vllm/qwen-coder"]
    assert ollama.chats == vllm.chats == []


def test_keys_come_before_servers_and_servers_before_the_embedded_model(
    configure: Configure, stack: ExitStack
) -> None:
    server = stack.enter_context(FaultServer(face="llamacpp", models=["m"]))
    environ = {"MISTRAL_API_KEY": "x"}
    links = found(configure(environ, llamacpp=server.v1), environ, lambda: True)
    assert [link.provider.name for link in links] == ["mistral", "llamacpp", "local"]


def test_a_server_that_is_no_model_server_is_passed_over(configure: Configure, stack: ExitStack) -> None:
    server = stack.enter_context(FaultServer(face="ollama", models=["m"]))
    with pytest.raises(NoUsableModel):
        found(configure({}, lmstudio=server.url + "/nothing", llamacpp=server.url + "/here"), {})


def test_the_users_own_server_is_asked_first(configure: Configure, stack: ExitStack) -> None:
    own = stack.enter_context(FaultServer(face="vllm", models=["big"]))
    config = configure({})
    file = config.files[0]
    file.write_text(f"{file.read_text()}  gpu-box: {{card: vllm, base_url: '{own.v1}'}}\n")
    home = {"AGENTX_HOME": str(file.parent.parent)}
    links = found(load(paths(home), file.parent, home, ()), {})
    assert [link.name for link in links] == ["gpu-box/big"]


@pytest.mark.parametrize(
    ("face", "card", "name"),
    [
        ("llamacpp", "llamacpp", "llamacpp"),
        ("vllm", "llamacpp", "vllm"),
        ("lmstudio", "vllm", "lmstudio"),
        ("openai", "llamacpp", "openai-compatible"),
        ("openai", "vllm", "openai-compatible"),
    ],
)
def test_on_a_port_that_many_servers_use_the_server_itself_says_what_it_is(
    face: Any, card: str, name: str, configure: Configure, stack: ExitStack
) -> None:
    """What a card says holds for its server only: that an output budget may be left out, say."""
    server = stack.enter_context(FaultServer(face=face, models=["m"]))
    config = configure({})
    file = config.files[0]
    file.write_text("\n".join(line for line in file.read_text().splitlines() if not line.startswith(f"  {card}:")))
    shipped_card = (shipped("providers") / f"{card}.yaml").read_text(encoding="utf-8")
    own = file.parent / "providers" / f"{card}.yaml"
    own.parent.mkdir()
    own.write_text(re.sub(r"(?m)^base_url: .*$", f"base_url: {server.v1}", shipped_card))
    home = {"AGENTX_HOME": str(file.parent.parent)}
    (link,) = found(load(paths(home), file.parent, home, ()), {})
    assert (link.name, link.provider.card, link.provider.base_url) == (f"{name}/m", name, server.v1)
    assert link.provider.clamps_output == (name == "vllm")


def test_a_lemonade_gives_the_model_that_it_has_loaded() -> None:
    health = {"status": "ok", "all_models_loaded": [{"model_name": "Qwen3-4B-GGUF", "type": "llm"}]}
    assert names_in(health) == ("Qwen3-4B-GGUF",)


def test_who_owns_a_list_has_a_card(configure: Configure) -> None:
    assert {*OWNERS.values(), *LOCAL} <= configure({}).cards.keys()


def test_with_nothing_at_all_the_error_says_the_three_quickest_ways(configure: Configure) -> None:
    with pytest.raises(NoUsableModel) as caught:
        found(configure({}), {}, lambda: False)
    hint = caught.value.hint or ""
    assert all(way in hint for way in ("ANTHROPIC_API_KEY", "`ollama serve`", "`agentx local pull`"))


def test_only_cards_that_are_sure_of_a_model_make_a_link_of_their_key(configure: Configure) -> None:
    config = configure({})
    keys = {card.api_key_env: "k" for card in config.cards.values() if card.api_key_env}
    hosted = [link.provider.name for link in found(configure(keys), keys)]
    assert hosted == list(HOSTED)


def test_a_key_without_a_model_is_named_with_what_to_type(configure: Configure) -> None:
    environ = {"XAI_API_KEY": "x", "HF_TOKEN": "h"}
    with pytest.raises(NoUsableModel) as caught:
        found(configure(environ), environ, lambda: False)
    assert "`HF_TOKEN`, `XAI_API_KEY` is there, but not which model" in caught.value.message
    assert caught.value.hint == "`--chain huggingface/MODEL`\n`--chain xai/MODEL`"


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}]}, ("a", "b")),
        ({"models": [{"name": "models/gemini"}]}, ("models/gemini",)),
        ({"models": [{"model": "x"}, {"key": "y"}, {"id": 3}, "z"]}, ("x", "y")),
        ({"data": "no"}, ()),
        ({"data": None}, ()),
        ([{"id": "a"}, {"id": "b"}], ("a", "b")),
        (["a", 1, None], ()),
        ([], ()),
        ("text", ()),
    ],
    ids=str,
)
def test_names_are_found_in_every_shape_of_list(answer: object, names: tuple[str, ...]) -> None:
    assert names_in(answer) == names


def test_a_model_is_found_under_its_other_spellings() -> None:
    listed = Listed(("models/gemini-3", "qwen3:latest"), 0.1)
    assert listed.has("gemini-3")
    assert listed.has("qwen3")
    assert not listed.has("qwen")


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        (Provider(name="a", card="a", wire="openai", base_url="https://a/v1"), "https://a/v1/models"),
        (Provider(name="a", card="a", wire="ollama", base_url="http://a:1"), "http://a:1/api/tags"),
        (
            Provider(name="a", card="a", wire="litellm", litellm_prefix="anthropic"),
            "https://api.anthropic.com/v1/models?limit=1000",
        ),
        (Provider(name="a", card="a", wire="litellm", litellm_prefix="bedrock"), None),
        (Provider(name="a", card="local", wire="openai"), None),
    ],
    ids=["openai", "ollama", "anthropic", "bedrock", "local"],
)
def test_where_a_provider_lists_its_models(provider: Provider, url: str | None) -> None:
    assert list_url(provider) == url
