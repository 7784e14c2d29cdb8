"""The projection: pure, paired, stable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentx.context.checkpoint import Checkpoint
from agentx.context.items import Item, Kind, Transcript
from agentx.context.measure import message_tokens
from agentx.context.view import NO_IMAGE, NO_RESULT, project
from agentx.wires.messages import Image, Message, ToolCall


def transcript_of(*messages: tuple[Kind, Message]) -> Transcript:
    transcript = Transcript()
    for seq, (kind, message) in enumerate(messages, 1):
        transcript.add(Item(seq, kind, message, message_tokens(message)))
    return transcript


def calls(*ids: str, text: str = "") -> tuple[Kind, Message]:
    made = tuple(ToolCall(id_, "read_file", '{"path": "a"}') for id_ in ids)
    return "assistant", Message(role="assistant", text=text, tool_calls=made, link="box/m", reasoning="hm")


def result(id_: str, text: str = "found") -> tuple[Kind, Message]:
    return "tool", Message(role="tool", text=text, tool_call_id=id_, name="read_file")


def user(text: str, kind: Kind = "user", images: int = 0) -> tuple[Kind, Message]:
    return kind, Message(role="user", text=text, images=(Image("image/png", "AAAA"),) * images)


def paired(messages: Sequence[Message]) -> bool:
    """Whether every call has its result right behind it, in order, and every result its call."""
    waiting: list[str] = []
    for message in messages:
        if waiting:
            if message.role != "tool" or message.tool_call_id != waiting.pop(0):
                return False
        elif message.role == "tool":
            return False
        waiting = waiting or [call.id for call in message.tool_calls]
    return not waiting


def test_a_call_without_a_result_gets_an_honest_one() -> None:
    shown = project(transcript_of(user("go", "task"), calls("a", "b"), result("b")), None).messages
    assert [message.text for message in shown] == ["go", "", NO_RESULT, "found"]
    assert paired(shown)


def test_a_result_without_a_call_is_left_out() -> None:
    shown = project(transcript_of(user("go", "task"), result("x"), calls("a"), result("a"), result("a")), None)
    assert [message.role for message in shown.messages] == ["user", "assistant", "tool"]


def test_words_between_a_call_and_its_result_do_not_part_them() -> None:
    shown = project(transcript_of(user("go", "task"), calls("a"), user("wait"), result("a")), None).messages
    assert [message.role for message in shown] == ["user", "assistant", "tool", "user"]


def test_users_words_that_follow_each_other_are_one_message_so_that_roles_alternate() -> None:
    shown = project(transcript_of(user("go", "task", images=1), user("and"), user("now", "nudge")), None).messages
    assert [(message.text, len(message.images)) for message in shown] == [("go\n\nand\n\nnow", 1)]


def test_an_empty_reply_is_not_sent_again() -> None:
    shown = project(transcript_of(user("go", "task"), calls(), user("go on", "nudge")), None).messages
    assert [message.role for message in shown] == ["user"]


def test_reasoning_goes_back_only_to_the_link_that_made_it() -> None:
    transcript = transcript_of(user("go", "task"), calls("a"), result("a"))
    assert project(transcript, None, link="box/m").messages[1].reasoning == "hm"
    assert project(transcript, None, link="other/m").messages[1].reasoning == ""


def test_a_checkpoint_shows_task_record_corrections_and_what_came_since() -> None:
    transcript = transcript_of(
        user("the task", "task"), calls("a"), result("a"), user("use B, not A"), calls("b"), result("b", "new")
    )
    checkpoint = Checkpoint(at=6, upto=4, summary="did a", memory="open: b", kept=(1, 4))
    shown = project(transcript, checkpoint, "the system").messages
    assert [message.role for message in shown] == ["system", "user", "assistant", "tool"]
    text = shown[1].text
    places = [text.index(part) for part in ("the task", "did a", "open: b", "use B, not A")]
    assert places == sorted(places)
    assert shown[3].text == "new"


def test_marked_results_and_images_are_short_lines() -> None:
    picture: tuple[Kind, Message] = (
        "tool",
        Message(role="tool", text="seen", tool_call_id="b", name="read_file", images=(Image("image/png", "AA"),)),
    )
    transcript = transcript_of(user("go", "task"), calls("a", "b"), result("a", "x" * 9_000), picture)
    shown = project(transcript, Checkpoint(at=4, marked=(3,), imageless=(4,))).messages
    assert shown[2].text == "[result of read_file left out, 9,000 characters: restore_tool_result id `r3`]"
    assert (shown[3].text, shown[3].images) == (f"seen\n{NO_IMAGE}", ())


def test_a_trimmed_message_keeps_valid_arguments() -> None:
    long = ToolCall("a", "write_file", json.dumps({"path": "p", "content": "x" * 40_000}))
    message: tuple[Kind, Message] = ("assistant", Message(role="assistant", tool_calls=(long,)))
    transcript = transcript_of(user("go", "task"), message, result("a"))
    shown = project(transcript, Checkpoint(at=3, trimmed={2: 200}))
    assert json.loads(shown.messages[1].tool_calls[0].arguments)["path"] == "p"
    assert shown.tokens < 300


messages = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=3).map(lambda ids: calls(*ids)),
    st.lists(st.sampled_from("abc"), max_size=3).map(lambda ids: calls(*ids, text="so")),
    st.sampled_from("abcd").map(result),
    st.sampled_from(["user", "nudge"]).map(lambda kind: user("words", kind)),  # pyright: ignore[reportArgumentType]
)


@given(st.lists(messages, max_size=25), st.integers(0, 26), st.sets(st.integers(1, 26)))
def test_whatever_happened_calls_and_results_are_paired_and_the_task_is_there(
    said: list[tuple[Kind, Message]], upto: int, marked: set[int]
) -> None:
    transcript = transcript_of(user("the task", "task"), *said)
    kept = tuple(item.seq for item in transcript.said)
    checkpoint = Checkpoint(at=transcript.last, upto=upto, summary="s", kept=kept, marked=tuple(marked))
    for shown in (project(transcript, None, "sys"), project(transcript, checkpoint, "sys")):
        assert paired(shown.messages)
        assert shown.messages[0] == Message(role="system", text="sys")
        assert "the task" in shown.messages[1].text
        roles = [message.role for message in shown.messages]
        assert not any(a == b == "user" for a, b in pairwise(roles))


@given(st.lists(messages, max_size=25), st.integers(0, 26))
def test_the_users_words_are_never_left_out(said: list[tuple[Kind, Message]], upto: int) -> None:
    transcript = transcript_of(user("the task", "task"), *said)
    kept = tuple(item.seq for item in transcript.said)
    shown = project(transcript, Checkpoint(at=transcript.last, upto=upto, kept=kept))
    text = "".join(message.text for message in shown.messages)
    assert text.count("words") >= sum(item.message.text == "words" for item in transcript.said)


@given(st.lists(messages, min_size=1, max_size=25), st.integers(1, 25))
def test_a_view_that_grows_keeps_its_beginning(said: list[tuple[Kind, Message]], number: int) -> None:
    """Only its last message may change: words of the user join those before them."""
    before = project(transcript_of(user("the task", "task"), *said[:number], calls("z"), result("z")), None)
    after = project(
        transcript_of(user("the task", "task"), *said[:number], calls("z"), result("z"), *said[number:]), None
    )
    assert after.messages[: len(before.messages)] == before.messages


def test_a_checkpoint_goes_to_disk_and_back() -> None:
    checkpoint = Checkpoint(
        at=9, upto=4, summary="s", memory="m", kept=(1, 3), marked=(6,), imageless=(7,), trimmed={8: 50}, tokens=5
    )
    assert Checkpoint.from_json(json.loads(json.dumps(checkpoint.to_json()))) == checkpoint
