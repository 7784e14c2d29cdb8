"""A repaired history satisfies the strictest rules, whatever it was, stays as it is, and loses no text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agentx.wires.messages import Image, Message, ToolCall
from agentx.wires.repair import repaired

IDS = st.sampled_from(["a", "a", "call_1", "functions.read:0", "toolu_01" + "x" * 80, "ABCDEFGHI", "ABCDEFGHJ"])
TEXTS = st.sampled_from(["", "  \n", "first words", "second words", "third words"])
CALLS = st.builds(
    ToolCall, IDS, st.sampled_from(["read", "write"]), st.just("{}"), st.sampled_from(["", "signed"])
)
IMAGES: st.SearchStrategy[tuple[Image, ...]] = st.sampled_from([(), (Image("image/png", "aGk="),)])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role, text = draw(st.sampled_from(["system", "user", "assistant", "tool"])), draw(TEXTS)
    if role == "assistant":
        calls, thought = tuple(draw(st.lists(CALLS, max_size=3))), draw(st.sampled_from(["", "hm"]))
        return Message(
            role="assistant", text=text, tool_calls=calls, reasoning=thought, sealed=thought, issuer="x y"
        )
    if role == "tool":
        return Message(role="tool", text=text, tool_call_id=draw(IDS), name="read", images=draw(IMAGES))
    return Message(role="system" if role == "system" else "user", text=text)


HISTORIES = st.lists(messages(), max_size=12)


@given(HISTORIES)
def test_a_repaired_history_keeps_the_strictest_rules(history: list[Message]) -> None:
    open_: list[str] = []
    taken: set[str] = set()
    before = ""
    for message in repaired(history):
        if message.role == "tool":
            assert message.tool_call_id == open_.pop(0), "results stand behind their calls, in order"
        else:
            assert open_ == [], "every call has its result"
        ids = [call.id for call in message.tool_calls]
        assert all(re.fullmatch("[A-Za-z0-9]{9}", id_) and id_ not in taken for id_ in ids)
        assert len(set(ids)) == len(ids)
        assert message.text.strip() or message.images or message.tool_calls, "nothing is empty"
        assert not (message.reasoning or message.sealed or any(call.signature for call in message.tool_calls))
        assert message.role == "tool" or message.role != before
        assert (before, message.role) not in (("tool", "user"), ("user", "system"), ("assistant", "system"))
        assert message.role in ("system", "user") or before not in ("", "system")
        taken |= set(ids)
        open_ += ids
        before = message.role
    assert open_ == []


@given(HISTORIES)
def test_what_is_repaired_stays_as_it_is(history: list[Message]) -> None:
    once = repaired(history)
    assert repaired(once) == once


@given(HISTORIES)
def test_no_text_and_no_image_is_lost(history: list[Message]) -> None:
    def words(said: list[Message]) -> list[str]:
        return sorted(re.findall(r"(?:first|second|third) words", "\n".join(message.text for message in said)))

    made = list(repaired(history))
    assert words(made) == words(history)
    assert sum(len(message.images) for message in made) == sum(len(message.images) for message in history)
    calls = [call.name for message in history for call in message.tool_calls]
    assert [call.name for message in made for call in message.tool_calls] == calls


def test_the_history_itself_is_left_alone() -> None:
    history = (
        Message(role="user", text="go"),
        Message(role="assistant", reasoning="hm", tool_calls=(ToolCall("functions.read:0", "read", "{}"),)),
    )
    made = repaired(history)
    assert history[1].reasoning == "hm"
    assert history[1].tool_calls[0].id == "functions.read:0"
    assert [message.role for message in made] == ["user", "assistant", "tool"]
