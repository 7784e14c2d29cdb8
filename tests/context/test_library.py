"""`agentx.context` for other programs: OpenAI's chat form in, a view that fits out."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from agentx.context import ContextOverflow, WindowTooSmall, afit, fit, restore_tool_result
from agentx.errors import UsageError

SYSTEM = {"role": "developer", "content": "Be careful.", "name": "house"}
TASK = {"role": "user", "content": "Read all files.", "x_own": 1}
WORDS = "the quick brown fox jumps over the lazy dog again "


def chat(files: int, size: int = 30) -> list[dict[str, Any]]:
    """A conversation that reads *files* files of about *size* times ten tokens."""
    messages: list[dict[str, Any]] = [SYSTEM, TASK]
    for number in range(files):
        arguments = json.dumps({"path": f"{number}.txt"})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"})
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"file {number}: {WORDS * size}"}
        )
    return messages


def paired(messages: list[dict[str, Any]]) -> bool:
    open_: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not open_ or message["tool_call_id"] != open_.pop(0):
                return False
        elif open_:
            return False
        open_ += [call["id"] for call in message.get("tool_calls") or ()]
    return not open_


def test_what_fits_comes_back_as_it_was_given() -> None:
    messages = chat(3)
    view = fit(messages, 32_000)
    assert (view.messages, view.did) == (messages, ())


def test_what_does_not_fit_is_made_to_and_keeps_system_prompt_task_and_later_words() -> None:
    said = {"role": "user", "content": "Leave the docs alone."}
    messages = [*chat(20), said, *chat(20)[2:]]
    view = fit(messages, 8_192)
    assert view.did
    assert view.tokens <= view.threshold
    assert view.messages[0] == SYSTEM
    text = json.dumps(view.messages)
    assert "Read all files." in text
    assert said["content"] in text
    assert paired(view.messages)
    assert view.messages[-1] == messages[-1]


def test_a_summary_is_asked_of_the_function_that_was_given() -> None:
    seen: list[tuple[str, int]] = []

    def summarise(messages: list[dict[str, Any]], max_tokens: int) -> str:
        seen.append((messages[-1]["content"], max_tokens))
        return "Goal: go on with 7.txt."

    async def later(messages: list[dict[str, Any]], max_tokens: int) -> str:
        return summarise(messages, max_tokens)

    view = fit(chat(40), 8_192, summarise=summarise)
    again = asyncio.run(afit(chat(40), 8_192, summarise=later))
    assert view == again
    assert "summary" in view.did
    assert "Goal: go on with 7.txt." in json.dumps(view.messages)
    assert "file 0" in seen[0][0]
    assert 0 < seen[0][1] < 8_192


def test_a_refused_summary_leaves_the_work_to_code() -> None:
    view = fit(chat(40), 8_192, summarise=lambda messages, most: "")
    assert view.did
    assert "summary" not in view.did
    assert view.tokens <= view.threshold


def test_with_the_state_of_the_last_view_its_beginning_stays_the_same() -> None:
    """What a provider has cached is worth keeping: the next view only has more at its end."""
    messages = chat(44)
    first = fit(messages[:-4], 8_192)
    state = json.loads(json.dumps(first.state))
    second = fit(messages, 8_192, state=state)
    assert first.did
    assert second.did == ()
    assert second.messages == [*first.messages, *messages[-4:]]


def test_counts_of_the_provider_are_believed_more_than_the_estimate() -> None:
    messages = chat(20)
    first = fit(messages, 32_000)
    second = fit(messages, 32_000, state=first.state, reported=2 * first.state["estimate"])
    assert second.tokens == 2 * first.state["estimate"]


def test_what_a_marker_stands_for_comes_back_whole() -> None:
    messages = chat(12)
    assert restore_tool_result(messages, "r4") == messages[3]["content"]
    with pytest.raises(UsageError, match="nothing has the id `r99`"):
        restore_tool_result(messages, "r99")


def test_a_view_names_what_it_leaves_out_by_the_tool_and_the_list_names_all() -> None:
    messages = chat(20)
    named = restore_tool_result(messages, "list").splitlines()
    assert len(named) == 20
    assert named[0].startswith("- r4: read")
    view = json.dumps(fit(messages, 4_096).messages)
    assert "a tool" not in view


def test_a_summary_that_says_next_to_nothing_is_refused() -> None:
    view = fit(chat(40), 8_192, summarise=lambda messages, most: "x")
    assert "summary" not in view.did
    assert "read" in json.dumps(view.messages)


def test_images_are_counted_and_survive_where_they_are_shown() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": parts}]
    view = fit(messages, 32_000)
    assert view.messages == messages
    assert view.tokens > fit([{"role": "user", "content": "What is this?"}], 32_000).tokens


def test_what_cannot_work_is_a_clear_error() -> None:
    with pytest.raises(WindowTooSmall):
        fit(chat(1), 2_000)
    with pytest.raises(ContextOverflow):
        fit([{"role": "system", "content": WORDS * 2_000}, TASK], 8_192)
    with pytest.raises(UsageError, match="message 1: its role is `function`"):
        fit([{"role": "function", "content": "x"}], 8_192)
    with pytest.raises(UsageError, match="longer conversation"):
        fit(chat(1), 8_192, state=fit(chat(40), 8_192).state)


@pytest.mark.parametrize(
    "bad",
    [
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": None}}]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "assistant", "tool_calls": ["x"]},
        {"role": "user", "content": ["hi"]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "http://x/y.png"}]},
        {"role": "user", "content": 3},
    ],
)
def test_what_is_no_chat_message_is_refused_with_its_place(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="message 2: "):
        fit([TASK, bad], 8_192)


def test_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, agentx.context; heavy = ('pydantic', 'yaml', 'httpx', 'litellm', 'click', 'tiktoken');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
