"""Spend consent through the outermost door: a link that costs money is only asked within its cap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentx.testing.brain import Call, Said
from agentx.testing.counting import Json
from agentx.testing.faults import always, rate_limited
from agentx.testing.server import FaultServer

CAP = 0.02
"""Dollars: at gpt-4o's price enough for a small request and a reply of a thousand tokens, not for many."""


class Lister:
    """A model that looks around some times, each time at something else, and is then done."""

    def __init__(self, calls: int = 3) -> None:
        self.calls = calls

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        made = sum(message["role"] == "tool" for message in messages)
        if made >= self.calls:
            return Said("done")
        return Said(calls=(Call("list_files", {"pattern": f"*.{made}"}),))


def gpt(brain: Any = None, **more: Any) -> FaultServer:
    return FaultServer(brain or Lister(), models=["gpt-4o"], window=32_000, **more)


def chain(servers: dict[str, FaultServer], links: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chain of *servers* with the prices of OpenAI; *links* has what is set of each."""
    card = {"card": "openai-compatible", "catalogue": ["openai"], "self_hosted": False}
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": f"{name}/gpt-4o", **links.get(name, {})} for name in servers]},
        "providers": {name: card | {"base_url": f"{server.url}/v1"} for name, server in servers.items()},
        **more,
    }


def spent_on(link: str, events: list[dict[str, Any]]) -> float:
    return sum(e["cost"] for e in events if e["type"] in ("reply", "link.failed") and e["link"] == link)


@pytest.mark.parametrize("place", [0, 1])
def test_a_link_at_its_cap_is_not_asked_again_and_the_next_goes_on(home: Any, place: int) -> None:
    """The cap is never passed, not even by one reply, wherever the link stands."""
    with gpt(schedule=always(rate_limited(3600))) as resting, gpt(Lister(12)) as paid, gpt(Lister(12)) as flat:
        servers = {"paid": paid, "flat": flat} if place == 0 else {"resting": resting, "paid": paid, "flat": flat}
        home.configure(chain(servers, {"paid": {"max_cost": CAP}}))
        done = home.run("run", "--json", "look around")
        shown = home.run("show", done.events[0]["job"])
        told = home.run("show", "--json", done.events[0]["job"]).json["spending"]
    assert done.code == 0, done.err
    links = [event["link"] for event in done.of("reply")]
    assert 1 <= links.count("paid/gpt-4o") < len(links)
    assert links == sorted(links, reverse=True)  # all of paid/gpt-4o, then all of flat/gpt-4o
    spent = spent_on("paid/gpt-4o", done.events)
    assert 0 < spent <= CAP
    (warning,) = [e["message"] for e in done.of("warning") if "is not asked" in e["message"]]
    assert warning.startswith("paid/gpt-4o is not asked: ")
    assert told == [{"link": "paid/gpt-4o", "cost": pytest.approx(spent, abs=1e-5), "max_cost": CAP}]
    assert f"paid link paid/gpt-4o: ${spent:.2g} of at most ${CAP:g}" in shown.out
    selected = [event["link"] for event in done.of("link.selected")]
    assert len(selected) == len(set(selected))  # it is not even considered again


def test_a_cap_survives_a_resume_and_a_higher_one_lets_it_go_on(home: Any) -> None:
    with gpt(Lister(12)) as paid:
        home.configure(chain({"paid": paid}, {"paid": {"max_cost": CAP}}))
        ended = home.run("run", "--json", "look around")
        hits = len(paid.chats)
        again = home.run("resume", "--json", ended.events[0]["job"])
        assert len(paid.chats) == hits
        home.configure(chain({"paid": paid}, {"paid": {"max_cost": 5}}))
        done = home.run("resume", "--json", ended.events[0]["job"])
    for run in (ended, again):
        assert (run.code, run.events[-1]["ending"]) == (6, "limit_reached"), run.events[-1]
        assert "no link may cost more: paid/gpt-4o" in run.events[-1]["message"]
        assert "max_cost" in run.events[-1]["hint"]
    assert hits >= 1
    assert (done.code, done.events[-1]["ending"]) == (0, "done")


def test_a_mark_without_a_number_is_no_consent(home: Any) -> None:
    """It is said before the first request, and the link is never asked; `--max-cost` is a number."""
    with gpt() as paid, gpt() as flat:
        home.configure(chain({"paid": paid, "flat": flat}, {"paid": {"paid": True}}))
        listed = home.run("chain", "--json").json["links"]
        shown = home.run("chain").out
        done = home.run("run", "--json", "look around")
        assert (done.code, len(paid.chats)) == (0, 0)
        assert home.run("run", "--json", "--max-cost", "5", "look around").code == 0
        assert paid.chats
    why = "it is marked `paid`, and nothing says how much it may cost"
    types = [event["type"] for event in done.events]
    assert types.index("warning") < types.index("request")
    assert done.of("warning")[0]["message"] == f"paid/gpt-4o is not asked: {why}"
    assert [row["not_asked"] for row in listed] == [why, None]
    assert f"not asked: {why}" in shown


def test_a_cap_on_an_unknown_price_is_not_believed(home: Any) -> None:
    with FaultServer(Lister(), models=["new"], window=32_000) as paid, gpt() as flat:
        config = chain({"paid": paid, "flat": flat}, {})
        config["chains"]["c"][0] = {"model": "paid/new", "max_cost": 5}
        home.configure(config)
        done = home.run("run", "--json", "look around")
    assert (done.code, len(paid.chats)) == (0, 0)
    assert "its price is unknown" in done.of("warning")[0]["message"]


def test_falling_to_a_paid_link_is_told_and_obeys_the_limit_of_cost(home: Any) -> None:
    with gpt(schedule=always(rate_limited(3600))) as flat, gpt(Lister(20)) as paid:
        config = chain({"flat": flat, "paid": paid}, {"paid": {"paid": True}}, limits={"cost": CAP})
        config["on_exhausted"] = "fail"
        home.configure(config)
        done = home.run("run", "--json", "look around")
        story = home.run("logs", done.events[0]["job"]).out
    assert (done.code, done.events[-1]["ending"]) == (5, "chain_exhausted"), done.events[-1]
    assert "paid/gpt-4o: quota: not asked: " in done.events[-1]["message"]
    (switch,) = done.of("link.switched")
    assert (switch["to"], switch["paid"]) == ("paid/gpt-4o", True)
    assert any("paid/gpt-4o costs money" in e["message"] for e in done.of("warning"))
    assert "→ paid/gpt-4o instead of flat/gpt-4o (rate_limit) · paid" in story
    assert 0 < spent_on("paid/gpt-4o", done.events) <= CAP


def test_a_limit_of_cost_over_unknown_prices_says_what_it_does_not_see(home: Any) -> None:
    """It is said before the first request, and nothing that was used is shown as free."""
    with FaultServer(Lister(), models=["new"], window=32_000) as server:
        config = chain({"box": server}, {}, limits={"cost": 0.000001})
        config["chains"]["c"] = ["box/new"]
        home.configure(config)
        done = home.run("run", "--json", "look around")
        shown, listed = home.run("show", done.events[0]["job"]).out, home.run("ps", "-a").out
    assert done.code == 0, done.err
    types = [event["type"] for event in done.events]
    assert types.index("warning") < types.index("request")
    (warning,) = done.of("warning")
    assert "its price is not known: the limit of cost does not see what it uses" in warning["message"]
    assert [event["cost"] for event in done.of("reply")] == [None] * 4
    totals = done.events[-1]["totals"]
    assert (totals["cost"], totals["unpriced"]) == (0, 4)
    assert "cost unknown · 4 replies of unknown price" in shown
    assert "$0.00" not in shown + listed


@pytest.mark.parametrize(
    "settings", [{"card": "litellm-proxy"}, {"card": "openai-compatible"}, {"card": "openai"}]
)
@pytest.mark.parametrize("mark", [{"max_cost": 0.5}, {"paid": True}])
def test_a_link_that_is_marked_as_paid_is_not_taken_for_free_because_its_address_is_near(
    home: Any, settings: dict[str, Any], mark: dict[str, Any]
) -> None:
    """What stands behind a gateway or a tunnel on this machine may cost money, and nobody here knows how much."""
    with gpt() as near:
        configured = chain({"near": near}, {"near": mark}, limits={"cost": 1})
        provider = settings | {"base_url": f"{near.url}/v1", "api_key_env": "NEAR_KEY"}
        home.configure(configured | {"providers": {"near": provider}})
        home.extra["NEAR_KEY"] = "k"
        done = home.run("run", "--json", "look around")
    assert near.chats == []
    assert done.code == 6, done.events[-1]
    assert "its price is unknown" in done.events[-1]["message"]


def test_what_a_gateway_to_models_of_others_costs_is_unknown_and_not_nothing(home: Any) -> None:
    with gpt() as proxy:
        provider = {"card": "litellm-proxy", "base_url": f"{proxy.url}/v1"}
        home.configure(chain({"proxy": proxy}, {}) | {"providers": {"proxy": provider}})
        done = home.run("run", "--json", "--max-cost", "0.01", "look around")
    assert {event["cost"] for event in done.of("reply")} == {None}
    assert any("its price is not known" in event["message"] for event in done.of("warning"))
