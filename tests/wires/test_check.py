"""What must not be committed is refused by its class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentx.errors import RequestFailed
from agentx.wires.check import check, check_length
from agentx.wires.messages import Finish, Message, Reply, Request, ToolCall, Usage


def reply(text: str = "", *calls: ToolCall, finish: Finish = "stop", reasoning: str = "") -> Reply:
    message = Message(role="assistant", text=text, tool_calls=calls, reasoning=reasoning)
    return Reply(message=message, finish=finish, usage=None, model="m", seconds=0.1)


def test_whole_replies_pass() -> None:
    check(reply("done"))
    check(reply("", ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"), finish="tool_calls"))
    check(reply("Once upon", finish="length"))
    check(reply("", ToolCall("a", "f", '{"x": 1}'), finish="length"))


@pytest.mark.parametrize(
    ("bad", "error_class"),
    [
        (reply(), "empty_reply"),
        (reply(" \n"), "empty_reply"),
        (reply(reasoning="hm"), "empty_reply"),
        (reply(reasoning="hm", finish="length"), "cut"),
        (reply(finish="window"), "cut"),
        (reply("", ToolCall("a", "f", '{"x":'), finish="length"), "cut"),
        (reply("", ToolCall("a", "f", "{}"), ToolCall("b", "", ""), finish="length"), "cut"),
        (reply("", ToolCall("a", "f", "{}"), finish="length"), "cut"),
        (reply("", ToolCall("a", "", "{}")), "invalid_reply"),
        (reply("", ToolCall("a", "f", '{"x":')), "invalid_reply"),
        (reply("", ToolCall("a", "f", "[1]")), "invalid_reply"),
        (reply("", ToolCall("", "f", "{}")), "invalid_reply"),
        (reply("", ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}")), "invalid_reply"),
        (reply("half of", finish="content_filter"), "content_filter"),
    ],
)
def test_what_is_no_reply_is_refused(bad: Reply, error_class: str) -> None:
    with pytest.raises(RequestFailed) as caught:
        check(bad)
    assert (caught.value.phase, caught.value.error_class) == ("reply", error_class)


@pytest.mark.parametrize(
    ("finish", "output", "allowed", "window", "refused"),
    [
        ("length", 5, 8_192, 32_768, True),
        ("window", 5, 8_192, 32_768, True),  # so the server says, and it cannot be
        ("length", 128, 8_192, 32_768, False),  # one can go on from there
        ("length", 5, 8_192, 10_000, False),  # the window may have been full
        ("length", 5, 256, 32_768, False),
        ("length", 5, None, 32_768, False),  # the server's own limit, which nobody asked it to raise
        ("stop", 5, 8_192, 32_768, False),
    ],
)
def test_a_server_that_stops_after_a_few_tokens_gives_no_reply(
    finish: Finish, output: int, allowed: int | None, window: int, refused: bool
) -> None:
    request = Request(model="m", messages=[], max_tokens=allowed)
    cut = replace(reply("The codes are", finish=finish), usage=Usage(input=3_000, output=output))
    if not refused:
        check_length(cut, request, window)
        return
    with pytest.raises(RequestFailed, match="cut after 5 tokens, with 8,192 allowed") as caught:
        check_length(cut, request, window)
    assert caught.value.error_class == "invalid_reply"
