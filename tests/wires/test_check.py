"""What must not be committed is refused by its class."""

from __future__ import annotations

import pytest

from agentx.errors import RequestFailed
from agentx.wires.check import check
from agentx.wires.messages import Finish, Message, Reply, ToolCall


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
