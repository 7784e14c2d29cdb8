"""One canonical history, each provider's own form, the same bytes each time."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentx.config.links import Provider
from agentx.wires.dialect import (
    ollama_body,
    ollama_messages,
    openai_body,
    openai_messages,
    safe_id,
)
from agentx.wires.messages import Image, Message, Request, ToolCall
from agentx.wires.rendered import Rendered, compact

CALL = ToolCall("functions.read_file:0", "read_file", '{"b": 1, "a": "x"}')
HISTORY = [
    Message(role="system", text="be brief"),
    Message(role="user", text="look", images=(Image("image/png", "aGk="),)),
    Message(role="assistant", tool_calls=(CALL,), reasoning="hm"),
    Message(
        role="tool", text="a picture", tool_call_id=CALL.id, name="read_file", images=(Image("image/png", "b2s="),)
    ),
    Message(role="user", text="and now?"),
    Message(role="assistant", reasoning="only this"),
    Message(role="user", text="well?"),
]


def test_a_history_in_the_words_of_chat_completions() -> None:
    id_ = safe_id(CALL.id)
    assert openai_messages(HISTORY) == [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"b": 1, "a": "x"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": id_, "content": "a picture"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What the tool results above show:\n\nand now?\n\nwell?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,b2s="}},
            ],
        },
    ]


def test_a_history_in_the_words_of_ollama() -> None:
    assert ollama_messages(HISTORY) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look", "images": ["aGk="]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "read_file", "arguments": {"b": 1, "a": "x"}}}],
        },
        {"role": "tool", "content": "a picture", "tool_name": "read_file"},
        {"role": "user", "content": "What the tool results above show:\n\nand now?\n\nwell?", "images": ["b2s="]},
    ]


def test_mistral_never_sees_a_user_right_after_a_tool() -> None:
    messages = [
        Message(role="user", text="go"),
        Message(role="assistant", tool_calls=(CALL,)),
        Message(role="tool", text="done", tool_call_id=CALL.id),
        Message(role="user", text="and?"),
    ]
    rendered = openai_messages(messages, mistral=True)
    assert [message["role"] for message in rendered] == ["user", "assistant", "tool", "assistant", "user"]
    assert re.fullmatch("[A-Za-z0-9]{9}", rendered[2]["tool_call_id"])
    assert rendered[1]["tool_calls"][0]["id"] == rendered[2]["tool_call_id"]


IDS = st.text(min_size=0, max_size=80) | st.from_regex(r"toolu_01[A-Za-z0-9]{20}", fullmatch=True)


@given(st.sets(IDS, max_size=20), st.booleans())
def test_ids_fit_the_provider_and_stay_apart(ids: set[str], mistral: bool) -> None:
    form = "[A-Za-z0-9]{9}" if mistral else "[A-Za-z0-9_-]{1,64}"
    made = {safe_id(id_, mistral=mistral) for id_ in ids}
    assert len(made) == len(ids)
    assert all(re.fullmatch(form, id_) for id_ in made)
    assert made == {safe_id(id_, mistral=mistral) for id_ in made}


MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool"]),
        text=st.text(max_size=8),
        tool_call_id=st.just("c1"),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_no_two_messages_of_the_user_follow_each_other(messages: list[Message]) -> None:
    roles = [message["role"] for message in openai_messages(messages)]
    assert ("user", "user") not in list(pairwise(roles))


@given(MESSAGES, MESSAGES)
def test_what_was_sent_stays_the_beginning_of_what_is_sent(before: list[Message], after: list[Message]) -> None:
    """All but the last message, which a message of the same role may join."""
    first, second = openai_messages(before), openai_messages([*before, *after])
    assert compact(first[:-1])[:-1] == compact(second[: len(first[:-1])])[:-1]


def provider(**changes: Any) -> Provider:
    settings: dict[str, Any] = {"name": "p", "card": "openai", "wire": "openai", "base_url": "https://a.example"}
    return Provider(**settings | changes)


def test_the_output_limit_goes_where_the_card_says() -> None:
    request = Request(model="m", messages=[Message(role="user", text="hi")], max_tokens=7, temperature=0.5)
    body = openai_body(request, provider(output_field="max_completion_tokens", stream_usage=False), Rendered())
    assert json.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "stream": True,
    }


def test_ollama_is_told_its_window_and_not_to_truncate() -> None:
    request = Request(
        model="m", messages=[Message(role="user", text="hi")], max_tokens=7, temperature=0.0, num_ctx=4096
    )
    assert json.loads(ollama_body(request, Rendered())) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "truncate": False,
        "options": {"num_ctx": 4096, "num_predict": 7, "temperature": 0.0},
    }


def test_half_characters_do_not_stop_a_request() -> None:
    assert compact({"text": "a\ud800b"}) == b'{"text":"a?b"}'
