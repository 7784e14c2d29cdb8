"""Every form in which servers send calls, reasoning and counts comes to one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.wires.gather import Gathered
from agentx.wires.messages import Finish, Usage
from agentx.wires.readers import ChatReader, OllamaReader
from agentx.wires.transport import Broken
from agentx.wires.usage import usage_of, usage_of_timings


def gathered(*deltas: dict[str, Any]) -> Gathered:
    found = Gathered()
    for piece in deltas:
        found.add({"choices": [{"index": 0, "delta": piece}]})
    return found


def calls(*pieces: Any) -> list[tuple[str, str, str]]:
    found = gathered(*({"tool_calls": piece} for piece in pieces))
    return [(call.id, call.name, "".join(call.arguments)) for call in found.calls]


def function(name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


TWO = [("a", "f", '{"x":1}'), ("b", "g", "{}")]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [[{"index": 0, "id": "a", "function": function("f", '{"x":1}')}],
             [{"index": 1, "id": "b", "function": function("g", "{}")}]],
            id="whole calls by index",
        ),
        pytest.param(
            [[{"id": "a", "function": function("f", '{"x":1}')}, {"id": "b", "function": function("g", "{}")}]],
            id="whole calls without an index",
        ),
        pytest.param(
            [[{"index": 0, "id": "a", "function": function("f", '{"x":1}')}],
             [{"index": 0, "id": "b", "function": function("g", "{}")}]],
            id="all with index 0",
        ),
        pytest.param(
            [[{"id": "a", "function": function("f")}], [{"function": function(arguments='{"x"')}],
             [{"function": function(arguments=":1}")}], [{"id": "b", "function": function("g", "{}")}]],
            id="pieces without an index",
        ),
        pytest.param(
            [[{"index": 0, "id": "a", "function": function("f", '{"x"')}],
             [{"index": 0, "id": "a", "function": function("f", ":1}")}],
             [{"index": 1, "id": "b", "function": function("g", {})}]],
            id="id and name repeated in each piece, arguments as an object",
        ),
        pytest.param(
            [{"id": "a", "function": function("f", '{"x":1}')}, {"id": "b", "name": "g", "arguments": "{}"}],
            id="one object in place of a list, no function table",
        ),
        pytest.param(
            [[{"index": 0, "id": "a", "function": function("f", '{"x"')}],
             [{"index": 1, "id": "b", "function": function("g", "{}")}],
             [{"index": 0, "id": "", "function": function("", ":1}")}]],
            id="pieces of two calls in turn",
        ),
    ],
)  # fmt: skip
def test_calls_are_found_in_every_form(pieces: list[Any]) -> None:
    assert calls(*pieces) == TWO


def test_calls_without_any_id_are_told_apart_by_whole_arguments() -> None:
    pieces = [[{"function": function("f", '{"x":1}')}], [{"function": function("f", "{}")}]]
    assert calls(*pieces) == [("", "f", '{"x":1}'), ("", "f", "{}")]


def test_the_old_function_call_is_a_call() -> None:
    found = gathered({"function_call": function("f", '{"x"')}, {"function_call": function(None, ":1}")})
    assert [(call.name, "".join(call.arguments)) for call in found.calls] == [("f", '{"x":1}')]


THOUGHTFUL: list[dict[str, Any]] = [
    {"content": "hi", "reasoning_content": "hm"},
    {"content": "hi", "reasoning": "hm"},
    {"content": "hi", "reasoning": "hm", "reasoning_content": "hm"},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "hi"}]},
    {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]},
]


@pytest.mark.parametrize("piece", THOUGHTFUL)
def test_text_and_reasoning_are_kept_apart(piece: dict[str, Any]) -> None:
    found = gathered(piece)
    assert ("".join(found.text), "".join(found.reasoning)) == ("hi", "hm")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"), ("STOP", "stop"), ("end_turn", "stop"), ("eos", "stop"), ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"), ("length", "length"), ("max_tokens", "length"),
        ("content_filter", "content_filter"), ("SAFETY", "content_filter"), ("model_length", "window"),
        ("model_context_window_exceeded", "window"),
    ],
)  # fmt: skip
def test_reasons_come_to_five(reason: str, finish: Finish) -> None:
    found = Gathered()
    found.add({"choices": [{"delta": {}, "finish_reason": reason}]})
    assert found.finish == finish


ERRORS: list[dict[str, Any]] = [
    {"error": {"message": "no"}},
    {"error": "no"},
    {"object": "error", "message": "no", "code": 400},
    {"type": "error", "message": "no"},
    {"choices": [{"delta": {}, "finish_reason": "network_error"}]},
]


@pytest.mark.parametrize("chunk", ERRORS)
def test_an_error_in_place_of_a_chunk_breaks_the_reply(chunk: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        Gathered().add(chunk)


SILENT: list[dict[str, Any]] = [
    {},
    {"choices": [{"delta": {}}]},
    {"choices": [{"delta": None}]},
    {"choices": [{"delta": {"content": "", "reasoning": None, "tool_calls": []}}]},
    {"type": "ping"},
    {"choices": [], "usage": {"prompt_tokens": 1}},
]


@pytest.mark.parametrize("chunk", SILENT)
def test_a_chunk_without_content_is_not_heard(chunk: dict[str, Any]) -> None:
    assert not Gathered().add(chunk)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input=10, output=2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}},
         Usage(input=10, output=2, cache_read=8)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 8},
         Usage(input=10, output=2, cache_read=8)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 8},
         Usage(input=10, output=2, cache_read=8)),
        ({"prompt_tokens": 10, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
         Usage(input=10, output=9, reasoning=7)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 19,
          "completion_tokens_details": {"reasoning_tokens": 7}}, Usage(input=10, output=9, reasoning=7)),
        ({"input_tokens": 10, "output_tokens": 2,
          "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5},
         Usage(input=115, output=2, cache_read=100, cache_write=5)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": None}, None),
    ],
)  # fmt: skip
def test_counts_come_to_one_meaning(reported: dict[str, Any], usage: Usage | None) -> None:
    assert usage_of(reported) == usage


def test_timings_of_llamacpp_are_usage() -> None:
    assert usage_of_timings({"cache_n": 36, "prompt_n": 1, "predicted_n": 12}) == Usage(
        input=37, output=12, cache_read=36
    )
    assert usage_of_timings({"prompt_ms": 3.0}) is None


def test_a_later_usage_of_nothing_does_not_erase_an_earlier_one() -> None:
    found = Gathered()
    found.add({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    found.add({"choices": [], "usage": {"prompt_tokens": 0}})
    assert found.usage == Usage(input=5, output=1)


KEYS = [
    *("choices", "delta", "message", "content", "text", "thinking", "reasoning", "reasoning_content", "refusal"),
    *("tool_calls", "function_call", "function", "name", "arguments", "id", "index", "type", "finish_reason"),
    *("usage", "timings", "cache_n", "prompt_n", "predicted_n", "prompt_tokens", "completion_tokens"),
    *("prompt_tokens_details", "cached_tokens", "total_tokens", "model", "truncated", "error", "code"),
    *("done", "done_reason", "prompt_eval_count", "eval_count"),
]
"""Every name that the readers look for."""
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=8))
def test_no_json_breaks_a_reader(piece: dict[str, Any]) -> None:
    """Only Broken may come out, whatever stands under the names that are read."""
    text = json.dumps(piece)
    for reader, data in ((ChatReader(), f"data: {text}\n\n"), (ChatReader(), text), (OllamaReader(), f"{text}\n")):
        with suppress(Broken):
            reader.feed(data.encode())
            reader.close()


@pytest.mark.parametrize("count", ["1e999", "-1e999", "true", "1e15", "null", "[]"])
def test_a_count_that_is_none_is_left_out(count: str) -> None:
    found = Gathered()
    found.add(json.loads(f'{{"choices": [], "usage": {{"prompt_tokens": {count}, "completion_tokens": 3}}}}'))
    assert found.usage is None
