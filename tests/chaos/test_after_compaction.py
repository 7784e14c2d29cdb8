"""What holds when a view begins anew: nothing that counts is gone, and what is out of view may be read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentx.context.truncation import PADDING
from agentx.jobs.store import Order, Store
from agentx.testing.brain import Call, Said, asks_for_summary, text_of
from agentx.testing.counting import Json
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


class Steps:
    """One reply for each turn, the last one again and again; its summaries say nothing."""

    def __init__(self, *replies: Said | Call | str) -> None:
        self.replies: list[Said | Call | str] = list(replies)
        self.seen = ""

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if asks_for_summary(messages, tools):
            return Said("Goal: go on.")
        if messages[-1]["content"] == PADDING:
            return Said("word")
        self.seen = text_of(messages)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return (
            Said(calls=(reply,)) if isinstance(reply, Call) else reply if isinstance(reply, Said) else Said(reply)
        )


def read(path: str) -> Call:
    return Call("read_file", {"path": path})


def test_what_compaction_took_from_view_may_be_read_again_and_again(night: Night) -> None:
    night.notes(21)
    reads = [call for n in range(1, 21) for call in (read("notes/note-21.txt"), read(f"notes/note-{n:02}.txt"))]
    with FaultServer(Steps(*reads, "all is read"), window=8_192) as server:
        ran = night.run([server], "compare the notes")
    assert (ran.ending.name, ran.answer) == ("done", "all is read"), ran.story
    assert len(ran.of("compaction")) >= 5


def test_a_job_that_only_repeats_itself_between_compactions_ends(night: Night) -> None:
    night.notes(7)
    reads = [read(f"notes/note-{n:02}.txt") for n in range(1, 8)] * 20
    with FaultServer(Steps(*reads, "never"), window=8_192) as server:
        ran = night.run([server], "compare the notes")
    assert ran.ending.name == "unfinished", ran.story
    assert "brought nothing new through 4 compactions" in ran.ending.message
    assert len(ran.of("tool.ended")) < 70


def test_goal_plan_notes_and_files_come_back_as_they_are_now(night: Night) -> None:
    night.notes(12)
    plan = [{"text": "look around", "done": True}, {"text": "write the answer", "done": False}]
    (night.workspace / "AGENTS.md").write_text("The codeword of this project is HERON.\n")
    steps = Steps(
        Call("update_plan", {"items": plan}),
        Call("update_notes", {"content": "the port is 8080"}),
        Call("write_file", {"path": "a.py", "content": "a = 1\n"}),
        Call("shell", {"command": "echo 'a = 2' > a.py; echo 'the port is 9090' > NOTES.md"}),
        *(read(f"notes/note-{n:02}.txt") for n in range(1, 13)),
        Call("update_plan", {"items": [{**item, "done": True} for item in plan]}),
        "done",
    )
    order = Order(task="find the port", workspace=str(night.workspace), until="test -e found.txt")
    job = Store(night.paths.jobs).create(order)
    (night.workspace / "found.txt").write_text("")
    with FaultServer(steps, window=8_192) as server:
        ran = night.run([server], job=job, said="use the port of the notes, not 7070")
        first = next(
            n for n, seen in enumerate(server.chats) if "was left out to save room" in text_of(seen.kept or ())
        )
        seen = text_of(server.chats[first].kept or ())
        steps.replies = ["again"]
        again = night.run([server], job=job, said="is it done?")
    assert (ran.ending.name, again.answer) == ("done", "again"), ran.story
    for kept in (
        "HERON",
        "find the port",
        "use the port of the notes, not 7070",
        "test -e found.txt",
        "- [ ] write the answer",
        "the port is 9090",
        "a = 2",
    ):
        assert kept in seen, kept
    for gone in ("look around", "the port is 8080", "a = 1"):
        assert gone not in seen, gone
    for kept in ("HERON", "find the port", "use the port of the notes, not 7070", "test -e found.txt", "9090"):
        assert kept in steps.seen, kept
    assert ran.of("job.started")[0]["instructions"] == again.of("job.resumed")[0]["instructions"] == 10


def test_notes_that_are_gone_from_disk_come_from_the_journal(night: Night) -> None:
    night.notes(12)
    steps = Steps(
        Call("update_notes", {"content": "the port is 8080"}),
        Call("shell", {"command": "rm NOTES.md"}),
        *(read(f"notes/note-{n:02}.txt") for n in range(1, 13)),
        "done",
    )
    with FaultServer(steps, window=8_192) as server:
        ran = night.run([server], "find the port")
    assert ran.of("compaction"), ran.story
    assert "NOTES.md:\nthe port is 8080" in steps.seen


def test_the_filter_for_the_output_of_commands_is_off_unless_it_is_set_and_a_variable_always_wins(
    night: Night,
) -> None:
    command = Call("shell", {"command": "for n in 1 2 3 4 5 6; do echo the very same line again; done"})
    shown: list[bool] = []
    for settings, variable in (({}, "0"), ({"filter": True}, "0"), ({"filter": True}, "1")):
        steps = Steps(command, "done")
        night.environ = {**night.environ, "AGENTX_NO_FILTER": variable}
        with FaultServer(steps) as server:
            night.run([server], "print", shell=settings)
        shown.append("came 5 more times" in steps.seen)
    assert shown == [False, True, False]
