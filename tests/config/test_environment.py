"""`AGENTX_...` variables: what they set, and what is said of those that set nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentx.config.environment import SPECIAL, meaning, read_environment, variables
from agentx.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Place


def test_variables_set_nested_values_lists_and_tables(place: Place) -> None:
    environ = {
        "AGENTX_DEFAULT_CHAIN": "night",
        "AGENTX_CHAINS": '{"night": [{"model": "openai/x", "window": 8192}]}',
        "AGENTX_CHAINS__QUICK": "[groq/y, ollama/qwen3:14b]",
        "AGENTX_PROVIDERS__BOX__CARD": "vllm",
        "AGENTX_PROVIDERS__BOX__BASE_URL": "http://box:8000/v1",
        "AGENTX_LIMITS": "{cost: 3}",
        "AGENTX_LIMITS__HOURS": "null",
        "AGENTX_LIMITS__TURNS": "12",
        "AGENTX_COMPACTION__SUMMARIES": "false",
        "AGENTX_TOOLS__ONLY": "[read_file]",
    }
    config = place.load(environ=environ)
    settings = config.settings
    assert settings.limits.model_dump() == {"cost": 3.0, "hours": None, "turns": 12, "tokens": None}
    assert [link.name for link in config.chain()] == ["openai/x"]
    assert [link.name for link in config.chain("quick")] == ["groq/y", "ollama/qwen3:14b"]
    assert config.provider("box").base_url == "http://box:8000/v1"
    assert (settings.compaction.summaries, settings.tools.only) == (False, ["read_file"])
    assert config.warnings == ()
    assert config.origins["limits", "cost"] == "AGENTX_LIMITS"
    assert config.origins["limits", "turns"] == "AGENTX_LIMITS__TURNS"
    assert config.where("chains", "quick", "1", "model") == "AGENTX_CHAINS__QUICK"


def test_an_unknown_variable_is_a_warning_with_the_nearest_name() -> None:
    environ = {
        "AGENTX_LIMITS__CSOT": "3",
        "AGENTX_ZZZZZZZZZZ": "1",
        "AGENTX_HOME": "/x",
        "AGENTX_LIMITS____COST": "1",
    }
    found = read_environment(environ)
    assert found.warnings == (
        "the variable AGENTX_LIMITS__CSOT means nothing here; did you mean AGENTX_LIMITS__COST?",
        "the variable AGENTX_LIMITS____COST means nothing here; did you mean AGENTX_LIMITS__COST?",
        "the variable AGENTX_ZZZZZZZZZZ means nothing here",
    )
    assert found.layer.data == {}


def test_a_wrong_value_names_its_variable(place: Place) -> None:
    with pytest.raises(ConfigError) as caught:
        place.load(environ={"AGENTX_TIMERS__IDLE": "lots"})
    assert caught.value.message == "AGENTX_TIMERS__IDLE: timers.idle: expected a number, got 'lots'"
    with pytest.raises(ConfigError) as caught:
        place.load(environ={"AGENTX_CHAINS": "[a"})
    assert caught.value.message.startswith("AGENTX_CHAINS: not YAML: ")
    assert caught.value.hint is not None
    with pytest.raises(ConfigError, match=r"^AGENTX_TOOLS__ONLY: tools\.only: expected a list, got 'a,b'$"):
        place.load(environ={"AGENTX_TOOLS__ONLY": "a,b"})


def test_an_empty_variable_is_not_set(place: Place) -> None:
    config = place.load(environ={"AGENTX_LIMITS__HOURS": "", "AGENTX_CHAINS": ""})
    assert (config.settings.limits.hours, config.origins["limits", "hours"]) == (8.0, "default")


def test_every_listed_variable_means_something() -> None:
    names = [name for name, text in variables() if text]
    assert "AGENTX_LIMITS__COST" in names and "AGENTX_PROVIDERS__NAME__BASE_URL" in names
    assert all(meaning(name) for name in names)
    assert not set(names) & set(SPECIAL)
