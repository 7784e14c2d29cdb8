"""The three bugs of the field that all ended at 16K, at the command line (seeds.md section 1)."""

from __future__ import annotations

from typing import Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import note_task, twelve_notes
from agentx.testing.faults import Status, always
from agentx.testing.server import FaultServer


def configure(home: Any, *links: tuple[FaultServer, dict[str, Any]], card: str = "openai-compatible") -> None:
    providers = {
        f"s{number}": {"card": card, "base_url": server.url if card == "ollama" else server.v1}
        for number, (server, _) in enumerate(links, 1)
    }
    chain = [{"model": f"s{number}/{server.models[0]}", **more} for number, (server, more) in enumerate(links, 1)]
    home.configure({"chains": {"night": chain}, "providers": providers})


def shown(home: Any) -> list[dict[str, Any]]:
    done = home.run("windows", "--json")
    assert done.code == 0, done.err
    return done.json["links"]


@pytest.mark.parametrize(
    ("first", "fallback", "threshold"), [(32_000, 256_000, 128_000), (200_000, 32_000, 16_000)]
)
def test_a_fallback_is_sized_by_its_own_window(first: int, fallback: int, threshold: int, home: Any) -> None:
    """Not by the primary's, nor by a default: `min(16K, 32K - 8K)` was 16K for a model of 256K."""
    twelve_notes(home.workspace, count=3)
    busy = always(Status(429, {"retry-after": "3600"}))
    with (
        FaultServer(NoteReader(), window=first, schedule=busy) as one,
        FaultServer(NoteReader(), window=fallback) as two,
    ):
        configure(home, (one, {}), (two, {}))
        done = home.run("run", "--json", note_task(3))
        assert done.code == 0, done.err
    selected = [(event["link"], event["window"], event["threshold"]) for event in done.of("link.selected")]
    assert selected[-1] == ("s2/scripted", fallback, threshold)
    assert selected[0][:2] == ("s1/scripted", first)


@pytest.mark.parametrize("card", ["ollama", "openai-compatible"])
def test_a_discovered_ollama_window_survives_a_restart_with_the_server_down(card: str, home: Any) -> None:
    """A window that was not kept fell back to the default at every check."""
    with FaultServer(face="ollama", models=["qwen3:14b"], window=65_536, loaded=True) as server:
        configure(home, (server, {}), card=card)
        (up,) = shown(home)
    (down,) = shown(home)
    numbers = ("window", "trained", "threshold", "reserve")
    assert [up[name] for name in numbers] == [65_536, 131_072, 32_768, 8_192]
    assert [down[name] for name in numbers] == [65_536, 131_072, 32_768, 8_192]
    assert (up["source"], down["source"]) == ("served", "cache")
    assert any("does not answer" in text for text in down["warnings"])


@pytest.mark.parametrize(
    ("window", "max_tokens", "threshold", "reserve"),
    [
        (272_000, 256_000, 128_000, 136_000),
        (1_000_000, 500_000, 128_000, 500_000),
        (32_000, None, 16_000, 8_192),
    ],
)
def test_a_generous_output_budget_does_not_eat_the_input(
    window: int, max_tokens: int | None, threshold: int, reserve: int, home: Any
) -> None:
    """272K - 256K was 16K; `window - max_tokens` against the capped window went negative."""
    with FaultServer(window=window) as server:
        configure(home, (server, {} if max_tokens is None else {"max_tokens": max_tokens}))
        (row,) = shown(home)
        assert (row["window"], row["threshold"], row["reserve"]) == (window, threshold, reserve)
        done = home.run("run", "--json", "say hello")
    (selected,) = done.of("link.selected")
    assert (selected["window"], selected["threshold"], selected["reserve"]) == (window, threshold, reserve)
