"""`agentx windows MODEL --probe`, at the command line, on real sockets: what is said is what the server does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from agentx.cli.session import Session
from agentx.cli.windows import windows
from agentx.errors import UsageError
from agentx.testing.brain import KeyKeeper, Said
from agentx.testing.counting import Json
from agentx.testing.faults import Status, always, at
from agentx.testing.server import FaultServer


class Machine:
    """A home with one provider, `box`; `probe` measures its model `m`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def call(self, server: FaultServer, *arguments: str, card: str = "openai-compatible", **link: Any) -> Result:
        config = self.folder / "config"
        config.mkdir(exist_ok=True)
        base = server.url if card == "ollama" else server.v1
        settings = {
            "providers": {"box": {"card": card, "base_url": base}},
            "chains": {"night": [{"model": "box/m", **link}]},
        }
        (config / "agentx.yaml").write_text(yaml.safe_dump(settings))
        session = Session({"AGENTX_HOME": str(self.folder)}, self.folder)
        return CliRunner().invoke(
            windows, ["box/m", *arguments], obj=session, catch_exceptions=False, standalone_mode=False
        )

    def probe(
        self, server: FaultServer, *arguments: str, code: int = 0, **more: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The row of the link, and what was measured."""
        done = self.call(server, "--probe", "--json", *arguments, **more)
        assert done.return_value == code, done.stderr
        (row,) = json.loads(done.stdout)["links"]
        return row, row["measured"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def server_of(face: Any, window: int, overflow: Any, **more: Any) -> FaultServer:
    return FaultServer(KeyKeeper(), face=face, models=["m"], window=window, overflow=overflow, **more)


def sent(server: FaultServer) -> int:
    """The tokens of all prompts that the server read."""
    return sum(seen.prompt_tokens or 0 for seen in server.chats)


BEHAVIOUR = {"refuse": "refuses", "drop_oldest": "cuts", "halve": "halves", "cut": "cuts"}


@pytest.mark.parametrize("window", [4_096, 16_384])
@pytest.mark.parametrize("overflow", BEHAVIOUR)
@pytest.mark.parametrize(
    ("face", "card"), [("openai", "openai-compatible"), ("ollama", "ollama"), ("llamacpp", "llamacpp")]
)
def test_it_says_what_the_server_holds_and_what_it_does_with_more(
    face: Any, card: str, overflow: Any, window: int, machine: Machine
) -> None:
    with server_of(face, window, overflow, loaded=True) as server:
        _, measured = machine.probe(server, card=card)
        assert (measured["behaviour"], measured["holds"]) == (BEHAVIOUR[overflow], window), measured
        assert measured["lost"] == (None if overflow == "refuse" else "oldest")
        assert len(server.chats) == measured["requests"] <= 7
        assert sent(server) <= measured["tokens"] <= measured["budget"] == 40_000
        assert server.loads == [window], "a model was loaded anew"


@pytest.mark.parametrize(
    ("truth", "claims", "overflow", "behaviour"),
    [
        (4_096, 131_072, "drop_oldest", "cuts"),
        (4_096, 131_072, "refuse", "refuses"),
        (16_384, 32_768, "drop_oldest", "cuts"),
        (16_384, 32_768, "halve", "halves"),
        (10_000, 131_072, "cut", "cuts"),
        (2_304, 8_192, "refuse", "refuses"),
    ],
)
def test_a_server_that_claims_too_much_is_found_out_and_the_registry_learns_it(
    truth: int, claims: int, overflow: Any, behaviour: str, machine: Machine
) -> None:
    with server_of("llamacpp", truth, overflow, claims=claims) as server:
        row, measured = machine.probe(server, card="llamacpp")
        assert (measured["behaviour"], measured["holds"], measured["learned"]) == (behaviour, truth, True)
        assert (row["window"], row["source"], row["confidence"]) == (truth, "learned", "proven")
        assert row["detail"].startswith("measured: ")
        chats = len(server.chats)
        (again,) = json.loads(machine.call(server, "--json", card="llamacpp").stdout)["links"]
        assert (again["window"], again["source"]) == (truth, "learned"), "another process forgot it"
        assert len(server.chats) == chats


def test_a_server_that_holds_more_than_it_says_is_told_how_to_be_used(machine: Machine) -> None:
    with server_of("openai", 16_384, "refuse", claims=4_096) as server:
        row, measured = machine.probe(server)
    assert (measured["behaviour"], measured["holds"]) == ("refuses", 16_384)
    if row["window"] < 16_384:
        assert any("write `window: 16384` under `- model: box/m`" in text for text in measured["said"])


@pytest.mark.parametrize("budget", [1_500, 5_000, 40_000])
def test_a_healthy_large_server_holds_at_least_what_the_budget_reached(budget: int, machine: Machine) -> None:
    with server_of("openai", 200_000, "refuse") as server:
        row, measured = machine.probe(server, "--probe-budget", str(budget))
        assert measured["behaviour"] == "reads" and measured["holds"] is None and not measured["learned"]
        assert budget * 0.4 <= measured["at_least"] <= sent(server) <= measured["tokens"] <= budget
        assert f"it holds at least {measured['at_least']:,} tokens" in measured["said"][0]
    assert row["window"] == 200_000


def test_what_is_believed_is_tried_first_where_the_budget_reaches(machine: Machine) -> None:
    """Three requests, not seven: the window that the server claims is the question."""
    with server_of("openai", 32_768, "refuse") as server:
        _, measured = machine.probe(server)
    assert (measured["holds"], measured["requests"]) == (32_768, 3)


def test_the_cost_is_said_before_anything_is_sent(machine: Machine) -> None:
    with server_of("openai", 4_096, "refuse") as server:
        done = machine.call(server, "--probe", "--probe-budget", "20000")
    first, *_ = done.stderr.splitlines()
    assert first == (
        "probe: box/m: at most 20,000 tokens in all, on a server of your own; `--probe-budget` sets it"
    )
    assert "measured    it holds 4,096 tokens and refuses more" in done.stdout


def test_a_hosted_model_says_the_most_it_can_cost_and_nothing_is_asked_without_its_key(
    tmp_path: Path,
) -> None:
    session = Session({"AGENTX_HOME": str(tmp_path)}, tmp_path)
    done = CliRunner().invoke(
        windows, ["openai/gpt-4o", "--probe"], obj=session, catch_exceptions=False, standalone_mode=False
    )
    assert done.return_value == 1
    assert done.stderr.startswith("probe: openai/gpt-4o: at most 40,000 tokens in all, at most $0.1")
    assert "OPENAI_API_KEY" in done.stdout


def test_a_model_that_repeats_nothing_is_measured_by_what_the_server_counts(machine: Machine) -> None:
    """Small models fail to recall: which part is lost cannot be told then, and that is said."""
    with FaultServer(models=["m"], window=4_096, overflow="drop_oldest") as server:
        _, measured = machine.probe(server)
    assert (measured["behaviour"], measured["holds"], measured["lost"]) == ("cuts", 4_096, None)
    assert any("cannot be told" in text for text in measured["said"])


def test_a_server_that_reports_no_counts_leaves_it_undecided(machine: Machine) -> None:
    from agentx.testing.faults import FakeUsage

    with server_of("openai", 4_096, "cut", schedule=always(FakeUsage(None))) as server:
        _, measured = machine.probe(server)
    assert measured["behaviour"] == "undecided"
    assert "does not report how much it reads" in measured["said"][0]
    assert not measured["learned"]


def test_a_failing_server_ends_it_with_its_reason(machine: Machine) -> None:
    with server_of("openai", 4_096, "refuse", schedule=always(Status(401))) as server:
        _, measured = machine.probe(server, code=1)
        assert len(server.chats) == 1
    assert measured["behaviour"] == "undecided" and "401" in measured["failure"]


def test_what_was_found_before_a_failure_is_kept(machine: Machine) -> None:
    with server_of("openai", 200_000, "refuse", schedule=at({4: Status(503)})) as server:
        row, measured = machine.probe(server, code=1)
    assert (measured["behaviour"], row["window"]) == ("reads", 200_000)
    assert measured["at_least"] > 2_000 and "503" in measured["failure"]


def test_thinking_models_whose_reply_is_cut_are_measured_all_the_same(machine: Machine) -> None:
    def thinks(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        return Said("", reasoning="Let me think about the two keys that I was given. " * 40)

    with FaultServer(thinks, models=["m"], window=4_096, overflow="drop_oldest") as server:
        _, measured = machine.probe(server)
    assert (measured["behaviour"], measured["holds"], measured["lost"]) == ("cuts", 4_096, None)


def test_a_model_that_somebody_else_loaded_is_never_loaded_anew(machine: Machine) -> None:
    with server_of("ollama", 4_096, "drop_oldest", loaded=True) as server:
        server.loads.append(4_096)
        _, measured = machine.probe(server, card="ollama", window=16_384, code=1)
        assert (server.chats, server.loads) == ([], [4_096])
    assert "`ollama stop m` first" in measured["said"][0]


def test_ollama_is_asked_with_one_num_ctx_the_one_that_a_job_asks_for(machine: Machine) -> None:
    with server_of("ollama", 4_096, "drop_oldest") as server:
        done = machine.call(server, "--probe", card="ollama", window=8_192)
        assert {seen.body["options"]["num_ctx"] for seen in server.chats} == {8_192}
        assert server.loads == [8_192]
    assert "asked with num_ctx 8,192, as a job asks" in done.stderr


def test_a_model_has_to_be_named(tmp_path: Path) -> None:
    session = Session({"AGENTX_HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(UsageError, match="which model"):
        CliRunner().invoke(windows, ["--probe"], obj=session, catch_exceptions=False, standalone_mode=False)
