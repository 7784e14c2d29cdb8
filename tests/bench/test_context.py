"""`bench/context.py` as a user runs it: a short job by agentx alone, through real servers and processes."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentx.context.policies import POLICIES

BENCH = Path(__file__).resolve().parents[2] / "bench" / "context.py"
TURNS = 24


@cache
def runs() -> dict[str, dict[str, Any]]:
    """What came of the short job, by system."""
    done = subprocess.run(
        [sys.executable, BENCH, "--json", "--no-peers", "--turns", str(TURNS), "--window", "8192"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {run["system"]: run for run in json.loads(done.stdout)["runs"]}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_does_the_whole_job_within_its_window(policy: str) -> None:
    run = runs()[f"agentx {policy}"]
    seen = run["seen"]
    assert (seen["turns"], seen["overflows"], run["troubles"]) == (TURNS, 0, [])
    assert seen["largest"] < 8192


def test_the_default_policy_compacts_and_keeps_every_fact() -> None:
    seen = runs()["agentx half-window"]["seen"]
    assert seen["summaries"] > 0
    assert seen["kept"] == {
        "task": 6,
        "corrections": 1,
        "early results": 1,
        "middle results": 1,
        "late results": 1,
        "decisions": 1,
    }
