"""The tiers, one by one; the last one always fits or says so."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.context.checkpoint import Checkpoint
from agentx.context.digest import digest
from agentx.context.items import Item, Kind, Transcript
from agentx.context.measure import message_tokens, text_tokens
from agentx.context.policies import HALF_WINDOW, Room
from agentx.context.tiers.images import images
from agentx.context.tiers.markers import markers
from agentx.context.tiers.prune import prune
from agentx.context.tiers.summary import by_active_model, by_cheap_model
from agentx.context.tiers.work import Step, Work
from agentx.context.view import marker, project
from agentx.errors import ContextOverflow
from agentx.wires.messages import Image, Message, ToolCall

if TYPE_CHECKING:
    from tests.context.conftest import Bench

Made = tuple[Kind, Message]


def said(text: str, kind: Kind = "user", pictures: int = 0) -> Made:
    return kind, Message(role="user", text=text, images=(Image("image/png", "A"),) * pictures)


def call(*ids: str, content: str = "", text: str = "") -> Made:
    made = tuple(ToolCall(id_, "write_file", f'{{"path": "{id_}", "content": "{content}"}}') for id_ in ids)
    return "assistant", Message(role="assistant", text=text, tool_calls=made)


def found(id_: str, text: str, pictures: int = 0) -> Made:
    pixels = (Image("image/png", "A"),) * pictures
    return "tool", Message(role="tool", text=text, tool_call_id=id_, name="read_file", images=pixels)


def work_on(*made: Made, room: Room | None = None, draft: Checkpoint | None = None) -> Work:
    transcript = Transcript()
    for seq, (kind, message) in enumerate(made, 1):
        transcript.add(Item(seq, kind, message, message_tokens(message)))
    room = room or Room(fixed=100, ceiling=2_000, usable=2_000, target=1_000, tail=300, summary=200, memory=100)
    return Work(transcript=transcript, draft=draft or Checkpoint(), room=room, policy=HALF_WINDOW)


def run(tier: Callable[[Work], Any], work: Work) -> Step:
    return asyncio.run(tier(work))


def turns(number: int, length: int) -> list[Made]:
    made: list[Made] = []
    for n in range(number):
        made += [call(f"c{n}"), found(f"c{n}", f"[{n}] " + "x" * length)]
    return made


def test_old_results_become_markers_and_the_six_newest_stay() -> None:
    step = run(markers, work_on(said("go", "task"), *turns(10, 2_000)))
    assert step.draft is not None
    assert step.draft.marked == (3, 5, 7, 9)


def test_short_results_are_not_cleared_and_nothing_is_that_frees_too_little() -> None:
    assert run(markers, work_on(said("go", "task"), *turns(10, 40))).draft is None
    assert run(markers, work_on(said("go", "task"), *turns(6, 9_000))).draft is None


def test_what_was_brought_back_is_not_cleared_again_at_once(bench: Bench) -> None:
    made = [said("go", "task"), *turns(10, 2_000)]
    work = work_on(*made)
    transcript = Transcript()
    for item in work.transcript.between(0):
        transcript.add(replace(item, restored=item.seq in (3, 7)))
    first = run(markers, replace(work, transcript=transcript))
    assert first.draft is not None
    assert first.draft.marked == (5, 9)
    second = run(markers, replace(work, transcript=transcript, draft=replace(first.draft, at=transcript.last)))
    assert second.draft is not None
    assert second.draft.marked == (3, 5, 7, 9)


@given(st.lists(st.text(max_size=400), min_size=7, max_size=30))
def test_a_marker_is_never_longer_than_what_it_stands_for(texts: list[str]) -> None:
    made = [
        said("go", "task"),
        *(one for n, text in enumerate(texts) for one in (call(f"c{n}"), found(f"c{n}", text))),
    ]
    work = work_on(*made, room=Room(fixed=1, ceiling=1, usable=1, target=1, tail=1, summary=1, memory=1))
    step = run(markers, work)
    for seq in step.draft.marked if step.draft else ():
        item = work.transcript.item(seq)
        assert item is not None
        assert len(marker(item)) < len(item.message.text)
        assert text_tokens(marker(item)) <= text_tokens(item.message.text) - 50


def test_old_images_become_a_line_of_text_and_the_newest_stay() -> None:
    work = work_on(said("go", "task", pictures=2), call("a"), found("a", "", 1), call("b"), found("b", "", 3))
    step = run(images, work)
    assert step.draft is not None
    assert step.draft.imageless == (1, 3)
    assert work.size(step.draft) < work.size() - 3_000
    assert run(images, work.with_draft(step.draft)).draft is None


def test_without_a_model_there_is_no_summary() -> None:
    work = work_on(said("go", "task"), *turns(5, 2_000))
    assert run(by_active_model, work) == Step(None, "there is no model to ask")
    assert run(by_cheap_model, work) == Step(None, "no cheap model is configured")


def test_a_digest_tells_every_step_with_failures_and_commands() -> None:
    shell = Message(role="assistant", tool_calls=(ToolCall("s", "shell", '{"command": "make test"}'),))
    output = Message(role="tool", text="exit code 2\nassertion failed", tool_call_id="s", name="shell")
    items = [
        Item(1, "user", Message(role="user", text="use B"), 5),
        Item(2, "assistant", shell, 10),
        Item(3, "tool", output, 10, ok=False),
        Item(4, "nudge", Message(role="user", text="go on"), 5),
    ]
    assert digest(items, 500) == (
        '- the user said: use B\n- called shell {"command": "make test"}\n'
        "  result of shell: FAILED: exit code 2 assertion failed"
    )


@given(st.integers(1, 300), st.integers(0, 4_000), st.integers(0, 900))
@settings(max_examples=30, deadline=None)
def test_a_digest_keeps_to_its_limit(number: int, length: int, limit: int) -> None:
    work = work_on(said("go", "task"), *turns(number, length))
    assert text_tokens(digest(work.transcript.between(0), limit)) <= max(limit, 0)


def test_pruning_leaves_task_corrections_newest_exchange_and_a_digest() -> None:
    work = work_on(said("the task", "task"), *turns(9, 1_500), said("use B, not A"), *turns(6, 1_500))
    step = run(prune, work)
    assert step.draft is not None
    assert work.size(step.draft) <= work.room.target
    shown = project(work.transcript, step.draft)
    assert "the task" in shown.messages[0].text
    assert "use B, not A" in shown.messages[0].text
    assert "called write_file" in shown.messages[0].text
    assert shown.messages[-1].text.startswith("[5] xxx")


def test_pruning_keeps_the_summary_that_was_there() -> None:
    draft = Checkpoint(at=5, upto=5, summary="Goal: all. Key: K-77", kept=(1,))
    work = work_on(said("the task", "task"), *turns(12, 1_500), draft=draft)
    step = run(prune, work)
    assert step.draft is not None
    assert "K-77" in step.draft.summary


HUGE = "word " * 40_000


@pytest.mark.parametrize(
    "made",
    [
        [said(HUGE, "task")],
        [said("go", "task"), said(HUGE)],
        [said("go", "task"), call("a"), found("a", HUGE)],
        [said("go", "task"), call("a", content="y" * 200_000), found("a", "ok")],
        [said("go", "task"), call(*(f"c{n}" for n in range(60))), *(found(f"c{n}", "z" * 900) for n in range(60))],
        [said("go", "task"), *turns(60, 900)],
        [said(HUGE, "task"), *(said(f"{n} {HUGE}") for n in range(5)), *turns(3, 90_000)],
        [said("go", "task"), *(said("short words") for _ in range(900))],
        [said("go", "task", pictures=20), call("a"), found("a", "seen", pictures=20)],
    ],
    ids=[
        "task",
        "correction",
        "result",
        "arguments",
        "parallel",
        "turn",
        "five protected",
        "many words",
        "images",
    ],
)
def test_the_last_tier_fits_whatever_is_huge(made: list[Made]) -> None:
    work = work_on(*made)
    step = run(prune, work)
    assert step.draft is not None
    assert work.size(step.draft) <= work.room.usable
    task = project(work.transcript, step.draft).messages[0].text
    assert made[0][1].text[:100] in task


def test_no_room_at_all_is_a_context_overflow_that_says_what_takes_it() -> None:
    room = Room(fixed=1_950, ceiling=2_000, usable=2_000, target=1_900, tail=0, summary=0, memory=0)
    with pytest.raises(ContextOverflow, match="system prompt and tools take 1,950 of 2,000 tokens"):
        run(prune, work_on(said("go", "task"), *turns(3, 900), room=room))


lengths = st.integers(0, 30_000)
made_turns = st.one_of(
    lengths.map(lambda n: [said("w" * n)]),
    lengths.map(lambda n: [call("a", text="t" * n)]),
    st.tuples(lengths, lengths).map(lambda two: [call("a", content="c" * two[0]), found("a", "r" * two[1])]),
    st.lists(lengths, max_size=12).map(
        lambda many: [
            call(*(f"p{n}" for n in range(len(many)))),
            *(found(f"p{n}", "q" * m) for n, m in enumerate(many)),
        ]
    ),
    st.tuples(lengths, st.integers(0, 4)).map(lambda two: [call("a"), found("a", "r" * two[0], two[1])]),
)


@given(lengths, st.lists(made_turns, max_size=25), st.integers(300, 30_000), st.integers(0, 500))
@settings(max_examples=80, deadline=None)
def test_the_last_tier_always_fits_or_raises(task: int, parts: list[list[Made]], usable: int, fixed: int) -> None:
    room = Room(
        fixed=fixed,
        ceiling=usable,
        usable=usable,
        target=usable // 2,
        tail=usable // 8,
        summary=usable // 8,
        memory=0,
    )
    work = work_on(said("T" + "t" * task, "task"), *(item for part in parts for item in part), room=room)
    try:
        step = run(prune, work)
    except ContextOverflow:
        assert usable - fixed < 1_000
        return
    assert step.draft is not None
    assert work.size(step.draft) <= usable
    assert 1 in step.draft.kept


def test_fifty_prunings_in_a_row_keep_the_record_within_its_size(bench: Bench) -> None:
    made: list[Made] = [said("the task", "task")]
    draft = Checkpoint()
    sizes: list[int] = []
    for n in range(50):
        made += [call(f"n{n}"), found(f"n{n}", "x" * 3_000), call(f"m{n}"), found(f"m{n}", "y" * 3_000)]
        work = work_on(*made, draft=draft)
        step = run(prune, work)
        assert step.draft is not None
        draft = replace(step.draft, at=work.transcript.last)
        sizes.append(text_tokens(draft.summary))
    assert max(sizes) <= 2 * 200 + 20


def long_work(stretches: int) -> list[Item]:
    """What a job of many calls leaves behind: words of the user, files, commands with exit codes, and an error."""
    items: list[Item] = []

    def add(kind: Kind, message: Message, *, ok: bool = True) -> None:
        items.append(Item(len(items) + 1, kind, message, message_tokens(message), ok))

    for n in range(stretches):
        add("user", Message(role="user", text=f"wish {n}: " + "more of it " * 9))
        for name, arguments, text, ok in (
            ("read_file", {"path": f"src/read{n}.py"}, "1\tx = 1", True),
            ("edit_file", {"path": f"src/edit{n}.py", "old": "a" * 900, "new": "b" * 900}, "changed", True),
            ("shell", {"command": f"make check{n}"}, f"[exit code {n % 3}, 0.2 s]\nout of {n}", n % 3 == 0),
            ("edit_file", {"path": f"src/no{n}.py", "old": "q"}, f"no such text {n}", False),
        ):
            made = ToolCall(f"c{n}{name}{ok}", name, json.dumps(arguments))
            add("assistant", Message(role="assistant", text=f"step {n}", tool_calls=(made,)))
            add("tool", Message(role="tool", text=text, tool_call_id=made.id, name=name), ok=ok)
    return items


def test_a_digest_without_room_for_steps_lists_words_errors_commands_files_and_stretches() -> None:
    text = digest(long_work(6), 500)
    assert text_tokens(text) <= 500
    for n in range(6):
        assert f"- wish {n}: " in text
        assert f"- `make check{n}`: exit code {n % 3} (r" in text
        assert n < 1 or f"edit_file: no such text {n}" in text
        assert f"- src/edit{n}.py" in text
    assert "What was done:\n- r2 to r9: read_file 1, edit_file 2, shell 1; 1 failed; said: step 0" in text
    assert "src/no1.py" not in text.split("Files changed:")[1].split("Files read:")[0]


@given(st.integers(1, 40), st.integers(200, 3_000))
@settings(max_examples=25)
def test_a_digest_keeps_to_its_limit_and_its_arguments_are_json(stretches: int, limit: int) -> None:
    items = long_work(stretches)
    text = digest(items, limit)
    assert text_tokens(text) <= limit
    assert text
    for line in text.splitlines():
        for arguments in re.findall(r"called \w+ (\{.*?)(?:; called|$)", line):
            assert isinstance(json.loads(arguments), dict)


def test_prunings_one_after_the_other_lose_no_words_of_the_user_and_no_file(bench: Bench) -> None:
    draft, items = Checkpoint(), long_work(12)
    room = Room(fixed=100, ceiling=6_000, usable=6_000, target=3_000, tail=300, summary=1_200, memory=100)
    for count in (40, 60, 80, 108):
        transcript = Transcript()
        for item in items[:count]:
            transcript.add(item)
        work = Work(transcript=transcript, draft=draft, room=room, policy=HALF_WINDOW)
        step = run(prune, replace(work, room=replace(room, target=min(3_000, work.size() - 1))))
        assert step.draft is not None
        draft = replace(step.draft, at=transcript.last)
    shown = "\n".join(message.text for message in project(transcript, draft).messages)
    assert [n for n in range(12) if f"wish {n}:" not in shown] == []
    assert [n for n in range(10) if f"src/edit{n}.py" not in shown] == []
