"""`agentx chain`: links, keys, windows, health; and what answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agentx.chain.health import Health
from agentx.cli.chain import chain
from agentx.cli.session import Session
from agentx.config.paths import paths
from agentx.errors import UsageError
from agentx.testing.faults import Status
from agentx.testing.server import FaultServer

Run = Callable[..., Result]
CONFIG = """
chains:
  night:
    - model: box/scripted
    - model: openai/gpt-9
      window: 50000
providers:
  box: {card: openai-compatible, base_url: "URL", self_hosted: true}
"""


@pytest.fixture
def server() -> Any:
    with FaultServer(models=["scripted"]) as made:
        yield made


@pytest.fixture
def session(tmp_path: Path, server: FaultServer) -> Session:
    file = tmp_path / "config" / "agentx.yaml"
    file.parent.mkdir()
    file.write_text(CONFIG.replace("URL", server.v1))
    return Session(environ={"AGENTX_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-very-secret"}, cwd=tmp_path)


@pytest.fixture
def run(session: Session) -> Run:
    def made(*arguments: str) -> Result:
        return CliRunner().invoke(chain, arguments, obj=session, catch_exceptions=False)

    return made


def rest_first_link(session: Session) -> None:
    health = Health(paths(session.environ).health, environ=session.environ)
    link = session.config().chain()[0]
    health.rest(link, time.time() + 1000, "rate_limit", "slow down")
    health.close()


def test_the_table_has_links_keys_windows_and_states(run: Run) -> None:
    lines = run().stdout.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["box/scripted", "openai/gpt-9"]
    assert "OPENAI_API_KEY (set)" in lines[2]
    assert "50,000" in lines[2]
    assert lines[2].endswith("ready")


def test_the_json_is_one_object_and_never_holds_a_key(run: Run, session: Session) -> None:
    rest_first_link(session)
    out = run("--json").stdout
    assert "very-secret" not in out
    first, second = json.loads(out)["links"]
    assert (first["state"], first["class"], first["message"]) == ("resting", "rate_limit", "slow down")
    assert (second["key"], second["key_set"], second["window"]) == ("OPENAI_API_KEY", True, 50_000)


def test_looking_writes_nothing(run: Run, session: Session) -> None:
    run()
    assert not paths(session.environ).state.exists()


def test_a_missing_key_is_shown(run: Run, session: Session) -> None:
    bare = Session(environ={"AGENTX_HOME": session.environ["AGENTX_HOME"]}, cwd=session.cwd)
    out = CliRunner().invoke(chain, ["openai/gpt-9"], obj=bare, catch_exceptions=False).stdout
    assert "OPENAI_API_KEY (not set)" in out
    assert out.rstrip().endswith("no key")


def test_a_check_asks_without_spending_tokens(run: Run, server: FaultServer) -> None:
    (row,) = json.loads(run("box/scripted", "--check", "--json").stdout)["links"]
    assert (row["check"]["ok"], row["check"]["listed"], row["check"]["class"]) == (True, True, None)
    assert isinstance(row["check"]["ms"], int)
    assert server.chats == []


def test_a_check_says_what_is_wrong(run: Run, server: FaultServer, session: Session) -> None:
    assert "but does not list this model" in run("box/other", "--check").stdout
    server.key = "another"
    assert "auth: " in run("box/scripted", "--check").stdout
    dead = Session(
        environ=session.environ, cwd=session.cwd, overrides=("providers.box.base_url=http://127.0.0.1:9/v1",)
    )
    out = CliRunner().invoke(chain, ["box/scripted", "--check"], obj=dead, catch_exceptions=False).stdout
    assert "network: cannot connect" in out


def test_a_reset_lets_a_link_be_asked_again(run: Run, session: Session) -> None:
    rest_first_link(session)
    assert json.loads(run("--reset", "box/scripted", "--json").stdout)["links"][0]["state"] == "ready"
    with pytest.raises(UsageError, match="there is no link `box`"):
        run("--reset", "box")


@pytest.mark.parametrize(("names", "listed"), [(["scripted", "x"], True), (["x"], False)])
def test_a_check_reads_a_bare_array_of_models(
    run: Run, server: FaultServer, names: list[str], listed: bool
) -> None:
    """Together's list has nothing around it."""
    server.list_fault = Status(200, body=json.dumps([{"id": name, "object": "model"} for name in names]))
    row = json.loads(run("--check", "--json").stdout)["links"][0]
    assert (row["check"]["ok"], row["check"]["listed"]) == (True, listed)
