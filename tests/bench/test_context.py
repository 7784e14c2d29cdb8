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
TURNS, WINDOW = 24, 8_192


FACTS = {
    "task": 6,
    "corrections": 1,
    "early results": 1,
    "middle results": 1,
    "late results": 1,
    "decisions": 1,
}


def runs(case: str, *options: str) -> dict[str, dict[str, Any]]:
    """What came of a short job in *case*, by system."""
    done = subprocess.run(
        [sys.executable, BENCH, "--json", "--no-peers", "--turns", str(TURNS), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    return {run["system"]: run for run in json.loads(done.stdout)["cases"][case]}


@cache
def small_window() -> dict[str, dict[str, Any]]:
    return runs("one model", "--no-chain", "--window", str(WINDOW))


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "notes"])
def test_a_policy_does_the_whole_job_within_its_window(policy: str) -> None:
    """`notes` counts the tokens of all replies: in so small a window it compacts at every other turn."""
    run = small_window()[f"agentx {policy}"]
    seen = run["seen"]
    assert (seen["turns"], seen["overflows"], run["troubles"]) == (TURNS, 0, [])
    assert seen["largest"] < WINDOW


def test_the_default_policy_compacts_and_keeps_every_fact() -> None:
    seen = small_window()["agentx half-window"]["seen"]
    assert seen["summaries"] > 0
    assert seen["kept"] == FACTS


def test_on_a_chain_the_second_model_takes_turns_and_nothing_is_refused_or_lost() -> None:
    seen = runs("chain", "--only", "agentx half-window")["agentx half-window"]["seen"]
    assert min(seen["by_link"]) > 0
    assert (sum(seen["by_link"]), seen["overflows"], seen["kept"]) == (TURNS, 0, FACTS)
