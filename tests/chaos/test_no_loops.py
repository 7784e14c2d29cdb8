"""Compaction that cannot help, or has just helped, is not run again and again: whole jobs over real sockets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, Script, asks_for_summary, text_of
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json, count_prompt, normal
from agentx.testing.faults import FakeUsage, Fault, Hang
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night
    from tests.conftest import Home

TASK = "Read the parts one after the other, and say when all are read."


def parts(night: Night, count: int, characters: int) -> list[Call]:
    """Files of so many *characters*, each different, and the calls that read them."""
    for number in range(count):
        line = f"part {number}: the gate was checked and the level of the water written down\n"
        (night.workspace / f"part-{number}.txt").write_text((line * (characters // len(line) + 1))[:characters])
    return [Call("read_file", {"path": f"part-{number}.txt"}) for number in range(count)]


def test_a_newest_exchange_larger_than_what_is_usable_is_made_to_fit_and_never_loops(night: Night) -> None:
    """Window 65,536, output 32,000: of the 33,536 that are left, the calls of one reply take 40,000."""
    calls = parts(night, 24, 30_000)
    steps = [Said(calls=tuple(calls[start : start + 6])) for start in range(0, 24, 6)]
    with FaultServer(night.working([*steps, "all are read"]), window=65_536, overflow="refuse_total") as server:
        ran = night.run([{"server": server, "max_tokens": 32_000}], TASK)
    assert (ran.ending.name, ran.answer) == ("done", "all are read"), ran.story
    assert ran.of("link.failed") == [], ran.story
    assert len(ran.of("compaction")) <= 5, ran.story
    assert all(TASK in text_of(seen.kept or ()) for seen in night.turns(server))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_summary_that_only_repeats_what_it_is_given_is_not_asked_for_at_every_turn(
    night: Night, share: float
) -> None:
    reader = NoteReader()

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if not asks_for_summary(messages, tools):
            return reader(messages, tools)
        text = messages[-1]["content"]
        return Said(text[: int(len(text) * share)])

    codes = night.notes(16)
    with FaultServer(brain, window=16_384) as server:
        ran = night.run([server], note_task(16))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert not any(tier["ok"] for tier in ran.tiers(0)), ran.story
    assert len(ran.of("request", purpose="summary")) <= 4, ran.story


def test_one_reply_with_sixty_calls_that_outgrow_the_threshold_is_worked_through_once(night: Night) -> None:
    codes = night.notes(60, words=48)
    task = note_task(60)

    def reads_all_at_once(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        found = NoteReader()(messages, tools)
        numbers = range(1, 61) if found.calls and messages[-1]["role"] != "tool" else ()
        calls = tuple(Call("read_file", {"path": f"notes/note-{number:02}.txt"}) for number in numbers)
        return Said(calls=calls) if calls else found

    with FaultServer(reads_all_at_once, window=16_384) as server:
        ran = night.run([{"server": server, "max_tokens": 2_000}], task)
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert len(ran.of("tool.ended")) == 60, ran.story
    assert len(ran.of("compaction")) <= 1, ran.story


@pytest.mark.parametrize("summary", [None, 60_000])
def test_what_was_counted_before_a_compaction_is_not_taken_for_the_size_after_it(
    night: Night, summary: int | None
) -> None:
    """The summary's own request is counted as huge, and no reply after the compaction is counted at all."""
    steps = [*parts(night, 6, 13_000), *[Call("list_files", {"pattern": f"part-{n}.txt"}) for n in range(6)]]
    server = FaultServer(night.working([*steps, "all are read"]), window=32_768)

    def schedule(_: int) -> Fault | None:
        if not server.requests[-1].body.get("tools"):
            return FakeUsage(summary)
        summarised = any(not seen.body.get("tools") for seen in server.chats)
        return FakeUsage(None) if summarised else None

    server.schedule = schedule
    with server:
        ran = night.run([server], TASK)
    assert ran.ending.name == "done", ran.story
    assert len(ran.of("compaction")) == len(ran.of("request", purpose="summary")) == 1, ran.story


def test_large_results_one_after_the_other_are_not_compacted_at_each_turn(night: Night) -> None:
    """The trigger is two results above what a compaction leaves. Between two of them the beginning stays."""
    steps: list[Any] = [*parts(night, 14, 19_000), "all are read"]
    with FaultServer(night.working(steps), window=32_768) as server:
        ran = night.run([server], TASK)
    assert ran.ending.name == "done", ran.story
    assert len(ran.of("compaction")) <= 14 // 2, ran.story
    sent = [seen.body["messages"] for seen in night.turns(server)]
    anew = sum(after[: len(before)] != before for before, after in itertools.pairwise(sent))
    assert anew == len(ran.of("compaction")), "a prefix that a compaction did not change was changed"


def test_a_process_that_dies_after_a_compaction_goes_on_behind_it(home: Home, until: Callable[..., Any]) -> None:
    """Killed twice while it waits for the first reply to the new view: nothing is summarised a second time."""
    for number in range(5):
        (home.workspace / f"{number}.txt").write_text(f"part {number} of the book\n" * 600)
    script = Script([*(Call("read_file", {"path": f"{number}.txt"}) for number in range(5)), "all are read"])

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            return Said("Goal: read five files.")
        return Said("yes") if "word word word word" in messages[-1]["content"] else script(messages, tools)

    server = FaultServer(brain, window=16_384)
    hung: list[int] = []

    def schedule(number: int) -> Fault | None:
        waits = len(hung) < 2 and any(not seen.body.get("tools") for seen in server.chats)
        if not waits or not server.requests[-1].body.get("tools"):
            return None
        hung.append(number)
        return Hang()

    server.schedule = schedule
    with server:
        home.configure(
            {
                "default_chain": "c",
                "chains": {"c": [{"model": "box/scripted"}]},
                "providers": {"box": {"card": "openai-compatible", "base_url": server.v1}},
            }
        )
        for kills, arguments in enumerate((["run", "--name", "j", "read 0.txt to 4.txt"], ["resume", "j"]), 1):
            with home.started(*arguments) as process:
                until(lambda kills=kills: len(hung) == kills)
                process.kill()
        done = home.run("resume", "--json", "j")
        events = home.run("events", "j")
    assert done.events[-1]["ending"] == "done", done.err
    assert len(events.of("compaction")) == 1
    assert [event["purpose"] for event in events.of("request")].count("summary") == 1


def test_compactions_that_gain_next_to_nothing_are_given_up(night: Night) -> None:
    """What the provider adds to each prompt by itself fills half of the window: leaving out more is no help."""
    codes = night.notes(20, words=120)
    server = FaultServer(NoteReader(), window=16_384)

    def schedule(_: int) -> Fault | None:
        body = server.requests[-1].body
        return FakeUsage(6_000 + count_prompt(normal(body["messages"]), body.get("tools") or []))

    server.schedule = schedule
    with server:
        ran = night.run([{"server": server, "max_tokens": 2_000}], note_task(20))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert "open" in [event["state"] for event in ran.of("breaker", cause="ineffective")], ran.story
    assert 3 * len(night.summaries(server)) <= len(night.turns(server)), ran.story
