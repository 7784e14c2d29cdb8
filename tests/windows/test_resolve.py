"""The order of sources, and the proven limit above all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.config.links import Link, Provider
from agentx.windows.known import Heard, Learned
from agentx.windows.probes import Reading
from agentx.windows.record import Source, Window
from agentx.windows.resolve import Facts, choose_num_ctx, decide, resolve

NOW = 1_800_000_000.0
HOUR = 3600.0
Make = Callable[..., Link]


def heard(served: int | None = None, *, kind: Any = "served", at: float = NOW, **numbers: Any) -> Heard:
    return Heard(reading=Reading(kind=kind, detail="GET /x", served=served, **numbers), probe="x", at=at)


def known(size: int, source: Source = "windows.yaml", **more: Any) -> Window:
    return Window(served=size, source=source, detail="f:1", confidence="catalogued", seen_at=NOW, **more)


def learned(limit: int, at: float = NOW) -> Learned:
    return Learned(limit=limit, evidence="refused", at=at)


def test_the_first_source_that_answers_wins(link: Make) -> None:
    """From the strongest to the weakest: each is taken away in turn."""
    facts = Facts(
        now=NOW,
        heard=heard(16_384),
        cached=heard(12_000),
        table=known(11_000),
        catalogue=known(10_000, "catalogue"),
    )
    one = link("http://x")
    seen: list[tuple[str, int]] = []
    for step in (
        facts,
        facts := replace(facts, heard=heard(15_000, kind="listed")),
        facts := replace(facts, heard=None),
        facts := replace(facts, cached=None),
        facts := replace(facts, table=None),
        facts := replace(facts, catalogue=None),
    ):
        window = resolve(one, step)
        seen.append((window.source, window.size))
    assert seen == [
        ("served", 16_384),
        ("listed", 15_000),
        ("cache", 12_000),
        ("windows.yaml", 11_000),
        ("catalogue", 10_000),
        ("assumed", 32_768),
    ]


def test_a_window_that_nobody_says_is_assumed_small_where_the_server_may_cut(link: Make) -> None:
    assert resolve(link("http://x", may_truncate=True), Facts(now=NOW)).size == 4096
    found = decide(link("http://x"), Facts(now=NOW))
    assert found.window.size == 32_768 and found.window.confidence == "assumed" and found.warnings


def test_the_users_window_wins_over_lists_and_catalogues_in_both_directions(link: Make) -> None:
    facts = Facts(now=NOW, heard=heard(128_000, kind="listed", output=8192), table=known(100_000))
    for size in (64_000, 500_000):
        window = resolve(link("http://x", self_hosted=False, window=size), facts)
        assert (window.source, window.size, window.output) == ("config", size, 8192)


def test_a_lower_served_window_is_used_and_said(link: Make) -> None:
    found = decide(link("http://x", window=65_536), Facts(now=NOW, heard=heard(8192)))
    assert (found.window.source, found.window.size) == ("served", 8192)
    assert any("65536" in text and "8,192" in text for text in found.warnings)


def test_a_higher_served_window_does_not_widen_the_users(link: Make) -> None:
    assert resolve(link("http://x", window=8192), Facts(now=NOW, heard=heard(65_536))).size == 8192


def test_force_keeps_the_users_window_whatever_is_proven(link: Make) -> None:
    facts = Facts(now=NOW, heard=heard(8192), learned=learned(4096))
    assert resolve(link("http://x", window=65_536, force=True), facts).size == 65_536
    assert resolve(link("http://x", window=65_536), facts).size == 4096


def test_a_proven_limit_is_a_day_old_at_most(link: Make) -> None:
    fresh, old = learned(4096, NOW - 23 * HOUR), learned(4096, NOW - 24 * HOUR)
    one = link("http://x")
    window = resolve(one, Facts(now=NOW, heard=heard(8192), learned=fresh))
    assert (window.size, window.source, window.confidence, window.detail) == (4096, "learned", "proven", "refused")
    assert resolve(one, Facts(now=NOW, heard=heard(8192), learned=old)).size == 8192


def test_the_cache_holds_a_day_for_hosted_models_and_is_a_hint_for_local_ones(link: Make) -> None:
    facts = Facts(now=NOW, cached=heard(8192, at=NOW - 25 * HOUR))
    assert resolve(link("http://x"), facts).source == "cache"
    assert resolve(link("http://x", self_hosted=False), facts).source == "assumed"


def test_the_trained_length_is_a_ceiling_and_never_a_window(link: Make) -> None:
    window = resolve(link("http://x", may_truncate=True), Facts(now=NOW, heard=heard(None, trained=131_072)))
    assert (window.size, window.trained, window.source) == (4096, 131_072, "assumed")


def test_a_model_that_is_not_loaded_will_have_what_its_modelfile_says(link: Make) -> None:
    """On `/v1`, where agentx cannot ask for a size itself."""
    window = resolve(link("http://x"), Facts(now=NOW, heard=heard(None, default=8192, trained=32_768)))
    assert (window.size, window.source) == (8192, "served")


def test_every_place_is_named_once_in_order_with_the_reason_why_it_won_or_lost(link: Make) -> None:
    facts = Facts(
        now=NOW, heard=heard(4096, trained=131_072, refused=("n_ctx is 0: not a window",)), table=known(9000)
    )
    found = decide(link("http://x"), facts)
    assert [(one.source, one.window and one.window.size, one.won, one.reason) for one in found.candidates] == [
        ("config", None, False, "`window` is not set on the link"),
        ("learned", None, False, "the endpoint proved no limit"),
        ("served", 4096, True, "the first that says a number"),
        ("requested", None, False, "a request cannot set it at this server"),
        ("listed", None, False, "one's own server has no account list"),
        ("cache", None, False, "nothing is kept of it"),
        ("windows.yaml", 9000, False, "served goes first"),
        ("catalogue", None, False, "not for one's own server: the same name holds less or more there"),
        ("assumed", 32_768, False, "served goes first"),
    ]
    assert found.refused == (
        "n_ctx is 0: not a window",
        "the trained length, 131,072, is a ceiling and no window",
    )


def test_a_proven_limit_wins_over_what_goes_before_it_and_says_so(link: Make) -> None:
    facts = Facts(now=NOW, heard=heard(65_536), learned=learned(4096))
    by_source = {one.source: one for one in decide(link("http://x", window=32_768), facts).candidates}
    assert [name for name, one in by_source.items() if one.won] == ["learned"]
    assert by_source["config"].reason == "the endpoint proved 4,096"
    assert by_source["learned"].reason == "a proven limit always lowers, and config says 32,768"
    forced = decide(link("http://x", window=32_768, force=True), facts)
    assert [one.source for one in forced.candidates if one.won] == ["config"]
    higher = decide(link("http://x"), Facts(now=NOW, heard=heard(4096), learned=learned(65_536)))
    (reason,) = [one.reason for one in higher.candidates if one.source == "learned"]
    assert reason == "a proven limit only lowers, and served says 4,096"


CURES = [
    ({"card": "lmstudio", "hint": "`lms load {model} --context-length {window}`"}, "lmstudio",
     "`lms load qwen3:14b --context-length 32768`"),
    ({"card": "openai-compatible", "hint": "somehow"}, "ollama", "OLLAMA_CONTEXT_LENGTH=32768 ollama serve"),
    ({"card": "openai-compatible", "hint": "somehow"}, "vllm", "`vllm serve qwen3:14b --max-model-len 32768`"),
    ({"card": "openai-compatible", "hint": "somehow"}, "openai_list", "somehow"),
    ({"card": "ollama", "wire": "ollama"}, "ollama", "write `window: 32768` under `- model: ollama/qwen3:14b`"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "probe", "cure"), CURES)
def test_a_window_far_below_the_trained_one_comes_with_the_command_for_that_very_server(
    provider: dict[str, Any], probe: str, cure: str, link: Make
) -> None:
    """What the server is, is what it answered: a card for any server does not know the command."""
    hint = provider.pop("hint", None)
    one = link("http://x", window_hint=hint, **({"name": provider["card"]} | provider))
    reading = replace(heard(4096, trained=131_072), probe=probe)
    (advice,) = decide(one, Facts(now=NOW, heard=reading, num_ctx=4096)).advice
    assert advice.text == "the server holds 4,096 of the 131,072 tokens that the model was trained for"
    assert cure in advice.cure


def test_a_window_that_is_large_enough_or_the_users_own_is_no_reason_to_warn(link: Make) -> None:
    one = link("http://x", window_hint="x")
    assert decide(one, Facts(now=NOW, heard=heard(32_768, trained=131_072))).advice == ()
    assert decide(one, Facts(now=NOW, heard=heard(4096, trained=4096))).advice == ()
    mine = link("http://x", window=8192, window_hint="x")
    assert decide(mine, Facts(now=NOW, heard=heard(65_536, trained=131_072))).advice == ()


@pytest.mark.parametrize(
    ("window", "reading", "expected"),
    [
        (8192, {}, 8192),
        (500_000, {"trained": 40_960}, 40_960),
        (None, {"served": 4096, "default": 8192, "trained": 40_960}, 4096),
        (None, {"default": 8192, "trained": 40_960}, 8192),
        (None, {"trained": 131_072}, 32_768),
        (None, {"trained": 8192}, 8192),
        (None, {}, None),
    ],
)
def test_num_ctx_is_the_users_else_what_is_loaded_else_the_modelfiles(
    window: int | None, reading: dict[str, int], expected: int | None, link: Make
) -> None:
    assert (
        choose_num_ctx(link("http://x", window=window), heard(reading.pop("served", None), **reading)) == expected
    )


def test_on_the_ollama_wire_the_window_is_what_agentx_asks_for(link: Make) -> None:
    """Another client's load does not bind: the next request replaces it."""
    one = link("http://x", wire="ollama", window=16_384)
    facts = Facts(now=NOW, heard=heard(4096, trained=40_960), num_ctx=16_384)
    assert (resolve(one, facts).source, resolve(one, facts).size) == ("config", 16_384)
    granted = replace(facts, granted=8192)
    assert (resolve(one, granted).source, resolve(one, granted).size) == ("served", 8192)
    loaded = Facts(now=NOW, heard=heard(4096, trained=40_960), num_ctx=4096)
    plain = link("http://x", wire="ollama")
    assert (resolve(plain, loaded).source, resolve(plain, loaded).size) == ("served", 4096)
    unloaded = Facts(now=NOW, heard=heard(None, trained=40_960), num_ctx=32_768)
    assert (resolve(plain, unloaded).source, resolve(plain, unloaded).size) == ("requested", 32_768)


def test_an_ollama_window_above_the_trained_length_is_not_asked_for(link: Make) -> None:
    one = link("http://x", wire="ollama", window=500_000)
    reading = heard(None, trained=40_960)
    found = decide(one, Facts(now=NOW, heard=reading, num_ctx=choose_num_ctx(one, reading)))
    assert found.window.size == 40_960 and found.warnings


def test_the_embedded_server_has_the_window_it_is_started_with(link: Make) -> None:
    options = {"card": "local", "options": {"window": 4096}}
    assert resolve(link(None, **options), Facts(now=NOW)).size == 4096
    window = resolve(link(None, window=2304, **options), Facts(now=NOW))
    assert (window.size, window.source) == (2304, "requested")


def test_geminis_separate_output_stays_separate_under_the_users_window(link: Make) -> None:
    reading = heard(None, kind="listed", prompt=1_048_576, output=65_536, shared=False)
    window = resolve(link("http://x", self_hosted=False, window=200_000), Facts(now=NOW, heard=reading))
    assert (window.size, window.shared, window.output) == (200_000, False, 65_536)


SIZES = st.none() | st.integers(256, 2_000_000)


@given(SIZES, SIZES, SIZES, SIZES, SIZES, st.booleans(), st.integers(256, 2_000_000))
def test_no_window_is_zero_or_above_a_proven_limit(
    user: int | None,
    served: int | None,
    cached: int | None,
    table: int | None,
    num_ctx: int | None,
    asks: bool,
    limit: int,
) -> None:
    provider = Provider(
        name="p", card="p", wire="ollama" if asks else "openai", base_url="http://x", self_hosted=True
    )
    link = Link(provider=provider, model="m", name="p/m", window=user)
    facts = Facts(
        now=NOW,
        heard=heard(served),
        cached=heard(cached),
        table=known(table) if table else None,
        num_ctx=num_ctx,
    )
    free = resolve(link, facts)
    proven = resolve(link, replace(facts, learned=learned(limit)))
    assert free.size > 0
    assert proven.size == min(free.size, limit)
