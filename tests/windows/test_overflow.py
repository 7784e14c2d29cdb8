"""Every refusal of facts/windows is read for what it says, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.windows.overflow import Overflow, read_overflow

PAYLOADS = Path(__file__).parent / "payloads"
RECORDED: list[dict[str, Any]] = json.loads((PAYLOADS / "_errors.json").read_text(encoding="utf-8"))


def over(limit: int | None, actual: int | None = None, **more: Any) -> Overflow:
    return Overflow(cause=more.pop("cause", "input"), limit=limit, actual=actual, **more)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["file"])
def test_a_recorded_refusal_is_read_right(case: dict[str, Any]) -> None:
    found = read_overflow(case["status"], (PAYLOADS / case["file"]).read_text(encoding="utf-8"))
    expect = case["expect"]
    if not expect.get("overflow") and not expect.get("output_too_large"):
        assert found is None
        return
    assert found == over(
        expect["limit"],
        expect.get("actual"),
        cause="input" if expect["overflow"] else "output",
        output=expect.get("output", found.output if found else None),
        at_least=expect.get("actual_at_least"),
        excess=expect.get("excess"),
    )


MAX = "This model's maximum context length is {} tokens. However, "
SAID: list[tuple[str, Overflow]] = [
    ("the request exceeds the available context size. try increasing the context size", over(None)),
    ("input (9000 tokens) is larger than the max context size (8192 tokens). skipping", over(8192, 9000)),
    ("input length (9001 tokens) exceeds the model's maximum context length (8192 tokens)", over(8192, 9001)),
    ("input length exceeds maximum context length", over(None)),
    (
        "Trying to keep the first 5204 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens, which is not enough.",
        over(4096, 5204),
    ),
    (
        MAX.format(8192) + "you requested 512 output tokens and your prompt contains at least 7681 input tokens, "
        "for a total of at least 8193 tokens.",
        over(8192, None, output=512, at_least=7681),
    ),
    (
        MAX.format(8192) + "you requested 512 output tokens and your prompt contains 7900 input tokens.",
        over(8192, 7900, output=512, cause="output"),
    ),
    ("The engine prompt length 9012 exceeds the max_model_len 8192. Please reduce prompt.", over(8192, 9012)),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 "
        "tokens and your request has 100 input tokens (9000 > 8192 - 100).",
        over(8192, 100, output=9000, cause="output"),
    ),
    (
        MAX.format("1048576") + "you requested 1051266 tokens (658050 in the messages, 393216 in the completion).",
        over(1048576, 658050, output=393216, cause="output"),
    ),
    (
        MAX.format(4097) + "your messages resulted in 5000 tokens (4800 in the messages, 200 in the functions).",
        over(4097, 5000),
    ),
    (
        "Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens). Use a shorter input.",
        over(8186, 9000),
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8000 `inputs` tokens "
        "and 400 `max_new_tokens`",
        over(8192, 8000, output=400, cause="output"),
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens.",
        over(272000, 300123),
    ),
    (
        "The input token count (1048580) exceeds the maximum number of tokens allowed (1048575).",
        over(1048575, 1048580),
    ),
    ("Too many input tokens", over(None)),
    (
        "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        over(131072, 140000),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 131100 tokens.",
        over(131072, 131100),
    ),
    ("Your request exceeded model token limit: 262144 (requested: 270000)", over(262144)),
    ("invalid params, context window exceeds limit (2013)", over(None)),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", over(129024)),
    ("Prompt exceeds max length", over(None)),
    ("Prompt has 40,961 tokens, but the configured context size is 32,768 tokens", over(32768, 40961)),
    (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - "
        '{"error":{"message":"request (4281 tokens) exceeds the available context size (4096 tokens)"}}',
        over(4096, 4281),
    ),
    ("litellm.ContextWindowExceededError: no words of the upstream", over(None)),
    (
        "input length and `max_tokens` exceed context limit: 205000 + 100 > 200000",
        over(200000, 205000, output=100),
    ),
    (MAX.format(8192) + "your request has 9000 input tokens.", over(8192, 9000)),
    ("This model's maximum context length is 8192 tokens, however you requested 9000 tokens", over(8192)),
    ("the request exceeds the available context size (8192 tokens)", over(8192)),
    ("slot context: the request exceeds n_ctx_slot = 8192", over(8192)),
    ("prompt too long; exceeded max context length", over(None)),
    ("input length 9000 exceeds context length 8192", over(8192, 9000)),
    ("prompt is too long", over(None)),
    ("Your input exceeds the context window of this model.", over(None)),
    ("the prompt exceeds the model's context length", over(None)),
    ("The input token count (9000) exceeds the maximum.", over(None, 9000)),
    ("the request exceeds the maximum number of input tokens", over(None)),
    ("this prompt is too large for model with 8192 maximum context length", over(8192)),
    ("This model's maximum prompt length is 8192.", over(8192)),
    ("the prompt of 9000 tokens exceeds the limit of 8192", over(8192)),
    ("the prompt exceeds the maximum allowed input length of 8192 tokens", over(8192)),
    ("the context length is only 8192 tokens", over(8192)),
    ("the number of tokens is greater than the context length", over(None)),
    ("Please reduce the length of your prompt.", over(None)),
    ("输入内容超过最大长度", over(None)),
    ("请求超出模型的上下文长度", over(None)),
]


@pytest.mark.parametrize(("message", "expected"), SAID, ids=[str(number) for number in range(len(SAID))])
@pytest.mark.parametrize("shape", ["wrapped", "flat", "text", "nested", "event"])
def test_a_wording_is_read_in_every_shape_it_comes_in(message: str, expected: Overflow, shape: str) -> None:
    body = {
        "wrapped": lambda: json.dumps({"error": {"message": message, "type": "invalid_request_error"}}),
        "flat": lambda: json.dumps({"object": "error", "message": message, "code": 400}),
        "text": lambda: message,
        "nested": lambda: json.dumps({"error": json.dumps({"error": json.dumps({"message": message})})}),
        "event": lambda: f"event: error\ndata: {json.dumps({'error': {'message': message}})}\n\n",
    }[shape]()
    status = None if shape == "event" else 400
    assert read_overflow(status, body) == expected


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000"),
        (429, "maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens"),
        (400, '{"message": "ThrottlingException: Too many tokens, please wait before trying again."}'),
        (400, '{"error": {"message": "too long", "code": "string_above_max_length"}}'),
        (400, '{"error": {"message": "max_tokens must be at most 8192"}}'),
        (400, '{"error": {"message": "Invalid number of tools: 200, maximum length 128"}}'),
        (500, '{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}'),
        (400, '{"error": {"message": "Daily token limit exceeded."}}'),
        (400, '{"error": {"message": "Your image exceeds the limit of 5 MB."}}'),
        (
            400,
            '{"error": {"message": "1024 tokens are less than the minimum token count to start caching (4096)."}}',
        ),
        (400, '{"error": {"message": "The number of requests exceeds the limit of 20."}}'),
        (400, '{"error": {"message": "bad", "input": "prompt is too long: 5000 tokens > 4000 maximum"}}'),
        (500, ""),
        (400, ""),
    ],
)
def test_other_refusals_are_no_overflow(status: int, body: str) -> None:
    assert read_overflow(status, body) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            413,
            '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        ),
        (413, "<html><h1>413 Request Entity Too Large</h1></html>"),
        (413, ""),
        (400, '{"error": {"message": "Request body too large"}}'),
    ],
)
def test_too_many_bytes_are_told_apart_from_too_many_tokens(status: int, body: str) -> None:
    assert read_overflow(status, body) == Overflow(cause="bytes")


def test_a_typed_refusal_is_read_from_its_fields_whatever_its_words() -> None:
    body = '{"error": {"message": "zu lang", "n_prompt_tokens": 5000, "n_ctx": 4096}}'
    assert read_overflow(400, body) == over(4096, 5000)


@given(st.one_of(st.none(), st.integers(100, 599)), st.text())
def test_no_body_breaks_the_reader(status: int | None, body: str) -> None:
    read_overflow(status, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "message", "n_ctx", "x"]), inner),
)


@given(JSON)
def test_no_json_breaks_the_reader(value: Any) -> None:
    read_overflow(400, json.dumps(value))


def test_deep_nesting_does_not_break_the_reader() -> None:
    assert read_overflow(400, "[" * 100_000) is None
    assert read_overflow(400, '{"error":' * 500 + "1" + "}" * 500) is None
