"""The shipped cards, and the user's own."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from agentx.config.cards import ProbeName, read_cards
from agentx.config.links import link_name
from agentx.config.resources import shipped
from agentx.errors import ConfigError
from agentx.windows.probes import PROBES

if TYPE_CHECKING:
    from tests.config.conftest import Place

NAMES = [
    "anthropic", "deepseek", "docker-model-runner", "gemini", "groq", "jan", "koboldcpp", "lemonade",
    "litellm-proxy", "llamacpp", "llamafile", "lmstudio", "local", "localai", "mistral", "mlx", "ollama", "openai",
    "openai-compatible", "openrouter", "sglang", "text-generation-webui", "tgi", "vllm",
]  # fmt: skip


def test_every_promised_card_is_there(tmp_path: Path) -> None:
    assert sorted(read_cards(tmp_path)) == NAMES


def test_every_card_makes_a_link_and_says_where_its_facts_come_from(place: Place) -> None:
    place.user("providers: {openai-compatible: {base_url: 'http://box/v1'}}\n")
    config = place.load()
    for name in NAMES:
        link = config.link(link_name(name, "m"))
        assert (link.provider.card, link.model) == (name, "m")
        assert (shipped("providers") / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")


def test_hosted_cards_need_a_key_and_have_a_model_and_own_servers_can_do_without(tmp_path: Path) -> None:
    for name, card in read_cards(tmp_path).items():
        if card.self_hosted or name == "openai-compatible":
            assert card.key_optional or card.api_key_env is None, name
        else:
            assert card.api_key_env and card.default_model and not card.key_optional, name


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
    # OpenRouter's models are asked from its own list; the catalogue of 2026-11 has none.
    cards = {name: card for name, card in read_cards(tmp_path).items() if card.catalogue and name != "openrouter"}
    assert len(cards) == 6
    for name, card in cards.items():
        (provider,) = card.catalogue
        entry = catalogue.get(f"{provider}/{card.default_model}") or catalogue[str(card.default_model)]
        assert entry["litellm_provider"] == provider, name
        assert entry["supports_function_calling"] and entry["max_input_tokens"] > 100_000, name


def test_the_probes_that_cards_name_are_the_probes_there_are() -> None:
    assert set(get_args(ProbeName)) == set(PROBES)


SAID = [
    (
        "openai",
        429,
        '{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}',
        "quota",
    ),
    ("openai", 429, '{"error":{"type":"usage_limit_reached","resets_at":1764460800}}', "quota"),
    ("openai", 503, '{"error":{"code":"slow_down"}}', "overloaded"),
    ("openai", 401, '{"error":{"code":"invalid_api_key"}}', "auth"),
    ("anthropic", 400, "Your credit balance is too low to access the Anthropic API.", "quota"),
    ("anthropic", 400, "You have reached your specified API usage limits.", "quota"),
    ("anthropic", 500, 'AnthropicException - {"type":"error","error":{"type":"overloaded_error"}}', "overloaded"),
    ("gemini", 400, '{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}', "auth"),
    ("gemini", 429, '"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"', "quota"),
    ("openrouter", 403, "Key limit exceeded (total limit).", "quota"),
    ("openrouter", 402, "Insufficient credits. Add more.", "quota"),
    ("openrouter", 404, "No endpoints found for x/y.", "not_found"),
    (
        "groq",
        413,
        "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000",
        "rate_limit",
    ),
    ("groq", 429, "Rate limit reached on tokens per day (TPD): Limit 100000", "quota"),
    ("mistral", 429, "Service tier capacity exceeded for this model.", "overloaded"),
    ("deepseek", 402, "Insufficient Balance", "quota"),
    ("ollama", 404, '{"error":"model \\"nope\\" not found, try pulling it first"}', "not_found"),
    ("ollama", 503, "server busy, please try again.  maximum pending requests exceeded", "overloaded"),
    ("llamacpp", 500, "Context size has been exceeded.", "server"),
    ("llamacpp", 503, "Loading model", "overloaded"),
    ("llamacpp", 400, "model 'x' not found", "not_found"),
    ("vllm", 404, "The model `x` does not exist.", "not_found"),
    ("tgi", 429, '{"error":"Model is overloaded","error_type":"overloaded"}', "overloaded"),
    (
        "koboldcpp",
        503,
        '{"detail":{"msg":"Server is busy; please try again later.","type":"service_unavailable"}}',
        "overloaded",
    ),
    ("docker-model-runner", 404, "model not found", "not_found"),
    ("lemonade", 404, "Model 'nope' not found", "not_found"),
    ("localai", 500, "could not load model: rpc error", "not_found"),
    ("mlx", 404, "Repository Not Found for url", "not_found"),
    ("litellm-proxy", 400, "Budget has been exceeded! Current cost: 1, Max budget: 1", "quota"),
    ("litellm-proxy", 400, "Invalid model name passed in model=nope", "not_found"),
]


@pytest.mark.parametrize(("name", "status", "text", "meant"), SAID, ids=[f"{n}-{t[:24]}" for n, _, t, _ in SAID])
def test_a_providers_own_words_mean_what_the_card_says(
    tmp_path: Path, name: str, status: int, text: str, meant: str
) -> None:
    patterns = read_cards(tmp_path)[name].patterns()
    means = [p.means for p in patterns if p.status in (None, status) and re.search(p.match, text, re.IGNORECASE)]
    assert means[:1] == [meant]


OVERFLOWS = [
    "request (8226 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "prompt is too long: 210194 tokens > 200000 maximum",
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_no_card_takes_an_overflow_for_something_else(tmp_path: Path, text: str) -> None:
    """Card patterns are read first: one that fits too much would hide a window."""
    for name, card in read_cards(tmp_path).items():
        for pattern in card.patterns():
            assert not re.search(pattern.match, text, re.IGNORECASE), (name, pattern)


def test_the_users_card_replaces_the_shipped_one_whole(place: Place) -> None:
    place.card("openai", "title: Mine\nwire: openai\nbase_url: https://mine.example.com/v1\n")
    place.card("other", "title: Other\nwire: litellm\nlitellm_prefix: bedrock\n")
    config = place.load()
    mine = config.provider("openai")
    assert (mine.base_url, mine.api_key_env, mine.errors) == ("https://mine.example.com/v1", None, ())
    assert config.link("other/x").provider.litellm_prefix == "bedrock"


WRONG = [
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


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[text[9:40] for text, _ in WRONG])
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
