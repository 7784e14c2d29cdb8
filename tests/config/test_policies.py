"""A policy of one's own: what differs from one that agentx brings, and what is wrong with its place."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, get_args

import pytest

from agentx.config.policy import BUILT_IN, PolicySettings, Tier
from agentx.context.own import policy_of
from agentx.context.policies import KEEP_RECENT, LAST, POLICIES, Policy, PolicyStep, TierName
from agentx.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Place


def chosen(place: Place, *overrides: str) -> Policy:
    return policy_of(place.load(*overrides).settings.compaction)


def test_settings_and_code_know_the_same_policies_tiers_and_numbers() -> None:
    assert list(POLICIES) == list(BUILT_IN)
    assert get_args(Tier) == get_args(TierName)
    assert {field.name for field in fields(Policy)} - {"name"} == set(PolicySettings.model_fields) - {"like"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_policy_is_chosen_by_its_name(place: Place, name: str) -> None:
    assert chosen(place, f"compaction.policy={name}") == POLICIES[name]


def test_a_policy_of_ones_own_says_what_differs_and_keeps_the_last_resort(place: Place) -> None:
    place.user(
        "compaction:\n  policy: mine\n  policies:\n"
        "    mine: {like: keep-recent, fraction: 0.7, most_a_turn: null,\n"
        "      steps: [markers, {tier: summary, above: 0.8}]}\n"
    )
    mine = chosen(place)
    assert mine.steps == (PolicyStep("markers"), PolicyStep("summary", 0.8), LAST)
    assert (mine.name, mine.fraction, mine.most_a_turn, mine.tail_most) == (
        "mine",
        0.7,
        None,
        KEEP_RECENT.tail_most,
    )


def test_general_settings_go_over_those_of_the_policy(place: Place) -> None:
    policy = chosen(
        place, "compaction.policy=keep-recent", "compaction.fraction=0.6", "compaction.background=true"
    )
    assert policy.fraction == 0.6
    assert [step.tier for step in policy.steps] == ["prepared", "summary", "cheap", "prune"]


def test_mistakes_in_a_policy_are_said_with_file_line_and_column(place: Place) -> None:
    place.user(
        "compaction:\n  policies:\n    mine:\n"
        "      like: half\n      fraction: 2\n      stepz: []\n      steps: [sumary, {tier: prune, above: 7}]\n"
        "    twice: {steps: [prune, prune]}\n    notes: {}\n"
    )
    with pytest.raises(ConfigError) as caught:
        place.load()
    where = {problem.where.removeprefix(f"{place.user_file}:") for problem in caught.value.problems}
    assert where == {"4:13", "5:17", "6:7", "7:15", "7:44", "8:20", "9:5"}


def test_the_schema_knows_policies(place: Place) -> None:
    schema = json.loads(place.run("schema").stdout)
    compaction = schema["$defs"]["CompactionSettings"]["properties"]
    assert compaction["policy"]["anyOf"][0] == {"enum": list(BUILT_IN)}
    assert set(schema["$defs"]["PolicySettings"]["properties"]) == set(PolicySettings.model_fields)


def test_the_policy_in_use_is_shown(place: Place) -> None:
    place.user("compaction: {policy: three-steps}\n")
    shown = json.loads(place.run("show", "--json").stdout)
    assert shown["settings"]["compaction"]["policy"] == "three-steps"
    assert shown["origins"]["compaction.policy"] == f"{place.user_file}:1:22"
