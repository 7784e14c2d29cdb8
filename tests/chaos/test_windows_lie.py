from __future__ import annotations
import itertools
from typing import TYPE_CHECKING, Any
import pytest
from agentx.testing.brain import NoteReader
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran

FACES = [
    ("openai", "openai-compatible"),
    ("ollama", "openai-compatible"),
    ("ollama", "ollama"),
    ("lmstudio", "lmstudio"),
    ("llamacpp", "llamacpp"),
    ("vllm", "vllm"),
    ("lmstudio", "openai-compatible"),
    ("llamacpp", "openai-compatible"),
    ("vllm", "openai-compatible"),
]
MODES = ["refuse", "refuse_total", "drop_oldest", "halve", "cut"]
CLAIMS = ["true", "absent", 131072, 2048]
SIZES = [2304, 4096, 8192]

ALL = list(itertools.product(FACES, MODES, CLAIMS, SIZES))


@pytest.mark.parametrize(("face", "mode", "claim", "size"), ALL)
def test_mix(night: Night, face: Any, mode: Any, claim: Any, size: int) -> None:
    codes = night.notes(12, words=240 if size > 4000 else 120)
    f, card = face
    with FaultServer(
        NoteReader(), face=f, overflow=mode, claims=claim, window=size, honours_num_ctx=False, loaded=True
    ) as s:
        ran = night.run([{"server": s, "card": card}])
    missing = [c for c in codes if c not in ran.answer]
    ok = ran.ending.name == "done" and not missing
    print(
        "OK" if ok else "BAD",
        f,
        card,
        mode,
        claim,
        size,
        len(s.chats),
        round(ran.seconds, 2),
        ran.ending.name,
        len(missing),
        ran.ending.message[:120],
        ran.ending.hint,
    )
    if not ok:
        print(ran.story)
    assert ok
