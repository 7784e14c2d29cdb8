"""The shipped cards, and the user's own."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate

from agentx.chain.automatic import HOSTED
from agentx.config.cards import ProbeName, read_cards
from agentx.config.links import link_name
from agentx.config.resources import shipped
from agentx.config.yamlfile import parse_document
from agentx.errors import ConfigError
from agentx.windows.probes import PROBES

if TYPE_CHECKING:
    from tests.config.conftest import Place

NAMES = [
    "anthropic", "azure", "bedrock", "cerebras", "codex", "copilot", "deepinfra", "deepseek",
    "docker-model-runner", "fireworks", "gemini", "groq", "huggingface", "jan", "koboldcpp", "lemonade",
    "litellm-proxy", "llamacpp", "llamafile", "lmstudio", "local", "localai", "minimax", "mistral", "mlx",
    "moonshot", "nvidia", "ollama", "openai", "openai-compatible", "openrouter", "qwen", "sglang",
    "text-generation-webui", "tgi", "together", "vercel", "vertex", "vllm", "xai", "zai",
]  # fmt: skip
ADDRESSED = ("openai-compatible", "azure")
"""Their address is the user's to say."""
OTHER_LOGINS = ("vertex", "codex")
"""Logged in to in other ways than by a key."""


def test_every_promised_card_is_there(tmp_path: Path) -> None:
    assert sorted(read_cards(tmp_path)) == NAMES


def test_every_card_makes_a_link_and_says_where_its_facts_come_from(place: Place) -> None:
    place.user("providers:\n" + "".join(f"  {name}: {{base_url: 'http://box/v1'}}\n" for name in ADDRESSED))
    config = place.load()
    for name in NAMES:
        link = config.link(link_name(name, "m"))
        assert (link.provider.card, link.model) == (name, "m")
        assert (shipped("providers") / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")


def test_every_shipped_card_fits_the_published_schema_which_refuses_what_we_refuse(place: Place) -> None:
    schema = json.loads(place.run("schema", "--card").stdout)
    Draft202012Validator.check_schema(schema)

    def valid(data: Any) -> bool:
        try:
            validate(data, schema, Draft202012Validator)
        except ValidationError:
            return False
        return True

    for name in NAMES:
        text = (shipped("providers") / f"{name}.yaml").read_text(encoding="utf-8")
        assert valid(parse_document(text, name).data), name
    assert valid({"title": "Acme", "wire": "openai"})
    for wrong in (
        {"wire": "openai"},
        {"title": "Acme"},
        {"title": "Acme", "wire": "telnet"},
        {"title": "Acme", "wire": "openai", "windw": 1},
        {"title": "Acme", "wire": "openai", "base_url": "gateway"},
        {"title": "Acme", "wire": "openai", "probes": ["guess"]},
        {"title": "Acme", "wire": "openai", "errors": [{"match": "full", "means": "too bad"}]},
        {"title": "Acme", "wire": "openai", "errors": [{"match": "", "means": "overflow"}]},
    ):
        assert not valid(wrong), wrong
    fields = schema["properties"].values()
    assert [field for field in fields if not field.get("description")] == []


def test_hosted_cards_need_a_key_and_own_servers_can_do_without(tmp_path: Path) -> None:
    for name, card in read_cards(tmp_path).items():
        if card.self_hosted or name in ("openai-compatible", *OTHER_LOGINS):
            assert card.key_optional or card.api_key_env is None, name
        else:
            assert card.api_key_env and not card.key_optional, name


def test_every_card_of_a_chain_made_from_nothing_has_a_model(tmp_path: Path) -> None:
    cards = read_cards(tmp_path)
    assert all(cards[name].default_model for name in HOSTED)


def test_keys_addresses_and_titles_are_each_ones_own(tmp_path: Path) -> None:
    """A key must not go to somebody else's address. One's own servers share usual ports and old habits."""
    cards = [card for card in read_cards(tmp_path).values() if not card.self_hosted]
    for values in ([c.api_key_env for c in cards], [c.base_url for c in cards], [c.title for c in cards]):
        said = [value for value in values if value]
        assert len(said) == len(set(said))
    assert all(c.base_url.startswith("https://") for c in cards if c.base_url)


def test_servers_whose_window_a_user_sets_say_how(tmp_path: Path) -> None:
    for name, card in read_cards(tmp_path).items():
        if card.self_hosted:
            assert card.window_hint is not None, name
            hint = card.window_hint.format(model="qwen3:14b", window=32768)
            assert "32768" in hint and "{" not in hint, name


def test_catalogue_names_and_default_models_stand_in_the_catalogue(tmp_path: Path) -> None:
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None
    file = Path(spec.origin).with_name("model_prices_and_context_window_backup.json")
    catalogue: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    known = {entry.get("litellm_provider") for entry in catalogue.values()}
    # OpenRouter's models are asked from its own list; the catalogue of 2026-11 has none.
    cards = {name: card for name, card in read_cards(tmp_path).items() if card.catalogue and name != "openrouter"}
    for name, card in cards.items():
        assert set(card.catalogue) <= known, name
        if card.default_model is None:
            continue
        (provider,) = card.catalogue
        entry = catalogue.get(f"{provider}/{card.default_model}") or catalogue[str(card.default_model)]
        assert entry["litellm_provider"] == provider, name
        assert entry["supports_function_calling"] and entry["max_input_tokens"] > 100_000, name


def test_the_probes_that_cards_name_are_the_probes_there_are() -> None:
    assert set(get_args(ProbeName)) == set(PROBES)


def test_the_users_card_replaces_the_shipped_one_whole(place: Place) -> None:
    place.card("openai", "title: Mine\nwire: openai\nbase_url: https://mine.example.com/v1\n")
    place.card("other", "title: Other\nwire: litellm\nlitellm_prefix: bedrock\n")
    config = place.load()
    mine = config.provider("openai")
    assert (mine.base_url, mine.api_key_env, mine.errors) == ("https://mine.example.com/v1", None, ())
    assert config.link("other/x").provider.litellm_prefix == "bedrock"


WRONG = [
    (
        "title: X\nwire: openai\nerrors: [{match: '(?P<window>.)', means: overflow}]\n",
        "3:10: errors[0]: a group is named `limit`, `actual` or `output`, not `window`",
    ),
    (
        "title: X\nwire: openai\nerrors: [{match: '(?P<limit>.)', means: quota}]\n",
        "3:10: errors[0]: numbers are read only where it means `overflow` or `output_cap`",
    ),
    ("title: X\nwire: opnai\n", "2:7: wire: expected `openai`, `ollama` or `litellm`, got 'opnai'"),
    ("wire: openai\n", "1:1: the file needs `title`"),
    ("title: X\nwire: litellm\n", "1:1: the wire `litellm` needs `litellm_prefix`"),
    ("title: X\nwire: openai\nprobe: []\n", "3:1: unknown key `probe`"),
    (
        "title: X\nwire: openai\nerrors:\n  - {match: '(', means: quota}\n",
        "4:13: errors[0].match: not a regular exp",
    ),
    (
        "title: X\nwire: openai\nerrors: [{match: a, means: qouta}]\n",
        "3:28: errors[0].means: expected `rate_limit`",
    ),
    ("title: X\nwire: openai\nwindow_hint: '-c {size}'\n", "3:14: window_hint: only {model} and {window}"),
    ("- x\n", "1:1: expected a table"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_card_is_said_with_its_place(place: Place, text: str, said: str) -> None:
    file = place.card("mine", text)
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert caught.value.message.startswith(f"{file}:{said}")


def test_all_wrong_cards_are_said_at_once(place: Place) -> None:
    place.card("a", "title: A\n")
    place.card("b", "wire: openai\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert len(caught.value.problems) == 2
