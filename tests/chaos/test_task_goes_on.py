"""After a compaction a model goes on with its own task, by the newest word, and sees what it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, asks_for_summary, text_of
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json, count_text
from agentx.testing.faults import CutReply, Fault, NullContent, ReasoningOnly, Status, after
from agentx.testing.server import FaultServer
from agentx.testing.strict_server import StrictServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

FILLER = "the harbour crew wrote down the level of the water\n"


def stones(night: Night, count: int, lines: int = 60) -> list[Call]:
    """Files that fill a window, and the calls that read them."""
    for number in range(count):
        (night.workspace / f"{number}.txt").write_text(f"[stone {number}]\n" + FILLER * lines)
    return [Call("read_file", {"path": f"{number}.txt"}) for number in range(count)]


def test_the_users_newest_word_wins_over_the_plan_that_a_summary_still_tells(night: Night) -> None:
    """Both compactions happen after "stop", and each summary says that the old plan comes next."""
    calls = stones(night, 10, 40)
    brain = night.working(
        [*calls[:2], "A is begun", *calls[2:], "B is done"], summary="Goal: paint gate A.\nNext: paint A."
    )
    with FaultServer(brain, window=4_096) as server:
        first = night.run([server], "Do plan A: paint gate A.")
        ran = night.run([server], job=first.job, said="Stop. Leave A alone and do plan B: oil gate B.")
    assert (ran.ending.name, ran.answer) == ("done", "B is done"), ran.story
    assert len(ran.of("compaction")) >= 2, ran.story
    for seen in night.turns(server)[-3:]:
        text = text_of(seen.kept or ())
        assert text.index("Do plan A") < text.index("Next: paint A.") < text.index("Stop. Leave A alone")


def test_a_plan_and_the_rules_of_the_project_are_there_after_each_compaction(night: Night) -> None:
    (night.workspace / "AGENTS.md").write_text("Never touch the red gate.")
    plan = [{"text": "read the stones", "done": True}, {"text": "write the report", "done": False}]
    closed = [item | {"done": True} for item in plan]
    steps = [Call("update_plan", {"items": plan}), Call("update_notes", {"content": "the tide turns at six"})]
    steps += [*stones(night, 10, 40), Call("update_plan", {"items": closed})]
    with FaultServer(night.working([*steps, "all is done"]), window=4_096) as server:
        ran = night.run([server], "Read the stones and write the report.")
    assert ran.ending.name == "done", ran.story
    assert len(ran.of("compaction")) >= 2, ran.story
    for seen in night.turns(server)[7:-1]:
        text = text_of(seen.kept or ())
        assert "Never touch the red gate." in text and "write the report" in text, ran.story
        assert "the tide turns at six" in text, ran.story


@pytest.mark.parametrize(
    "fault", [None, Status(500), Status(413, body="Request Entity Too Large")], ids=["summary", "digest", "bytes"]
)
def test_a_task_of_many_steps_goes_on_at_the_step_where_it_was(night: Night, fault: Fault | None) -> None:
    """Each step is done once, whether a model or code told what was done; and no view is next to nothing."""
    last = 12

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        text = text_of(messages)
        done = max(map(int, re.findall(r"step (\d+) is done", text)), default=0)
        if asks_for_summary(messages, tools):
            return Said(f"Goal: do all steps.\nFacts: step {done} is done.")
        if done == last:
            return Said(f"all {last} steps are done")
        line = f"echo {done + 1} >> done.txt; seq 400; echo step {done + 1} is done"
        return Said(calls=(Call("shell", {"command": line}),))

    server = FaultServer(brain, window=8_192)
    server.schedule = night.failing_summaries(server, fault)
    with server:
        ran = night.run([server], f"Do steps 1 to {last}.")
    assert (ran.ending.name, ran.answer) == ("done", f"all {last} steps are done"), ran.story
    assert (night.workspace / "done.txt").read_text().split() == [str(n) for n in range(1, last + 1)]
    compactions = ran.of("compaction")
    assert compactions and all(event["after"] >= 0.25 * event["before"] for event in compactions), ran.story
    shown = [
        text_of(seen.kept or ()) for seen in server.chats if "left out to save room" in text_of(seen.kept or ())
    ]
    assert shown and all("do not start over" in text for text in shown)


def test_a_compaction_is_no_failure_and_no_ending_to_those_who_watch(night: Night) -> None:
    codes = night.notes()
    with FaultServer(NoteReader(), window=8_192) as server:
        ran = night.run([server])
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    kinds = [event["type"] for event in ran.events]
    assert "compaction" in kinds
    assert kinds.count("job.ended") == 1 and kinds[-1] == "job.ended"
    assert not {"link.failed", "warning", "job.resumed", "waiting", "link.switched"} & set(kinds), ran.story


def test_what_was_cleared_can_be_read_again_and_brought_back(night: Night) -> None:
    """No summary comes about, so old results are markers: none reads like a failure, and both ways are open."""
    calls = stones(night, 24, 14)
    first = Call("restore_tool_result", {"id": "c1_1"})
    server = FaultServer(night.working([*calls, calls[0], first, "all are read"]), window=8_192)
    server.schedule = night.failing_summaries(server, Status(500))
    with server:
        ran = night.run([server], "read the stones")
    assert (ran.ending.name, ran.answer) == ("done", "all are read"), ran.story
    again, back = (list(seen.kept or ()) for seen in night.turns(server)[-2:])
    assert "[stone 0]" in again[-1]["content"] and FILLER.strip() in again[-1]["content"]
    assert "[stone 0]" in back[-1]["content"] and FILLER.strip() in back[-1]["content"]
    markers = re.findall(
        r"\[result of [^\]]*\]", "".join(text_of(seen.kept or ()) for seen in night.turns(server))
    )
    assert markers and not any(re.search(r"error|fail|denied|not found", text, re.I) for text in markers)
    assert ran.of("nudge") == [], ran.story


def test_the_summarys_own_request_is_text_alone(night: Night) -> None:
    """No tool blocks, no thoughts, no tools: nothing that a strict provider would refuse or a model go on with."""
    codes = night.notes()
    reader = NoteReader()

    def thinker(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        said = reader(messages, tools)
        return Said(said.text, said.calls, reasoning="SECRET-THOUGHT, and I plan to go on")

    with FaultServer(thinker, window=8_192) as server:
        ran = night.run([server])
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    bodies = [seen.body for seen in night.summaries(server)]
    assert bodies and any(tier["ok"] for tier in ran.tiers(0)), ran.story
    for body in bodies:
        assert {message["role"] for message in body["messages"]} <= {"system", "user"}
        assert not {"tools", "tool_choice"} & set(body)
        assert "SECRET-THOUGHT" not in json.dumps(body) and "tool_calls" not in json.dumps(body)


@pytest.mark.parametrize(
    "fault", [NullContent(), ReasoningOnly(), CutReply(40)], ids=["null", "thoughts", "length"]
)
def test_thoughts_or_half_a_text_never_become_the_memory(night: Night, fault: Fault) -> None:
    worker = night.working([*stones(night, 12, 22), "all are read"])

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        prose = Said("PLANNING-PROSE " * 60, reasoning="PLANNING-PROSE")
        return prose if asks_for_summary(messages, tools) else worker(messages, tools)

    server = FaultServer(brain, window=4_096)
    server.schedule = night.failing_summaries(server, fault)
    with server:
        ran = night.run([server], "Read the stones.")
    assert (ran.ending.name, ran.answer) == ("done", "all are read"), ran.story
    assert ran.tiers(0) and not any(tier["ok"] for tier in ran.tiers(0)), ran.story
    assert not any("PLANNING-PROSE" in json.dumps(seen.body) for seen in night.turns(server))
    assert len(night.summaries(server)) <= 4


ERRORS = (
    "Error generating summary: Connection error.",
    "Previous conversation was too long to summarize.",
    "Error code: 529 - {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}",
    "I'm sorry, but I can't help with that.",
    "429 Too Many Requests",
)


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_text_never_becomes_the_memory(night: Night, text: str) -> None:
    brain = night.working([*stones(night, 8, 40), "all are read"], summary=text)
    with FaultServer(brain, window=4_096) as server:
        ran = night.run([server], "Read the stones.")
    assert (ran.ending.name, ran.answer) == ("done", "all are read"), ran.story
    assert ran.tiers(0) and not any(tier["ok"] for tier in ran.tiers(0)), ran.story
    assert not any(text[:30] in json.dumps(seen.body) for seen in night.turns(server))


def test_one_compaction_after_the_other_leaves_a_summary_within_its_limit(night: Night) -> None:
    """A model that adds to the summary before it and leaves nothing out: 5 % of the window, 10,000 at most."""
    steps = iter(range(10_000))

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            old = re.findall(r"fact \d+ of the day", text_of(messages))
            return Said("Goal: go on.\nFacts:\n" + "\n".join([*old, f"fact {next(steps)} of the day"] * 2))
        if "word word word word" in messages[-1]["content"]:
            return Said("yes")
        number = next(steps)
        return (
            Said(calls=(Call("shell", {"command": f"seq {number} {number + 300}"}),))
            if number < 36
            else Said("ok")
        )

    with FaultServer(brain, window=4_096) as server:
        ran = night.run([server], "count on")
    assert ran.ending.name == "done", ran.story
    assert len(ran.of("compaction")) >= 10, ran.story
    records = [
        re.search(r"a new request\.\](.*)\[End of the record", text_of(s.kept or ()), re.S)
        for s in night.turns(server)
    ]
    sizes = [count_text(found[1]) for found in records if found]
    assert len(sizes) > 10 and max(sizes) <= 1.6 * 4_096 // 8, max(sizes)


def test_five_messages_that_must_all_stay_are_no_loop(night: Night) -> None:
    """A task and corrections that fill the threshold by themselves, and nothing besides that could be left out."""
    word = "Mind the tide, the gate and the boats. "

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        return Said("Goal: mind them.") if asks_for_summary(messages, tools) else Said("minded")

    with FaultServer(brain, window=8_192) as server:
        ran = night.run([server], word * 150)
        for number in range(3):
            ran = night.run([server], job=ran.job, said=f"Correction {number}: " + word * 60)
            assert ran.ending.name == "done", ran.story
            assert len(ran.of("compaction")) <= 2, ran.story
    assert len(night.summaries(server)) <= 6
    assert all(f"Correction {n}" in text_of(server.chats[-1].kept or ()) for n in range(3))


@pytest.mark.parametrize("strict", ["openai", "mistral"])
def test_words_that_come_between_a_call_and_its_result_never_break_the_pairs(night: Night, strict: Any) -> None:
    """A person speaks while tools run, and the view is compacted around it: a strict server takes all of it."""
    codes = night.notes()
    reader = NoteReader()

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        said = reader(messages, tools)
        if not said.calls:
            return said
        return Said(said.text, (*said.calls, Call("shell", {"command": f"echo {len(server.chats)}"})))

    night.environ = {"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    server = StrictServer(strict, brain, window=8_192)
    heard = iter(range(1_000))

    def schedule(_: int) -> Fault | None:
        if len(server.chats) % 4 == 0 and len(server.chats) < 14:
            night.say(f"Word {next(heard)}: go on, please.")
        return None

    server.schedule = schedule
    with server:
        ran = night.run([{"server": server, "card": strict}])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert len(ran.of("message")) >= 2 and ran.of("compaction"), ran.story
    assert server.complaints == []


def test_nothing_that_one_model_thought_reaches_the_next_one_after_a_compaction(night: Night) -> None:
    codes = night.notes()
    reader = NoteReader()

    def thinker(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        said = reader(messages, tools)
        return Said(said.text, said.calls, "THOUGHT-OF-THE-FIRST")

    dies = after(12, Status(503, {"retry-after": "9000"}))
    with FaultServer(thinker, window=8_192, schedule=dies) as one, FaultServer(reader, window=16_384) as two:
        ran = night.run([one, two])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("compaction") and two.chats
    assert not any("THOUGHT-OF-THE-FIRST" in json.dumps(seen.body) for seen in two.chats)


def test_notes_are_read_back_once_in_a_new_view_and_written_whole(night: Night) -> None:
    """Not in the system prompt, not on every turn: beside the record, once."""
    calls = stones(night, 8, 40)
    notes = [Call("update_notes", {"content": f"NOTE-{n}: the tide turns at {n}"}) for n in (1, 2)]
    with FaultServer(night.working([*notes, *calls, "all are read"]), window=4_096) as server:
        ran = night.run([server], "read the stones")
    assert ran.ending.name == "done", ran.story
    assert (night.workspace / "NOTES.md").read_text().strip() == "NOTE-2: the tide turns at 2"
    assert ran.of("compaction"), ran.story
    for seen in night.turns(server):
        messages = list(seen.kept or ())
        assert "NOTE-" not in messages[0]["content"]
        if "left out to save room" in text_of(messages):
            assert text_of(messages).count("NOTE-2") == 1 and "NOTE-1" not in text_of(messages)
    assert not any("NOTE-2" in str(message["content"]) for message in night.turns(server)[5].kept or ())


def test_the_size_is_looked_at_between_the_results_and_the_next_request(night: Night) -> None:
    """Inside one long turn of the user, too: no request is over the threshold by more than its last result."""
    with FaultServer(night.working([*stones(night, 12, 40), "all are read"]), window=8_192) as server:
        ran = night.run([server], "Read the stones.")
    assert ran.ending.name == "done", ran.story
    kinds = [event["type"] for event in ran.events if event.get("purpose") not in ("summary", "probe")]
    places = [place for place, kind in enumerate(kinds) if kind == "compaction"]
    assert places and all(kinds[n - 1] == "tool.ended" and "request" in kinds[n : n + 3] for n in places), kinds
    assert max(seen.prompt_tokens or 0 for seen in night.turns(server)) <= 4_096 + 200


def test_a_short_task_pays_for_nothing(night: Night) -> None:
    codes = night.notes(3, words=60)
    with FaultServer(NoteReader(), window=131_072) as server:
        ran = night.run([server], note_task(3))
    assert [code for code in codes if code not in ran.answer] == []
    assert len(night.turns(server)) == 4
    assert {event["purpose"] for event in ran.of("request")} <= {"turn", "probe"}
    assert night.summaries(server) == [] and ran.of("compaction") == []
