"""What providers count, and what they say that is no overflow: neither starts a compaction that nothing needs."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from agentx.testing.brain import Call, NoteReader, Said
from agentx.testing.conversations import note_task
from agentx.testing.counting import Json, count_prompt, normal
from agentx.testing.faults import FakeUsage, Fault, Status, after, at
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night


def counted(server: FaultServer) -> int:
    """The tokens of the newest request."""
    body = server.requests[-1].body
    return count_prompt(normal(body["messages"]), body.get("tools") or [])


def test_cached_tokens_that_stand_in_the_input_are_not_counted_twice(night: Night) -> None:
    """Nearly all of each prompt is read from the cache: it is compacted when it is as large as without one."""
    codes = night.notes(12, words=500)
    sizes: list[list[int]] = []
    for share in (0.0, 0.99):
        server = FaultServer(NoteReader(), window=16_384)

        def schedule(_: int, server: FaultServer = server, share: float = share) -> Fault | None:
            tokens = counted(server)
            return FakeUsage(tokens, cached=int(tokens * share))

        server.schedule = schedule
        with server:
            ran = night.run([server], note_task(12))
        assert [code for code in codes if code not in ran.answer] == [], ran.story
        sizes.append([event["before"] for event in ran.of("compaction")])
    assert sizes[0] and sizes[0] == sizes[1]


@pytest.mark.parametrize("dense", [1.6, 2.6])
def test_a_tokenizer_that_makes_far_more_of_a_text_than_estimated_is_learned_at_once(
    night: Night, dense: float
) -> None:
    codes = night.notes(14)
    server = FaultServer(NoteReader(), window=int(32_768 / dense), claims=32_768)

    def schedule(_: int) -> Fault | None:
        return FakeUsage(int(counted(server) * dense))

    server.schedule = schedule
    with server:
        ran = night.run([server], note_task(14))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert (ran.of("link.failed"), ran.of("truncated")) == ([], []), ran.story


def png(side: int) -> bytes:
    """A picture of noise, which does not compress: three bytes a pixel."""
    rows = b"".join(b"\0" + random.Random(row).randbytes(3 * side) for row in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    made = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def test_a_picture_of_three_megabytes_is_a_picture_and_not_a_million_tokens(night: Night) -> None:
    (night.workspace / "gate.png").write_bytes(png(1_000))
    with FaultServer(night.working([Call("read_file", {"path": "gate.png"}), "a gate"]), window=32_768) as server:
        ran = night.run([server], "what is on gate.png?")
    assert (ran.ending.name, ran.answer) == ("done", "a gate"), ran.story
    assert ran.of("compaction") == [], ran.story
    shown = server.chats[-1].kept or ()
    assert sum(message.get("images", 0) for message in shown) == 1
    assert len(base64.b64encode(png(1_000))) > 3_000_000


@pytest.mark.parametrize("status", [429, 503, 529, 500, 502, 504, 403, 401, 404])
def test_a_refusal_without_a_body_never_compacts_a_small_conversation(night: Night, status: int) -> None:
    codes = night.notes(3, words=60)
    fault = Status(status, body="")
    with (
        FaultServer(NoteReader(), schedule=at({2: fault, 3: fault})) as server,
        FaultServer(NoteReader()) as other,
    ):
        ran = night.run([server, other], note_task(3))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("compaction") == ran.of("window.learned") == [], ran.story
    assert "overflow" not in {event["class"] for event in ran.of("link.failed")}, ran.story


OTHERS = {
    "a rate of tokens": (
        429,
        "Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Requested 31000.",
    ),
    "tokens of a day": (400, "Too many tokens per day: 100000 of 100000 used, please wait before trying again."),
    "a large picture": (
        400,
        "messages.0.content.1.image: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    ),
    "a parameter": (400, "Unsupported parameter: 'top_k' is not supported with this model."),
    "foreign thoughts": (400, "The encrypted content could not be verified: invalid encrypted content."),
    "an unknown model": (404, "The model `scripted` does not exist or you do not have access to it."),
    "a cache": (400, "The cached content is of 900 tokens. The minimum token count to start caching is 4096."),
    "a missing result": (400, "messages.2: `tool_use` ids were found without `tool_result` blocks: toolu_1."),
    "roles": (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    "an empty text": (400, "messages: text content blocks must be non-empty"),
    "bedrock": (400, "The toolConfig field must be defined when using toolUse and toolResult content blocks."),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_refusal_for_another_reason_never_compacts(night: Night, name: str) -> None:
    """Lengths, limits and tokens stand in its words, too; the next link has the whole conversation."""
    status, words = OTHERS[name]
    codes = night.notes(3, words=60)
    refusal = Status(status, body={"error": {"message": words, "type": "invalid_request_error"}})
    with FaultServer(NoteReader(), schedule=after(1, refusal)) as server, FaultServer(NoteReader()) as other:
        ran = night.run([server, other], note_task(3))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("compaction") == ran.of("window.learned") == [], ran.story
    assert not {"overflow", "output_cap"} & {event["class"] for event in ran.of("link.failed")}, ran.story
    assert len(other.chats) >= 3 and len(other.chats[0].kept or ()) == 4


def test_a_reply_that_only_thought_up_to_its_limit_is_no_overflow(night: Night) -> None:
    """15,203 tokens of thoughts and no word, at a ninth of the window."""
    codes = night.notes(4, words=60)
    reader, asked = NoteReader(), [0]

    def brain(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        asked[0] += 1
        return Said("", reasoning="think " * 16_000) if asked[0] == 3 else reader(messages, tools)

    with FaultServer(brain, window=131_072) as server:
        ran = night.run([{"server": server, "max_tokens": 15_203}], note_task(4))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("compaction") == ran.of("window.learned") == ran.of("truncated") == [], ran.story


def test_what_is_too_large_before_the_first_request_is_made_to_fit_before_it_is_sent(night: Night) -> None:
    """A person says more than fits to a job that had ended: the next request is within the window at once."""
    codes = night.notes(4, words=400)
    with FaultServer(NoteReader(), window=8_192) as server:
        ran = night.run([server], note_task(4))
        ran = night.run([server], job=ran.job, said="Once more, please. " + "And mind the tide. " * 2_500)
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert ran.of("link.failed") == [], ran.story


SILENT = {
    "window exceeded": ("model_context_window_exceeded", 7_900, 0),
    "no room for a word": ("length", 8_180, 0),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_200_that_says_that_the_window_is_full_costs_no_note(night: Night, name: str) -> None:
    """As z.ai and MiMo answer: no error, no text, and a reason."""
    finish, prompt, output = SILENT[name]
    body = {
        "id": "x",
        "object": "chat.completion",
        "model": "scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output},
    }
    codes = night.notes(8, words=200)
    with FaultServer(NoteReader(), window=8_192, schedule=at({6: Status(200, body=body)})) as server:
        ran = night.run([server], note_task(8))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
    assert len(ran.of("compaction")) <= 3, ran.story
