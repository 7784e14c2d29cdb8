"""Promises of agentx.wires.rendered: kept pieces never change what is sent, and do not pile up."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentx.config.links import Provider
from agentx.wires.dialect import ollama_body, openai_body
from agentx.wires.messages import Image, Message, Request, Tool, ToolCall
from agentx.wires.rendered import Rendered, compact

TEXT = st.text(max_size=12) | st.sampled_from(["", " ", "é", "\ud800", "a" * 40])
CALLS = st.lists(st.builds(ToolCall, TEXT, TEXT, st.sampled_from(["{}", "", '{"a": 1}', "no"])), max_size=2)
MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        text=TEXT,
        images=st.sampled_from([(), (Image("image/png", "QUJD"),)]),
        tool_calls=CALLS.map(tuple),
        tool_call_id=st.none() | TEXT,
        name=st.none() | TEXT,
        reasoning=TEXT,
    ),
    max_size=6,
)
SCHEMA = {"$schema": "x", "type": "object", "properties": {"a": {"type": "array"}}}
TOOLS = ((), (Tool("a", "b", SCHEMA), Tool("c", "d", {})), (Tool("a", "e", SCHEMA),))
PROVIDERS = [
    Provider(name="p", card=card, wire="openai", base_url=f"https://{host}/v1")
    for card, host in (("x", "example.com"), ("mistral", "api.mistral.ai"), ("openrouter", "openrouter.ai"))
]


@given(st.lists(MESSAGES, min_size=1, max_size=4), st.sampled_from(PROVIDERS), st.sampled_from([0, 100, 10_000]))
def test_what_is_kept_never_changes_the_bytes(parts: list[list[Message]], provider: Provider, most: int) -> None:
    """A history that grows, is asked of two models and starts anew, with little, some and much room to keep."""
    kept, history = Rendered(most), list[Message]()
    for turn, part in enumerate([*parts, *parts]):
        history = [*history, *part]
        tools = TOOLS[turn // 2 % 3]
        for model in ("m", "anthropic/claude-x"):
            for messages in (history, part, history):
                request = Request(model=model, messages=messages, tools=tools, max_tokens=5)
                assert openai_body(request, provider, kept) == openai_body(request, provider, Rendered())
                assert ollama_body(request, provider, kept) == ollama_body(request, provider, Rendered())


@given(
    st.dictionaries(st.sampled_from(["messages", "model", "a"]), st.lists(st.dictionaries(TEXT, TEXT)), min_size=1)
)
def test_a_body_is_what_json_makes_of_it(fields: dict[str, list[dict[str, str]]]) -> None:
    assert Rendered().body(fields) == compact(fields)


def test_what_no_request_holds_any_more_is_let_go() -> None:
    kept = Rendered(most_bytes=10_000)
    for turn in range(50):
        request = Request(model="m", messages=[Message(role="user", text=f"{turn}" + "x" * 1000)] * 3)
        openai_body(request, PROVIDERS[0], kept)
        assert kept.size < 20_000


def test_a_message_is_rendered_once() -> None:
    """However often it is sent: what its text costs is paid with the first request."""
    made: list[Message] = []

    def make(message: Message) -> dict[str, object]:
        made.append(message)
        return {"role": message.role}

    kept, old, new = Rendered(), Message(role="user", text="a"), Message(role="user", text="a")
    for _ in range(3):
        messages = kept.each("rules", make, [old, new])
        assert json.loads(kept.body({"messages": messages})) == {"messages": [{"role": "user"}] * 2}
    assert [id(message) for message in made] == [id(old), id(new)]
