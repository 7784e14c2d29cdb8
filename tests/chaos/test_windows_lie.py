"""Servers that say one window and keep another, in every way that they do it: no note is ever lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentx.testing.brain import NoteReader
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night

MIXES: list[tuple[Any, str, Any, Any, int]] = [
    # face, card, what it does with too much, what it claims, what it keeps
    ("openai", "openai-compatible", "refuse", 131_072, 4_096),
    ("openai", "openai-compatible", "refuse_total", "absent", 4_096),
    ("openai", "openai-compatible", "drop_oldest", "absent", 8_192),
    ("ollama", "openai-compatible", "drop_oldest", 131_072, 4_096),
    ("ollama", "openai-compatible", "halve", "true", 8_192),
    ("ollama", "ollama", "drop_oldest", 131_072, 4_096),
    ("ollama", "ollama", "drop_oldest", "true", 8_192),
    ("lmstudio", "lmstudio", "refuse", 131_072, 4_096),
    ("lmstudio", "lmstudio", "drop_oldest", "absent", 4_096),
    ("llamacpp", "llamacpp", "refuse", "true", 4_096),
    ("llamacpp", "openai-compatible", "refuse", 131_072, 8_192),
    ("vllm", "vllm", "refuse", 131_072, 4_096),
    ("vllm", "openai-compatible", "refuse", "true", 4_096),
    ("vllm", "vllm", "refuse_total", "absent", 2_304),
    ("openai", "openai-compatible", "cut", 131_072, 4_096),
    ("lmstudio", "openai-compatible", "cut", 131_072, 2_304),
    ("ollama", "ollama", "halve", "absent", 2_304),
    ("openai", "openai-compatible", "halve", 131_072, 2_304),
    ("llamacpp", "llamacpp", "drop_oldest", 131_072, 2_304),
    ("openai", "openai-compatible", "refuse", 3_000, 8_192),
    ("koboldcpp", "koboldcpp", "cut", 131_072, 4_096),
    ("koboldcpp", "openai-compatible", "drop_oldest", "true", 4_096),
    ("sglang", "sglang", "refuse", 131_072, 4_096),
    ("sglang", "llamacpp", "refuse_total", "true", 4_096),
    ("tgi", "tgi", "refuse", "true", 4_096),
    ("tgi", "openai-compatible", "refuse_total", 131_072, 4_096),
]


@pytest.mark.parametrize(("face", "card", "overflow", "claims", "window"), MIXES)
def test_no_note_is_lost(night: Night, face: Any, card: str, overflow: Any, claims: Any, window: int) -> None:
    codes = night.notes(12, words=240 if window > 4_000 else 120)
    with FaultServer(
        NoteReader(),
        face=face,
        overflow=overflow,
        claims=claims,
        window=window,
        honours_num_ctx=False,
        loaded=True,
    ) as server:
        ran = night.run([{"server": server, "card": card}])
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == [], ran.story
