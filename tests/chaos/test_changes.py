"""Windows that change under a job: a fall and the return, a server loaded anew, one stable `num_ctx`."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import KeyKeeper, NoteReader, Said
from agentx.testing.conversations import PERSONAL_KEY, QUESTION, SYSTEM_KEY, note_task, sentences
from agentx.testing.counting import Json
from agentx.testing.faults import Status, at
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran


def selected_at(ran: Ran) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each reply of a turn with the `link.selected` that was said last before it."""
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    selected: Mapping[str, Any] = {}
    for event in ran.events:
        if event["type"] == "link.selected":
            selected = event
        elif event["type"] == "reply" and event["purpose"] == "turn":
            pairs.append((event, selected))
    return pairs


def test_a_fall_from_200k_to_4k_and_back_shows_everything_again(night: Night) -> None:
    codes = night.notes(30, words=400)
    reader = NoteReader()

    def small_reader(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        night.clock.skipped += 12
        return reader(messages, tools)

    falls = at({22: Status(503, {"retry-after": "100"})})
    with (
        FaultServer(reader, window=200_000, schedule=falls) as large,
        FaultServer(small_reader, window=4_096) as small,
    ):
        ran = night.run([large, small], note_task(30))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert max(seen.prompt_tokens or 0 for seen in small.chats) <= 4_096
    before, back = large.chats[20].body["messages"], large.chats[22].body["messages"]
    assert back[: len(before)] == before, "the large view is not whole again"
    windows = {"s1/scripted": (200_000, 100_000), "s2/scripted": (4_096, 2_048)}
    for reply, selected in selected_at(ran):
        assert selected["link"] == reply["link"]
        assert (selected["window"], selected["threshold"]) == windows[reply["link"]]
    assert small.chats
    assert ran.of("compaction")
    returned = max(n for n, event in enumerate(ran.events) if event["type"] == "link.switched")
    assert not [event for event in ran.events[returned:] if event["type"] == "compaction"]


def test_after_a_hop_out_and_back_the_primary_is_sent_the_very_same_bytes(night: Night) -> None:
    """As if it had answered everything by itself: whole bodies, and nothing of what the other one thought."""
    night.notes(6, words=50)
    reader = NoteReader()

    def thinker(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        night.clock.skipped += 12
        return replace(reader(messages, tools), reasoning="a thought of another model")

    def sent(server: FaultServer) -> list[str]:
        return [json.dumps(seen.body) for seen in server.chats]

    with FaultServer(reader) as alone:
        night.run([alone], note_task(6))
    falls = at({3: Status(503, {"retry-after": "5"})})
    with FaultServer(reader, schedule=falls) as primary, FaultServer(thinker) as other:
        ran = night.run([primary, other], note_task(6))
    assert ran.ending.name == "done", ran.story
    assert len(other.chats) == 1
    assert len(sent(alone)) == len(sent(primary)) > 5
    assert sent(primary) == sent(alone)


@pytest.mark.parametrize(
    ("face", "card", "mode"),
    [
        ("llamacpp", "llamacpp", "refuse"),
        ("lmstudio", "lmstudio", "refuse"),
        ("vllm", "vllm", "refuse"),
        ("ollama", "openai-compatible", "drop_oldest"),
    ],
)
@pytest.mark.parametrize(("before", "after"), [(32_000, 4_096), (4_096, 32_000)])
def test_a_server_loaded_anew_in_the_middle_is_noticed(
    night: Night, face: Any, card: str, mode: Any, before: int, after: int
) -> None:
    codes = night.notes(14, words=300)
    reader, asked = NoteReader(), [0]
    server = FaultServer(face=face, window=before, overflow=mode, loaded=True)

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        night.clock.skipped += 11
        asked[0] += 1
        if asked[0] == 9:
            server.window = after
        return reader(messages, tools)

    server.brain = brain
    with server:
        ran = night.run([{"server": server, "card": card}], note_task(14))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert [event["window"] for event in ran.of("link.selected")] == [before, after], ran.story
    assert len(ran.of("link.failed", purpose="turn")) <= 1
    assert len(ran.of("link.failed", purpose="probe")) <= 1, "a server that refuses does not cut"


@pytest.mark.parametrize(
    ("window", "honours"), [(None, True), (None, False), (4_096, True), (8_192, False), (262_144, True)]
)
def test_num_ctx_is_one_value_for_the_whole_job(night: Night, window: int | None, honours: bool) -> None:
    codes = night.notes()
    with FaultServer(
        NoteReader(), face="ollama", window=4_096, overflow="drop_oldest", honours_num_ctx=honours
    ) as server:
        link = {"server": server, "card": "ollama"} | ({"window": window} if window else {})
        ran = night.run([link])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert len(server.loads) == 1
    assert len({seen.body["options"]["num_ctx"] for seen in server.chats}) == 1
    held = server.loads[0]
    for reply, selected in selected_at(ran)[1:]:
        assert selected["window"] == held, (reply, selected)


@pytest.mark.parametrize(("window", "words"), [(2_304, 78), (2_304, 120), (4_096, 150), (4_096, 240)])
def test_a_task_that_is_dropped_alone_is_missed_at_once(night: Night, window: int, words: int) -> None:
    """Only the oldest message goes at first, and it is the short task: no ratio of counts shows that."""
    codes = night.notes(words=words)
    with FaultServer(NoteReader(), window=window, claims=131_072, overflow="drop_oldest") as server:
        ran = night.run([server])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("window.learned")[-1]["value"] == window
    assert len(ran.of("request", purpose="probe")) <= 4


@pytest.mark.parametrize("overflow", ["drop_oldest", "halve", "cut"])
@pytest.mark.parametrize("window", [5_000, 7_000])
def test_a_window_that_nobody_would_guess_is_found_before_the_task_is_lost(
    night: Night, window: int, overflow: Any
) -> None:
    codes = night.notes(16, words=320)
    with FaultServer(NoteReader(), face="ollama", window=window, claims=131_072, overflow=overflow) as server:
        ran = night.run([server], note_task(16))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert 0.9 * window <= ran.of("window.learned")[-1]["value"] <= 1.05 * window


@pytest.mark.parametrize("characters", range(12_000, 20_000, 2_000))
def test_a_first_request_that_is_cut_a_little_is_noticed(night: Night, characters: int) -> None:
    """What is missing is the beginning of a long system prompt: no ratio would show it."""
    rules = f"The system key is {SYSTEM_KEY}.\n" + sentences(random.Random(1), characters)
    (night.workspace / "AGENTS.md").write_text(rules)
    with FaultServer(
        KeyKeeper(), face="ollama", models=["m"], window=4_096, claims=131_072, overflow="cut"
    ) as server:
        ran = night.run([{"server": server, "window": 131_072}], f"My personal key is {PERSONAL_KEY}. {QUESTION}")
    assert ran.ending.name == "done", ran.story
    assert SYSTEM_KEY in ran.answer and PERSONAL_KEY in ran.answer, ran.story


def test_a_server_that_reads_everything_is_hardly_ever_probed(night: Night) -> None:
    codes = night.notes(20, words=300)
    with FaultServer(NoteReader(), window=32_768) as server:
        ran = night.run([server], note_task(20))
    assert [code for code in codes if code not in ran.answer] == []
    assert len(ran.of("request", purpose="probe")) <= 6, ran.story
    assert ran.of("link.failed") == []
    assert ran.of("truncated") == []
