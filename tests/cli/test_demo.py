"""`agentx demo`: the night in fast motion, from the outermost door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(name="in_tmp")
def in_tmp_fixture(home: Any) -> Any:
    """The demo's folder lies in the test's own."""
    (home.folder / "tmp").mkdir()
    home.extra["TMPDIR"] = str(home.folder / "tmp")
    return home


def test_the_demo_finds_every_code_on_three_links(in_tmp: Any) -> None:
    done = in_tmp.run("demo", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["scripted"], found["ending"], found["exit"]) == (True, "done", 0)
    assert len(found["codes"]["planted"]) == 12
    assert found["codes"]["missing"] == []
    assert all(code in found["answer"] for code in found["codes"]["planted"])
    assert found["requests"]["cloud"] <= 3
    assert [event["to"] for event in found["switches"]] == ["desk/qwen3:14b", "box/qwen3"]
    (learned, *_) = found["windows_learned"]
    assert (learned["link"], learned["was"]) == ("desk/qwen3:14b", 131_072)
    assert 3_600 < learned["value"] <= 4_096  # it keeps 4,096 and drops messages whole
    assert found["truncated"]
    assert found["compactions"]
    assert found["seconds"] < 30


def test_every_selected_link_shows_its_own_window(in_tmp: Any) -> None:
    found = in_tmp.run("demo", "--json").json
    learned = found["windows_learned"][-1]["value"]
    shown = [(event["link"], event["window"], event["threshold"]) for event in found["links"]]
    assert shown == [
        ("cloud/big", 200_000, 100_000),
        ("desk/qwen3:14b", 131_072, 65_536),
        ("desk/qwen3:14b", learned, max(2_000, learned // 2)),
        ("box/qwen3", 32_768, 16_384),
    ]


def test_the_demo_tells_its_story_and_says_that_it_is_scripted(in_tmp: Any) -> None:
    done = in_tmp.run("demo")
    assert done.code == 0, done.err
    assert done.out.startswith("The codes are: N01-")
    assert "scripted" in done.err
    assert "rate_limit" in done.err
    assert ", not 131,072" in done.err
    assert "12 of 12 codes" in done.err
    (folder,) = Path(in_tmp.extra["TMPDIR"]).iterdir()
    assert f"AGENTX_HOME={folder / 'home'}" in done.err
    assert (folder / "work" / "notes" / "note-12.txt").is_file()
