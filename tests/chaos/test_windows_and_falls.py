"""Windows that are not what was believed, and chains whose links hold less or more: nothing is lost in either."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, asks_for_summary, text_of
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json, count_prompt, normal
from agentx.testing.faults import Fault, Status, after, at
from agentx.testing.server import FaultServer, Seen

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

HOLDS = 4_000
"""Tokens, of the servers that claim much more."""
SAYS = "This model's maximum context length is"
WORDS: dict[str, tuple[int, str, int | None]] = {
    "anthropic": (400, "prompt is too long: 4100 tokens > 4000 maximum", 4_000),
    "openai": (400, f"{SAYS} 4000 tokens. However, your messages resulted in 4100 tokens.", 4_000),
    "vllm": (400, f"{SAYS} 4000 tokens. However, your request has 4100 input tokens.", 4_000),
    "llama.cpp": (400, "the request exceeds the available context size (4000 tokens)", 4_000),
    "ollama": (400, "input length (4100 tokens) exceeds the model's maximum context length (4000 tokens)", 4_000),
    "xai": (400, "This model's maximum prompt length is 4000 but the request contains 4100 tokens.", 4_000),
    "google": (400, "The input token count (4100) exceeds the maximum number of tokens allowed (4000).", 4_000),
    "kimi": (400, "Your request exceeded model token limit: 4000 (requested: 4100)", 4_000),
    "qwen": (400, "Range of input length should be [1, 4000]", 4_000),
    "minimax": (400, "invalid params, context window exceeds limit (2013)", None),
    "azure": (400, "Please reduce the length of the messages or completion.", None),
    "chinese gateway": (400, "输入内容超过最大长度", None),
    "as 422": (422, "Input is too long for requested model.", None),
    "as 500": (500, "context_length_exceeded: the input exceeds the context window of this model", None),
}


def tokens(seen: Seen) -> int:
    return count_prompt(normal(seen.body["messages"]), seen.body.get("tools") or [])


def refuses(server: FaultServer, holds: int, status: int, words: str) -> Callable[[int], Fault | None]:
    """Refuses every request of more than *holds* tokens."""
    body = {"error": {"message": words, "type": "invalid_request_error"}}

    def schedule(_: int) -> Fault | None:
        return Status(status, body=body) if tokens(server.requests[-1]) > holds else None

    return schedule


@pytest.mark.parametrize("name", WORDS)
def test_a_link_that_refuses_what_is_too_long_is_asked_again_with_less_and_no_other_takes_over(
    night: Night, name: str
) -> None:
    """Whatever its words. They never reach a model, and nothing as large is sent a second time."""
    status, words, limit = WORDS[name]
    codes = night.notes(8, words=400)
    with FaultServer(NoteReader(), window=131_072) as server, FaultServer(NoteReader()) as other:
        server.schedule = refuses(server, HOLDS, status, words)
        ran = night.run([server, other], note_task(8))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    failed = ran.of("link.failed", purpose="turn")
    assert failed and {event["class"] for event in failed} == {"overflow"}, ran.story
    assert (ran.of("link.switched"), other.chats) == ([], []), ran.story
    refused = [tokens(seen) for seen in server.chats if seen.status == status]
    assert refused == sorted(refused, reverse=True) and len(refused) <= 4
    if limit:
        assert ran.of("window.learned")[0]["value"] == limit, ran.story
    assert not any(words[:40] in json.dumps(seen.body, ensure_ascii=False) for seen in server.chats)


@pytest.mark.parametrize(
    ("face", "card"), [("lmstudio", "lmstudio"), ("llamacpp", "llamacpp"), ("ollama", "ollama")]
)
def test_the_size_that_is_loaded_counts_and_not_the_one_it_was_trained_for(
    night: Night, face: Any, card: str
) -> None:
    link = {"card": card, "window": 42_240} if card == "ollama" else {"card": card}
    with FaultServer(face=face, window=42_240, trained=262_144, loaded=True) as server:
        ran = night.run([{"server": server, **link}], "say hello")
    (selected,) = ran.of("link.selected")
    assert (selected["window"], selected["threshold"]) == (42_240, 21_120)


def test_the_same_work_is_compacted_at_32k_and_not_at_a_million(night: Night) -> None:
    codes = night.notes(14, words=900)
    compactions: list[int] = []
    for window in (32_000, 1_000_000):
        with FaultServer(NoteReader(), window=window) as server:
            ran = night.run([server], note_task(14))
        assert [code for code in codes if code not in ran.answer] == [], ran.story
        compactions.append(len(ran.of("compaction")))
    assert compactions[0] >= 1 and compactions[1] == 0


@pytest.mark.parametrize("falls", [("refuse", 8_192), ("refuse", 4_096), ("drop_oldest", 4_096)])
def test_what_was_compacted_for_a_large_window_is_made_to_fit_the_small_one_it_falls_to(
    night: Night, falls: tuple[Any, int]
) -> None:
    """The large link is compacted once and then dies; the small one never sees more than it holds."""
    overflow, window = falls
    codes = night.notes(12, words=650)
    reader = NoteReader()
    dies = after(14, Status(503, {"retry-after": "9000"}))
    with (
        FaultServer(reader, window=16_384, schedule=dies) as large,
        FaultServer(reader, window=window, overflow=overflow) as small,
    ):
        ran = night.run([large, small], note_task(12))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    kinds = [event["type"] for event in ran.events]
    switched = kinds.index("link.switched")
    assert "compaction" in kinds[:switched], "the large view had not been compacted"
    assert ran.of("link.failed", link="s2/scripted") == [], ran.story
    assert ran.of("truncated") == [], ran.story
    turns = [event for event in ran.of("reply", link="s2/scripted") if event["purpose"] == "turn"]
    assert kinds[switched:].count("compaction") <= max(2, len(turns) // 2), ran.story


def test_a_large_output_budget_leaves_something_to_compact(night: Night) -> None:
    """Window 80,000, output 65,536: half at most is reserved, and the other half is worked with."""
    for number in range(8):
        (night.workspace / f"{number}.txt").write_text(f"part {number} of the long book\n" * 1_000)
    steps = [Call("read_file", {"path": f"{number}.txt"}) for number in range(8)]
    with FaultServer(night.working([*steps, "all are read"]), window=80_000, overflow="refuse_total") as server:
        ran = night.run([{"server": server, "max_tokens": 65_536}], "read 0.txt to 7.txt")
    assert (ran.ending.name, ran.answer) == ("done", "all are read"), ran.story
    assert ran.of("link.failed") == [], ran.story
    (selected,) = ran.of("link.selected")
    assert (selected["threshold"], selected["reserve"]) == (40_000, 40_000)
    assert [tier["ok"] for tier in ran.tiers(0)] == [True], ran.story


JOINT = "input length and `max_tokens` exceed context limit: 993726 + 64000 > 1048576, decrease input length"


def test_a_request_that_fails_again_and_again_does_not_grow(night: Night) -> None:
    """Refused twice in a row for prompt and output together: what is sent stays as it is, without the error."""
    codes = night.notes(6, words=60)
    refusal = Status(400, body={"error": {"message": JOINT, "type": "invalid_request_error"}})
    with FaultServer(NoteReader(), schedule=at(dict.fromkeys((3, 4), refusal))) as server:
        ran = night.run([{"server": server, "max_tokens": 8_000}], note_task(6))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    tried = [seen.body["messages"] for seen in server.chats[2:5]]
    assert all(messages == tried[0] for messages in tried), ran.story
    assert not any("context limit" in json.dumps(seen.body) for seen in server.chats)
    assert ran.of("compaction") == ran.of("window.learned") == [], ran.story


def test_neither_a_turn_nor_a_summary_asks_for_more_output_than_the_model_gives(night: Night) -> None:
    """An output budget of half a million on a window of one million, and a model that gives 3,000 at most."""
    codes = night.notes(12)
    words = "max_tokens: {} > 3000, which is the maximum allowed number of output tokens for this model"
    server = FaultServer(NoteReader(), window=1_000_000)

    def schedule(_: int) -> Fault | None:
        asked = server.requests[-1].body.get("max_tokens") or 0
        message = words.format(asked)
        return Status(400, body={"error": {"message": message}}) if asked > 3_000 else None

    server.schedule = schedule
    with server:
        ran = night.run([{"server": server, "max_tokens": 500_000}], compaction={"cap": 10_000})
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert len(ran.of("link.failed")) <= 1, ran.story
    assert ran.of("window.learned") == [], ran.story
    assert any(tier["ok"] for tier in ran.tiers(0)), ran.story


def test_who_takes_over_knows_the_first_words_and_everything_since(night: Night) -> None:
    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        text = text_of(messages)
        said = [word for word in ("HARBOUR-1", "GATE-2", "TIDE-3") if word in text]
        return Said("Goal: remember.") if asks_for_summary(messages, tools) else Said(" ".join(said))

    down = Status(503, {"retry-after": "9000"})
    with (
        FaultServer(brain, schedule=after(1, down)) as one,
        FaultServer(brain, window=8_192, schedule=after(1, down)) as two,
        FaultServer(brain, window=4_096) as three,
    ):
        chain = [one, two, three]
        ran = night.run(chain, "My first word is HARBOUR-1. " + "Keep it in mind. " * 200)
        for said in ("My second word is GATE-2. ", "My third word is TIDE-3. "):
            ran = night.run(chain, job=ran.job, said=said + "Which words do you know? " * 40)
    assert ran.answer == "HARBOUR-1 GATE-2 TIDE-3", ran.story
    assert [event["link"] for event in ran.of("reply", purpose="turn")] == ["s3/scripted"]
    totals = ran.events[-1]["totals"]
    assert totals["turns"] == 3, totals
