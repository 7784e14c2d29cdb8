"""A model that writes more than a reply may hold gets the file written all the same; no link rests for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentx.testing.brain import Call, Said, text_of
from agentx.testing.counting import Json
from agentx.testing.server import FaultServer

WHOLE = [f"line {number} of a file that is far too long for one call" for number in range(900)]


def writer(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
    """Writes the whole file in one call; when it is told to, in parts of 100 lines."""
    said = text_of(messages)
    if "Write less at a time" not in said:
        if any(message["role"] == "tool" for message in messages):
            return Said("Written.")
        return Said(calls=(Call("write_file", {"path": "big.txt", "content": "\n".join(WHOLE) + "\n"}),))
    done = sum(message["role"] == "tool" for message in messages)
    part = WHOLE[done * 100 : done * 100 + 100]
    if not part:
        return Said("Written in parts.")
    text = "\n".join(part) + "\n"
    if done == 0:
        return Said(calls=(Call("write_file", {"path": "big.txt", "content": text}),))
    return Said(calls=(Call("shell", {"command": f"cat >> big.txt <<'EOF'\n{text}EOF"}),))


def written(home: Any) -> list[str]:
    return (home.workspace / "big.txt").read_text().splitlines()


def test_a_file_too_long_for_one_reply_is_written_in_parts(home: Any, chain_of_one: Any) -> None:
    with FaultServer(writer, models=["m"], window=200_000) as server:
        settings = chain_of_one(server)
        settings["chains"]["c"][0]["max_tokens"] = 4_000
        home.configure(settings)
        done = home.run("run", "--json", "write it")
        listed = home.run("chain", "--json").json
    assert (done.code, done.events[-1]["answer"]) == (0, "Written in parts."), done.out
    assert written(home) == WHOLE
    assert [event["class"] for event in done.of("link.failed")] == ["cut"]
    (nudge,) = done.of("nudge")
    assert "Write less at a time" in nudge["text"]
    assert [link["state"] for link in listed["links"]] == ["ready"]


def test_a_file_that_fits_into_a_larger_reply_is_written_at_once(home: Any, chain_of_one: Any) -> None:
    with FaultServer(writer, models=["m"], window=200_000) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "write it")
        budgets = [chat.body["max_tokens"] for chat in server.chats]
    assert (done.code, done.events[-1]["answer"]) == (0, "Written."), done.out
    assert written(home) == WHOLE
    assert done.of("nudge") == []
    assert budgets[:2] == [8_192, 4 * 8_192]


def test_a_model_that_only_thinks_ends_truthfully(home: Any, chain_of_one: Any) -> None:
    def thinker(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        return Said("", reasoning="hm, " * 60_000)

    with FaultServer(thinker, models=["m"], window=40_000) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "think")
        listed = home.run("chain", "--json").json
    assert (done.code, done.events[-1]["ending"]) == (5, "chain_exhausted")
    assert "every reply was cut before it was whole: box/m: cut: " in done.events[-1]["message"]
    assert len(done.of("nudge")) == 3
    assert [link["state"] for link in listed["links"]] == ["ready"]
