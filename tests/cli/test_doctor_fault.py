"""`agentx doctor --fault` as a user runs it: without a configuration, and against every fault that has a name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.cli.doctor_fault import show_faults
from agentx.testing.named import NAMED

SURVIVABLE = [name for name, named in NAMED.items() if not named.harmless]


def test_the_chain_survives_every_fault_whatever_is_configured(home: Any) -> None:
    """A broken configuration is no matter, nor are keys and proxies that lead nowhere."""
    home.configure({"chains": {"broken": [{"modle": "nobody/nothing"}]}})
    home.extra |= {"OPENAI_API_KEY": "sk-not-to-be-sent", "HTTPS_PROXY": "", "NO_PROXY": "*"}
    done = home.run("doctor", "--fault", "--json")
    assert (done.code, done.err) == (0, "")
    said, rows = done.json, done.json["faults"]
    assert [row["name"] for row in rows] == SURVIVABLE
    assert {(row["survived"], row["served_by"], row["error"]) for row in rows} == {(True, "second", None)}
    asked = {row["name"]: row["asked"] for row in rows}
    assert (asked["status-429"], asked["cut-stream"]) == (1, 2)
    assert said["ok"] is True


def test_it_shows_row_by_row_who_answered_after_how_many_tries(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_faults({name: NAMED[name] for name in ("status-401", "close")}, as_json=False) == 0
    head, first, second, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["FAULT", "OF", "THE", "FIRST", "LINK", "ASKED", "SERVED", "BY", "SECONDS"]
    assert first.split()[:4] == ["ok", "status-401", "1", "second"]
    assert first.endswith("  401: the key is wrong")
    assert second.split()[:4] == ["ok", "close", "2", "second"]
    assert last.startswith("survived 2 of 2 faults in ")


def test_what_is_not_survived_is_told_and_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that was cut is taken, for it says so itself; it is not the whole answer that was to come."""
    faults = {name: NAMED[name] for name in ("cut-reply", "status-401")}
    assert show_faults(faults, as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["survived"], row["served_by"], row["error"]) for row in said["faults"]] == [
        ("cut-reply", False, "first", "the answer is `Hello`"),
        ("status-401", True, "second", None),
    ]
    assert said["ok"] is False
    assert show_faults(faults, as_json=False) == 1
    out = capsys.readouterr().out
    assert "\nLOST   cut-reply " in out
    assert "\nsurvived 1 of 2 faults in " in out
