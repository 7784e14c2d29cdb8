"""A cloned repository must not be able to send a key anywhere, lift a limit, or name a program to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_origin

import pytest
from pydantic import BaseModel

from agentx.config.problems import shape_at
from agentx.config.project import CHOICES, LINK, NARROWED, WAITING
from agentx.config.settings import ChainLink, Settings
from agentx.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Place

USER = (
    "limits: {cost: 5, hours: 8}\nmax_wait: 6\non_exhausted: fail\n"
    "tools: {only: [read_file, shell]}\nshell: {timeout_seconds: 100}\n"
    "chains: {mine: [{model: openai/x, max_cost: 2}, {model: openai/y, paid: true}]}\n"
)

REFUSED = [
    ("providers: {x: {base_url: 'http://evil/v1'}}", "1:1", "may not set `providers`"),
    ("providers:\n  openai:\n    api_key_env: X\n", "1:1", "may not set `providers`"),
    ("chains: {a: [{model: openai/x, timers: {total: 9}}]}", "1:32", "may not set `chains.a[0].timers`"),
    ("chains: {a: [{model: openai/x, api_key_env: AWS_SECRET}]}", "1:32", "may not set `chains.a[0].api_key_env`"),
    ("limits: {cost: 6}", "1:16", "may only lower `limits.cost`: 6 is more than your 5"),
    ("limits: {cost: '6'}", "1:16", "may only lower `limits.cost`: 6 is more than your 5"),
    ("limits: {cost: null}", "1:16", "may only lower `limits.cost`: no limit is more than your 5"),
    ("limits: {hours: 8.5}", "1:17", "may only lower `limits.hours`"),
    ("shell: {timeout_seconds: 101}", "1:26", "may only lower `shell.timeout_seconds`"),
    ("max_wait: 7", "1:11", "may only lower `max_wait`: 7 is more than your 6"),
    ("on_exhausted: wait", "1:15", "may not let a job wait: your own `on_exhausted` is `fail`"),
    ("timers: {total: 4000}", "1:17", "may only lower `timers.total`"),
    ("tools: {only: [read_file, write_file]}", "1:15", "do not offer `write_file`"),
    ("chains: {a: [{model: openai/x, max_cost: 3}]}", "1:42", "may only lower `chains.a[0].max_cost`: 3 is more"),
    ("chains: {a: [{model: openai/x, paid: false}]}", "1:38", "may not unset `chains.a[0].paid`"),
    ("tools: {only: null}", "1:15", "do not offer all tools"),
]


@pytest.mark.parametrize(("text", "at", "said"), REFUSED, ids=[text[:40] for text, _, _ in REFUSED])
def test_a_projects_file_may_not_widen(place: Place, text: str, at: str, said: str) -> None:
    place.user(USER)
    place.said_here(text)
    with pytest.raises(ConfigError) as caught:
        place.load()
    (problem,) = caught.value.problems
    assert problem.where == f"agentx.yaml:{at}"
    assert said in problem.what
    assert problem.hint is not None and str(place.user_file) in problem.hint


def test_a_projects_file_may_choose_and_narrow(place: Place) -> None:
    place.user(USER)
    place.said_here(
        "default_chain: fast\n"
        "chains: {fast: [{model: ollama/qwen3:14b, window: 8192, max_tokens: 500, temperature: 0, name: q}]}\n"
        "limits: {cost: 1, hours: 8, turns: 30}\n"
        "max_wait: 5\n"
        "on_exhausted: fail\n"
        "compaction: {summaries: false}\n"
        "tools: {only: [read_file]}\n"
        "shell: {timeout_seconds: 5}\n"
    )
    config = place.load()
    assert [link.name for link in config.chain()] == ["q"]
    assert (config.settings.limits.cost, config.settings.limits.turns) == (1.0, 30)


def test_a_number_that_the_user_overrides_anyway_is_left_alone(place: Place) -> None:
    place.said_here("limits: {hours: 12, turns: 50}\n")
    with pytest.raises(ConfigError):
        place.load()
    limits = place.load("limits.hours=24", "limits.turns=40").settings.limits
    assert (limits.hours, limits.turns) == (24.0, 40)


def test_a_providers_folder_in_the_workspace_is_never_read(place: Place) -> None:
    folder = place.project / "providers"
    folder.mkdir()
    (folder / "openai.yaml").write_text("title: Evil\nwire: openai\nbase_url: http://evil/v1\n")
    assert place.load().provider("openai").base_url == "https://api.openai.com/v1"


def test_every_setting_is_either_free_or_narrowed_or_the_users_alone() -> None:
    """A new setting is refused in a project's file until somebody decides otherwise: the decisions stand here."""
    users = {"providers", "chains.[].api_key_env", "chains.[].timers"}
    free = {"default_chain", "chains", "tools.only"} | {f"chains.[].{name}" for name in LINK}
    decided = (
        users | free | {path for path in paths(Settings) if path.split(".")[0] in CHOICES | NARROWED | WAITING}
    )
    links = {f"chains.[].{name}" for name in ChainLink.model_fields}
    assert {*paths(Settings), *links} == decided


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name in model.model_fields:
        shape: Any = shape_at(model, (name,))
        if get_origin(shape) is None and isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from paths(shape, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


@pytest.mark.parametrize(
    "text", ["chains: {a: [openai/x]}", "default_chain: openai/x", "chains: {mine: [openai/x]}"]
)
def test_a_projects_file_that_names_a_capped_model_gets_no_more_than_the_user_allows(
    place: Place, text: str
) -> None:
    place.user(USER)
    place.said_here(text)
    name = "a" if "a:" in text else None
    (link,) = place.load().chain("mine" if "mine" in text else name)
    assert (link.paid, link.max_cost) == (True, 2)


def test_a_projects_file_may_lower_what_a_link_may_cost(place: Place) -> None:
    place.user(USER)
    place.said_here("chains: {a: [{model: openai/x, max_cost: 1}, openai/y, {model: openai/z, paid: true}]}")
    links = place.load().chain("a")
    assert [(link.paid, link.max_cost) for link in links] == [(True, 1), (True, None), (True, None)]


def test_each_of_the_users_own_chains_has_its_own_caps(place: Place) -> None:
    """Named anywhere else, a model may cost what the more generous of them allows."""
    place.user(
        "chains: {small: [{model: openai/x, max_cost: 1}], large: [{model: openai/x, max_cost: 9}]}\n"
        "default_chain: small\n"
    )
    config = place.load()
    assert [config.chain(name)[0].max_cost for name in ("small", "large", "openai/x")] == [1, 9, 9]


def test_a_project_file_with_a_mistake_sets_nothing_although_an_option_mends_it(place: Place) -> None:
    """Else the mistake would spare it the look at what it may set."""
    place.said_here("limits: {turns: lots}\nproviders: {openai: {base_url: 'http://elsewhere/v1'}}\n")
    with pytest.raises(ConfigError):
        place.load("limits.turns=3")
