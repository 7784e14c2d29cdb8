"""Every link is sized by its own window, on the way out and on the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader, Said
from agentx.testing.counting import Json
from agentx.testing.faults import Status, at
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


def out_and_back(night: Night, first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    """What each selected link was sized with: the first fails at its third request and is back soon after."""
    night.notes()
    reader = NoteReader()

    def second_reader(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        night.clock.skipped += 12
        return reader(messages, tools)

    falls = at({3: Status(503, {"retry-after": "30"})})
    with (
        FaultServer(reader, window=first.pop("holds"), schedule=falls) as one,
        FaultServer(second_reader, window=second.pop("holds")) as other,
    ):
        ran = night.run([{"server": one, **first}, {"server": other, **second}])
        assert ran.ending.name == "done", ran.story
        assert len(other.chats) >= 2 and len(one.chats) >= 4, "it fell and came back"
    return [(e["link"], e["window"], e["threshold"], e["window_source"]) for e in ran.of("link.selected")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((32_000, 16_000), (256_000, 128_000)),
        ((1_000_000, 128_000), (131_072, 65_536)),
        ((256_000, 128_000), (32_000, 16_000)),
    ],
)
def test_thresholds_after_each_switch_are_those_of_the_running_model(
    first: tuple[int, int], second: tuple[int, int], night: Night
) -> None:
    seen = out_and_back(night, {"holds": first[0]}, {"holds": second[0]})
    mine, others = ("s1/scripted", *first, "served"), ("s2/scripted", *second, "served")
    assert seen == [mine, others, mine]


def test_a_users_window_is_kept_over_a_switch_out_and_back(night: Night) -> None:
    seen = out_and_back(night, {"holds": 200_000, "window": 50_000}, {"holds": 131_072})
    mine = ("s1/scripted", 50_000, 25_000, "config")
    assert seen == [mine, ("s2/scripted", 131_072, 65_536, "served"), mine]


def test_a_users_output_budget_is_kept_over_a_switch_and_never_lent(night: Night) -> None:
    """272,000 with 256,000 output: half at most is reserved, here and not at the next link."""
    seen = out_and_back(night, {"holds": 272_000, "max_tokens": 256_000}, {"holds": 64_000})
    mine = ("s1/scripted", 272_000, 128_000, "served")
    assert seen == [mine, ("s2/scripted", 64_000, 32_000, "served"), mine]
