"""One canonical history, each provider's own form, the same bytes each time."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.config.links import Provider
from agentx.wires.arrange import NO_RESULT, Order, arranged, safe_id
from agentx.wires.dialect import (
    ollama_body,
    ollama_messages,
    openai_body,
    openai_messages,
    openai_tools,
)
from agentx.wires.families import Dialect, dialect_of
from agentx.wires.messages import Image, Message, Request, Tool, ToolCall
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
    rendered = openai_messages(messages, dialect_of(provider(), "mistralai/devstral-small"))
    assert [message["role"] for message in rendered] == ["user", "assistant", "tool", "assistant", "user"]
    assert re.fullmatch("[A-Za-z0-9]{9}", rendered[2]["tool_call_id"])
    assert rendered[1]["tool_calls"][0]["id"] == rendered[2]["tool_call_id"]


IDS = st.text(min_size=0, max_size=80) | st.from_regex(r"toolu_01[A-Za-z0-9]{20}", fullmatch=True)


FORMS = {"mistral": "[A-Za-z0-9]{9}", "plain": "[A-Za-z0-9_-]{1,64}"}


@given(st.sets(IDS, max_size=20), st.sampled_from(["mistral", "plain"]))
def test_ids_fit_the_provider_and_stay_apart(ids: set[str], form: Any) -> None:
    made = {safe_id(id_, form) for id_ in ids}
    assert len(made) == len(ids)
    assert all(re.fullmatch(FORMS[form], id_) for id_ in made)
    assert made == {safe_id(id_, form) for id_ in made}


def called(*ids: str) -> list[Message]:
    calls = tuple(ToolCall(id_, "read_file", "{}") for id_ in ids)
    results = [Message(role="tool", text=f"of {id_}", tool_call_id=id_, name="read_file") for id_ in ids]
    return [Message(role="assistant", tool_calls=calls), *results]


@given(
    st.lists(st.lists(IDS | st.just("call_0"), min_size=1, max_size=3), max_size=6),
    st.sampled_from(["mistral", "plain"]),
)
def test_no_id_is_used_for_two_calls_and_each_result_keeps_its_call(turns: list[list[str]], form: Any) -> None:
    """Also where one call has the very id that another one is mapped to, or a server counts from 0 each time."""
    turns = [[*turn, *([safe_id(turn[0], form)] if turn[0] else [])] for turn in turns]
    messages = [Message(role="user", text="go"), *(message for turn in turns for message in called(*turn))]
    rendered = openai_messages(messages, Dialect(order=Order(ids=form)))
    made = [call["id"] for message in rendered for call in message.get("tool_calls", ())]
    assert len(made) == len(set(made))
    assert all(re.fullmatch(FORMS[form], id_) for id_ in made)
    assert made == [message["tool_call_id"] for message in rendered if message["role"] == "tool"]
    said = [message["content"] for message in rendered if message["role"] == "tool"]
    assert said == [f"of {id_}" for turn in turns for id_ in turn]


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
    assert json.loads(ollama_body(request, provider(wire="ollama"), Rendered())) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "truncate": False,
        "options": {"num_ctx": 4096, "num_predict": 7, "temperature": 0.0},
    }


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("o3", True),
        ("o4-mini", True),
        ("openai/o3", True),
        ("gpt-5.1", True),
        ("openai/gpt-5-mini", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-oss-120b", False),
        ("olmo-3", False),
        ("gpt-50", False),
    ],
)
def test_a_model_that_reasons_has_its_own_output_field_and_no_temperature(model: str, reasons: bool) -> None:
    request = Request(model=model, messages=[Message(role="user", text="hi")], max_tokens=7, temperature=0.5)
    body = json.loads(openai_body(request, provider(card="openai-compatible"), Rendered()))
    assert ("max_completion_tokens" in body, "temperature" in body) == (reasons, not reasons)
    assert ("max_tokens" in body) != reasons


ALL = Order()


def user(text: str) -> Message:
    return Message(role="user", text=text)


@pytest.mark.parametrize(
    ("order", "before", "after"),
    [
        (ALL, [user("a"), Message(role="assistant", text=" \n"), user("b")], [user("a\n\nb")]),
        (ALL, [user("")], [user("(no text)")]),
        (
            ALL,
            [user("a"), Message(role="assistant", text="b"), Message(role="assistant", text="c")],
            [user("a"), Message(role="assistant", text="b\n\nc")],
        ),
        (
            ALL,
            [Message(role="system", text="s"), user("a"), Message(role="system", text="t"), user("b")],
            [Message(role="system", text="s"), user("a\n\nt\n\nb")],
        ),
        (Order(system=False), [Message(role="system", text="s"), user("a")], [user("s\n\na")]),
        (
            ALL,
            [user("a"), Message(role="tool", text="x", tool_call_id="gone", name="shell")],
            [user("a\n\n[result of shell]\nx")],
        ),
        (
            ALL,
            [user("a"), *called("c1")[:1], user("b")],
            [
                user("a"),
                *called("c1")[:1],
                Message(role="tool", text=NO_RESULT, tool_call_id="c1", name="read_file"),
                user("b"),
            ],
        ),
        (
            ALL,
            [user("a"), *called("c1", "c2")[:1], *reversed(called("c1", "c2")[1:])],
            [user("a"), *called("c1", "c2")],
        ),
        (
            ALL,
            [user("a"), *called("c1")[:1], Message(role="tool", tool_call_id="c1", name="read_file")],
            [
                user("a"),
                *called("c1")[:1],
                Message(role="tool", text="(no output)", tool_call_id="c1", name="read_file"),
            ],
        ),
        (
            Order(images=False),
            [Message(role="user", text="look", images=(Image("image/png", "aGk="),))],
            [user("look\n[an image (image/png), which this model cannot see]")],
        ),
        (
            ALL,
            [Message(role="assistant", text="hello"), user("a")],
            [user("(The conversation begins here.)"), Message(role="assistant", text="hello"), user("a")],
        ),
    ],
    ids=[
        "blank assistant",
        "empty user",
        "two of the assistant",
        "system in the middle",
        "no role system",
        "result without call",
        "call without result",
        "results in another order",
        "empty result",
        "no images",
        "assistant first",
    ],
)
def test_what_strict_servers_refuse_is_arranged(order: Order, before: list[Message], after: list[Message]) -> None:
    assert arranged(before, order) == after


def test_a_model_that_sees_no_images_is_told_of_them() -> None:
    request = Request(model="m", messages=HISTORY, images=False)
    body = openai_body(request, provider(), Rendered()).decode()
    assert ("image_url" in body, body.count("which this model cannot see")) == (False, 2)
    assert json.loads(ollama_body(request, provider(wire="ollama"), Rendered()))["messages"][1].keys() == {
        "role",
        "content",
    }


@given(MESSAGES, MESSAGES)
def test_what_is_in_order_already_stays_as_it_is(before: list[Message], after: list[Message]) -> None:
    """A history is looked through before it is put in order: both ways give the same."""
    for order in (ALL, Order(ids="mistral", user_after_tool=False)):
        messages = arranged([*before, *called("c1", "c2"), *after], order)
        assert arranged(messages, order) == messages
        assert arranged([Message(role="system", text=""), *messages], order) == messages


def test_a_message_that_needs_no_change_stays_the_same_object() -> None:
    messages = [Message(role="system", text="s"), user("a"), *called("toolu_01ABC")]
    for form in ("plain", "mistral"):
        assert [id(message) for message in arranged(messages, Order(ids=form))] == [id(m) for m in messages]


def test_a_schema_is_cleaned_from_a_copy_as_the_provider_wants_it() -> None:
    schema: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "[a-z]", "format": "uri"},
            "const": {"const": "a"},
            "list": {"type": "array"},
            "any": {"anyOf": [{"type": "object", "additionalProperties": False}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }
    tool = Tool("t", "", schema)
    before = json.dumps(schema)
    made = {
        model: openai_tools([tool], dialect_of(made_by, model).schemas)[0]["function"]["parameters"]
        for made_by, model in [
            (provider(), "gpt-4o"),
            (provider(), "google/gemini-3-pro"),
            (provider(self_hosted=True), "qwen3"),
        ]
    }
    inner = schema["properties"]
    assert made["gpt-4o"] == {
        "type": "object",
        "properties": {**inner, "list": {"type": "array", "items": {}}},
        "additionalProperties": False,
    }
    assert made["google/gemini-3-pro"] == {
        "type": "object",
        "properties": {
            "pattern": inner["pattern"],
            "const": {"enum": ["a"]},
            "list": {"type": "array", "items": {"type": "string"}},
            "any": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        },
    }
    assert made["qwen3"]["properties"]["pattern"] == {"type": "string"}
    assert json.dumps(schema) == before


def test_half_characters_do_not_stop_a_request() -> None:
    assert compact({"text": "a\ud800b"}) == b'{"text":"a?b"}'


OPENROUTER = Provider(name="openrouter", card="openrouter", wire="openai", base_url="https://openrouter.ai/api/v1")
GOOGLE = Provider(
    name="gemini",
    card="openai-compatible",
    wire="openai",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
)


def sent_back(provider: Provider, model: str, message: Message) -> dict[str, Any]:
    """The assistant's message as it goes to *model*."""
    told = [Message(role="user", text="look"), message]
    body = openai_body(Request(model=model, messages=told), provider, Rendered())
    return json.loads(body)["messages"][1]


def test_openrouters_reasoning_goes_back_to_the_model_that_made_it_alone() -> None:
    details = [{"type": "reasoning.encrypted", "data": "c2VjcmV0", "index": 0}]
    issuer = dialect_of(OPENROUTER, "openai/gpt-5").issuer
    message = Message(role="assistant", text="hm", sealed=json.dumps(details), issuer=issuer)
    assert sent_back(OPENROUTER, "openai/gpt-5", message)["reasoning_details"] == details
    assert "reasoning_details" not in sent_back(OPENROUTER, "x-ai/grok-4", message)
    assert "reasoning_details" not in sent_back(GOOGLE, "gemini-3-pro", message)


def test_the_signature_of_a_call_goes_back_to_google_alone_and_another_models_call_gets_the_documented_one() -> (
    None
):
    issuer = dialect_of(GOOGLE, "gemini-3-pro").issuer
    calls = (ToolCall("a", "look", "{}", signature="c2ln"), ToolCall("b", "look", "{}"))
    own = Message(role="assistant", tool_calls=calls, issuer=issuer)
    first, second = sent_back(GOOGLE, "gemini-3-pro", own)["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    assert "extra_content" not in second
    others = Message(role="assistant", tool_calls=calls, issuer="somewhere else")
    first, second = sent_back(GOOGLE, "gemini-3-pro", others)["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert "extra_content" not in second
    assert all("extra_content" not in call for call in sent_back(OPENROUTER, "x/y", own)["tool_calls"])
