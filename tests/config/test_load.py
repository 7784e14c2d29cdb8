"""Layers with their origin, and every mistake with its place and the name that was meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentx.config.load import load
from agentx.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from tests.config.conftest import Place


def test_nothing_configured_gives_the_defaults(place: Place) -> None:
    config = place.load()
    assert (config.settings.limits.hours, config.settings.limits.cost) == (8.0, None)
    assert config.chain() == ()
    assert config.files == ()
    assert config.origins["limits", "hours"] == "default"


def test_the_higher_layer_wins_and_says_where_it_stands(place: Place) -> None:
    place.user("limits: {cost: 5, hours: 6, turns: 100, tokens: 1000}\n")
    place.said_here("limits:\n  hours: 4\n  turns: 50\n  tokens: 500\n")
    environ = {"AGENTX_LIMITS__TURNS": "40", "AGENTX_LIMITS__TOKENS": "400"}
    config = place.load("limits.tokens=300", environ=environ)
    assert config.settings.limits.model_dump() == {"cost": 5.0, "hours": 4.0, "turns": 40, "tokens": 300}
    assert [config.origins["limits", name] for name in ("cost", "hours", "turns", "tokens")] == [
        f"{place.user_file}:1:16",
        "agentx.yaml:2:10",
        "AGENTX_LIMITS__TURNS",
        "-c limits.tokens",
    ]
    assert config.files == (place.user_file, place.project / "agentx.yaml")


def test_tables_merge_by_key_and_lists_replace(place: Place) -> None:
    place.user("chains:\n  a: [openai/x, openai/y]\n  b: [openai/z]\n")
    place.said_here("chains:\n  a: [groq/q]\n")
    config = place.load()
    assert {n: [link.model for link in links] for n, links in config.settings.chains.items()} == {
        "a": ["groq/q"],
        "b": ["openai/z"],
    }
    assert config.where("chains", "a", "0", "model") == "agentx.yaml:2:7"
    assert ("chains", "a", "1") not in config.origins


def test_a_table_whose_lines_are_all_comments_sets_nothing(place: Place) -> None:
    place.user("limits: {cost: 3}\ntimers:\n  # idle: 5\n")
    place.said_here("limits:\n")
    assert place.load().settings.limits.cost == 3.0


def test_mistakes_are_said_with_place_and_nearest_name(place: Place) -> None:
    place.user(
        "chains:\n"
        "  night:\n"
        "    - {model: openai/gpt-5, windw: 32768}\n"
        "    - {name: x}\n"
        "    - gpt-5\n"
        "limits: {hours: lots, turns: 1.5, cost: true, tokens: -1}\n"
        "compaction: {policy: half-windows, summaries: maybe}\n"
        "default_chain: 7\n"
        "shell: 600\n"
        "tools: {only: read_file}\n"
        "providers: {box: {base_url: box, api_key_env: sk-secret-123}}\n"
        "timer: {idle: 4}\n"
    )
    with pytest.raises(ConfigError) as caught:
        place.load()
    file = str(place.user_file)
    found = {str(problem).replace(file, "f") for problem in caught.value.problems}
    assert found == {
        "f:3:29: unknown key `windw` in chains.night[0]",
        "f:4:7: chains.night[1] needs `model`",
        "f:5:7: chains.night[2].model: expected a model, written `provider/model`, got 'gpt-5'",
        "f:6:17: limits.hours: expected a number, got 'lots'",
        "f:6:30: limits.turns: expected a whole number, got 1.5",
        "f:6:41: limits.cost: expected a number, got true",
        "f:6:55: limits.tokens: expected 1 or more, got -1",
        "f:7:22: there is no policy `half-windows`",
        "f:7:47: compaction.summaries: expected true or false, got 'maybe'",
        "f:8:16: default_chain: expected text, got 7; put it in quotes",
        "f:9:8: shell: expected a table of `key: value` lines, got 600",
        "f:10:15: tools.only: expected a list, got 'read_file'",
        "f:11:29: providers.box.base_url: expected an address like `http://host:port/v1`, "
        "without name and password",
        "f:11:47: providers.box.api_key_env: expected the name of a variable, never its value",
        "f:12:1: unknown key `timer`",
    }
    hints = {problem.what: problem.hint for problem in caught.value.problems if problem.hint}
    assert hints == {
        "unknown key `windw` in chains.night[0]": "did you mean `window`?",
        "there is no policy `half-windows`": "did you mean `half-window`?",
        "unknown key `timer`": "did you mean `timers`?",
    }


def test_problems_of_both_files_are_said_together(place: Place) -> None:
    place.user("limits: {cost: lots}\n")
    place.said_here("limitz: {}\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert [problem.where for problem in caught.value.problems] == [f"{place.user_file}:1:16", "agentx.yaml:1:1"]


def test_the_project_file_is_the_nearest_upward(place: Place) -> None:
    place.said_here("limits: {hours: 1}\n")
    deep = place.project / "a" / "b"
    deep.mkdir(parents=True)
    config = load(place.paths, deep, place.environ)
    assert config.settings.limits.hours == 1.0
    assert config.origins["limits", "hours"] == f"{place.project / 'agentx.yaml'}:1:17"
    (deep.parent / "agentx.yaml").write_text("limits: {hours: 2}\n")
    assert load(place.paths, deep, place.environ).settings.limits.hours == 2.0


def test_the_users_own_file_above_the_workspace_counts_as_the_users(place: Place) -> None:
    place.user("limits: {hours: 99}\nproviders: {box: {card: vllm}}\n")
    inside = place.paths.config / "work"
    inside.mkdir()
    config = load(place.paths, inside, place.environ)
    assert (config.settings.limits.hours, config.project_file) == (99.0, None)
    link = place.project / "agentx.yaml"
    link.symlink_to(place.user_file)
    assert place.load().project_file is None


def test_a_file_that_is_a_folder_is_said(place: Place) -> None:
    (place.project / "agentx.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"^agentx\.yaml: is a folder, expected a file$"):
        place.load()


def test_an_override_without_a_value_is_wrong_usage(place: Place) -> None:
    for text in ("limits", "=3", "limits..cost=3"):
        with pytest.raises(UsageError) as caught:
            place.load(text)
        assert caught.value.exit_code == 2


def test_an_override_is_read_as_yaml_and_the_last_one_wins(place: Place) -> None:
    config = place.load("chains.x=[openai/a, {model: groq/b, window: 8192}]", "limits.cost=1", "limits.cost=null")
    assert [(link.model, link.window) for link in config.chain("x")] == [("a", None), ("b", 8192)]
    assert config.settings.limits.cost is None


def test_a_wrong_override_names_itself(place: Place) -> None:
    with pytest.raises(ConfigError) as caught:
        place.load("limits.cst=3", "timers.idle=[")
    assert caught.value.message.startswith("-c timers.idle: not YAML: ")
    with pytest.raises(ConfigError) as caught:
        place.load("limits.cst=3")
    assert (caught.value.message, caught.value.hint) == (
        "-c limits.cst: unknown key `cst` in limits",
        "did you mean `cost`?",
    )


def test_the_environment_stays_out_of_the_text_of_a_config(place: Place) -> None:
    assert "sk-secret" not in repr(place.load(environ={"OPENAI_API_KEY": "sk-secret"}))


def test_loading_does_not_touch_the_disk(place: Place, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    place.load()
    assert sorted(tmp_path.rglob("*")) == before
