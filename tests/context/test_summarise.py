"""Summaries are untrusted: what is refused, and how the input is fitted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.context.items import Item
from agentx.context.measure import estimate, message_tokens, text_tokens
from agentx.context.summarise import MOST_PARTS, Other, Summariser, in_order, split, summarise
from agentx.context.summary_check import Refused, Summary
from agentx.errors import ChainExhausted, RequestFailed, StopRequested
from agentx.wires.messages import Message, ToolCall, Usage

if TYPE_CHECKING:
    from tests.context.conftest import Bench


def items_of(number: int, length: int = 2_000) -> list[Item]:
    found: list[Item] = []
    for n in range(number):
        call = Message(role="assistant", tool_calls=(ToolCall(f"c{n}", "read_file", f'{{"path": "{n}.md"}}'),))
        result = Message(role="tool", text=f"code K{n} " + "x" * length, tool_call_id=f"c{n}", name="read_file")
        found.append(Item(2 * n + 2, "assistant", call, message_tokens(call)))
        found.append(Item(2 * n + 3, "tool", result, message_tokens(result)))
    return found


def no_count(text: str) -> int | None:
    return None


def by_length(text: str) -> int | None:
    return len(text) // 4


def told(ask: Any, *, window: int = 8_192, counter: Any = no_count, **more: Any) -> Summary | Refused:
    settings: dict[str, Any] = {"before": "", "task": "read all", "limit_tokens": 400}
    own: dict[str, Any] = {"seconds": 30}
    own |= {name: more.pop(name) for name in ("seconds", "output", "cut") if name in more}
    model = Summariser(ask=ask, window=window, factor=1.0, counter=counter, **own)
    return asyncio.run(summarise(model, more.pop("items", items_of(4)), **(settings | more)))


def test_a_good_summary_is_taken_without_its_thoughts(bench: Bench) -> None:
    answer = told(bench.scripted("<think>let me see</think>\nGoal: read all"))
    assert answer == Summary("Goal: read all")


@pytest.mark.parametrize(
    ("text", "more", "cause"),
    [
        ("", {}, "empty"),
        ("  \n", {"reasoning": "I think that ..."}, "empty"),
        ("<think>only this", {}, "empty"),
        ("Goal: re", {"finish": "length"}, "cut"),
        ("Goal: re", {"finish": "window"}, "cut"),
        ("Goal", {"tool_calls": (ToolCall("x", "shell", "{}"),)}, "no_summary"),
        ("no", {"finish": "content_filter"}, "no_summary"),
        ('{"error": "model is loading"}', {}, "no_summary"),
        ("Error: upstream timed out", {}, "no_summary"),
        ("blah " * 2_000, {}, "too_long"),
        ('{"detail": "Not Found"}', {}, "no_summary"),
        ('{"object": "error", "message": "the engine is dead", "code": 500}', {}, "no_summary"),
        ('```json\n{"error": {"message": "overloaded"}}\n```', {}, "no_summary"),
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down", {}, "no_summary"),
        ("Error code: 503 - no healthy upstream", {}, "no_summary"),
        ("502 Bad Gateway", {}, "no_summary"),
        ("Error generating summary: Connection error.", {}, "no_summary"),
        ("Previous conversation was too long to summarize.", {}, "no_summary"),
        ("upstream connect error or disconnect/reset before headers", {}, "no_summary"),
        ("The model is overloaded, please try again later.", {}, "no_summary"),
        ("Rate limit reached for requests", {}, "no_summary"),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000", {}, "no_summary"),
        ("I'm sorry, but I can't help with that request.", {}, "no_summary"),
        ("An unexpected error occurred while processing your request.", {}, "no_summary"),
        ("Request timed out.", {}, "no_summary"),
        ("<html><body><h1>504</h1></body></html>", {}, "no_summary"),
        ("Traceback (most recent call last):\n  File ...", {}, "no_summary"),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>', {}, "no_summary"),
        ('{"name": "read_file", "arguments": {"path": "a"}}', {}, "no_summary"),
        ("Okay, let me think about what the user wants here. First I should look at the files.", {}, "empty"),
        ("We need to produce a summary of the conversation. The agent read four notes and", {}, "empty"),
        ("Understood.", {}, "empty"),
        ("Goal:\nDone:\nNext step:\n", {}, "empty"),
        ("## Goal\nN/A\n## Next\nNone", {}, "empty"),
    ],
)
def test_what_is_no_summary_is_refused(bench: Bench, text: str, more: dict[str, Any], cause: str) -> None:
    answer = told(bench.scripted(bench.reply(text, **more)))
    assert isinstance(answer, Refused)
    assert answer.cause == cause


@pytest.mark.parametrize(
    "text",
    [
        "Goal: mend the build\nErrors open: `make` says Error: rate limit exceeded, try again; it timed out",
        "Errors open:\n- 502 Bad Gateway from the staging server\nNext step: ask again",
        "## Goal\nread all\n## Errors\nTraceback (most recent call last) in app.py",
        "**Goal**\nSay sorry to the customer: the order could not be shipped",
        "The agent read four of twelve notes; their codes are K0, K1, K2 and K3. Next it reads note 5.",
        '{"goal": "read all", "done": ["note 1"], "next": "note 2"}',
        "目标：读完所有笔记。已完成：第一至第四篇。下一步：第五篇。",
    ],
)
def test_a_summary_that_speaks_of_errors_is_one(bench: Bench, text: str) -> None:
    assert told(bench.scripted(text)) == Summary(text)


def test_what_a_model_says_to_itself_before_its_summary_is_left_out(bench: Bench) -> None:
    answer = told(bench.scripted("Okay, let me write the summary.\n\nGoal: read all\nNext step: note 5"))
    assert answer == Summary("Goal: read all\nNext step: note 5")


def test_a_summary_a_little_over_its_limit_is_shortened_where_it_is_longest(bench: Bench) -> None:
    done = "\n".join(f"- step {n} of the long list is done" for n in range(50))
    answer = told(bench.scripted(f"Goal: read all\nDone:\n{done}\nNext step: note 5"), limit_tokens=400)
    assert isinstance(answer, Summary)
    assert text_tokens(answer.text) <= 400
    assert answer.text.startswith("Goal: read all\n")
    assert answer.text.endswith("Next step: note 5")
    assert "step 0 of" in answer.text
    assert "step 49 of" in answer.text


def test_a_request_asks_for_every_section(bench: Bench) -> None:
    ask = bench.scripted("Goal: read all")
    told(ask)
    for section in (
        *("Goal", "User's constraints and corrections", "Done", "In progress", "Decisions and why"),
        *("Files and their state", "Commands and results", "Errors open", "Next step"),
    ):
        assert f"\n{section}:" in ask.seen[0][-1].text


def test_a_summary_as_long_as_what_it_replaces_is_none(bench: Bench) -> None:
    answer = told(bench.scripted("word " * 300), items=items_of(1, 1_200), limit_tokens=400)
    assert isinstance(answer, Refused)
    assert answer.cause == "too_long"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RequestFailed("no route", phase="connect"), "network"),
        (RequestFailed("401", phase="status", status=401), "auth"),
        (RequestFailed("busy", phase="status", status=503), "server"),
        (RequestFailed("slow", phase="stream", timed_out=True), "timeout"),
        (RequestFailed("cut", phase="reply", error_class="truncated"), "truncated"),
        (ChainExhausted("all failed"), "network"),
    ],
)
def test_a_model_that_cannot_be_asked_changes_nothing(bench: Bench, error: Exception, cause: str) -> None:
    answer = told(bench.scripted(error))
    assert isinstance(answer, Refused)
    assert answer.cause == cause


def test_a_stop_is_not_swallowed(bench: Bench) -> None:
    with pytest.raises(StopRequested):
        told(bench.scripted(StopRequested("stop")))


def test_a_model_that_never_answers_meets_a_deadline() -> None:
    async def silent(messages: Any, max_tokens: int) -> Any:
        await asyncio.Event().wait()

    answer = told(silent, seconds=0.01)
    assert isinstance(answer, Refused)
    assert answer.cause == "timeout"


def test_a_summary_of_a_truncated_request_is_refused(bench: Bench) -> None:
    reply = bench.reply("Goal: read all", usage=Usage(input=700, output=10))
    answer = told(bench.scripted(reply), counter=by_length)
    assert isinstance(answer, Refused)
    assert answer.cause == "truncated"


def test_the_input_is_fitted_to_the_summarisers_own_window_in_parts(bench: Bench) -> None:
    ask = bench.scripted("part one", "part two", "all of it")
    assert told(ask, window=4_096, items=items_of(12)) == Summary("all of it")
    assert 2 <= len(ask.seen) <= MOST_PARTS
    for messages, asked in zip(ask.seen, ask.max_tokens, strict=True):
        assert estimate(messages) + asked <= 4_096
    assert "part one" in ask.seen[1][-1].text
    sent = "".join(messages[-1].text for messages in ask.seen)
    assert all(f"code K{n} " in sent for n in range(12))


def test_no_tool_block_is_ever_sent_with_a_summary_request(bench: Bench) -> None:
    ask = bench.scripted("Goal")
    told(ask)
    assert [message.role for message in ask.seen[0]] == ["system", "user"]
    assert not any(message.tool_calls for message in ask.seen[0])


def test_no_more_is_asked_for_than_the_model_can_write(bench: Bench) -> None:
    ask = bench.scripted("Goal: read all")
    told(ask, output=160)
    assert ask.max_tokens == [160]
    assert "At most 76 words" in ask.seen[0][-1].text


def test_a_request_that_was_cut_is_made_again_for_the_window_that_showed(bench: Bench) -> None:
    cuts: list[tuple[int, int]] = []

    def cut(reported: int, sent: int, window: int) -> None:
        cuts.append((reported, window))

    short = bench.reply("Goal: read some", usage=Usage(input=4_096, output=10))
    ask = bench.scripted(short, "part one", "part two", "Goal: read all")
    answer = told(ask, window=32_768, items=items_of(12), counter=by_length, cut=cut)
    assert answer == Summary("Goal: read all")
    assert cuts == [(4_096, 4_096)]
    assert all(estimate(messages) < 4_096 for messages in ask.seen[1:])


def test_the_larger_model_that_knows_the_conversation_is_asked_first_and_paid_ones_do_not_stand_in() -> None:
    async def ask(messages: Any, max_tokens: int) -> Any: ...

    def other(name: str, window: int, **more: Any) -> Other:
        return Other(link=name, name=name, ask=ask, window=window, **more)

    small, large, third, paid = (
        other("small", 32_000),
        other("large", 200_000),
        other("third", 64_000),
        other("paid", 400_000, paid=True),
    )

    def order(own: Other, last: str) -> list[str]:
        return [one.name for one in in_order(own, [small, large, third, paid], last=last)]

    assert order(small, "large") == ["large", "small", "third"]
    assert order(small, "small") == ["small", "large", "third"]
    assert order(large, "small") == ["large", "small", "third"]
    assert order(small, "paid") == ["paid", "small", "large"]


def test_a_window_that_cannot_hold_the_request_is_said_so(bench: Bench) -> None:
    answer = told(bench.scripted("x"), window=900)
    assert isinstance(answer, Refused)
    assert answer.cause == "window"


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=40), st.integers(200, 5_000))
def test_there_are_never_more_than_six_parts_and_none_is_much_too_long(lengths: list[int], room: int) -> None:
    items = [item for length in lengths for item in items_of(1, length)]
    parts = split(items, room)
    assert len(parts) <= MOST_PARTS
    assert all(len(part) / 4 <= room * 1.1 + 100 for part in parts)
