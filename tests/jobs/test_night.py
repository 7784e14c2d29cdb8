"""The main job through the outermost door: real processes, real sockets, a chain that fails, windows that lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import Call, KeyKeeper, NoteReader, Script
from agentx.testing.conversations import PERSONAL_KEY, SYSTEM_KEY, TASK, conversation27, twelve_notes
from agentx.testing.faults import Slow, Status, always, first, rate_limited
from agentx.testing.server import FaultServer


def provider(server: FaultServer, card: str = "openai-compatible") -> dict[str, Any]:
    base = server.url if card == "ollama" else f"{server.url}/v1"
    return {"card": card, "base_url": base}


def links(*models: str) -> dict[str, Any]:
    return {"default_chain": "night", "chains": {"night": [{"model": model} for model in models]}}


def test_a_link_that_always_answers_429_costs_at_most_three_requests(home: Any) -> None:
    twelve_notes(home.workspace)
    task = TASK.format(last=12)
    with (
        FaultServer(models=["busy"], brain=NoteReader(), schedule=always(rate_limited(1))) as busy,
        FaultServer(models=["calm"], brain=NoteReader(), window=32_000) as calm,
    ):
        home.configure(
            {**links("one/busy", "two/calm"), "providers": {"one": provider(busy), "two": provider(calm)}}
        )
        done = home.run("run", "--json", task)
    ended = done.events[-1]
    assert (done.code, ended["type"], ended["ending"], ended["exit"]) == (0, "job.ended", "done", 0)
    assert 1 <= len(busy.chats) <= 3
    assert {(e["link"], e["window"], e["threshold"]) for e in done.of("link.selected")} >= {
        ("two/calm", 32_000, 16_000)
    }
    for event in done.of("link.selected"):
        assert event["link"] == "one/busy" or (event["window"], event["threshold"]) == (32_000, 16_000)
    assert [e["seq"] for e in done.events] == list(range(1, len(done.events) + 1))


@pytest.mark.parametrize("card", ["openai-compatible", "ollama"])
def test_twelve_notes_survive_a_server_that_keeps_4096_and_drops_the_oldest(home: Any, card: str) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(
        NoteReader(),
        face="ollama",
        models=["small"],
        window=4_096,
        claims=131_072,
        overflow="drop_oldest",
        honours_num_ctx=False,
    ) as server:
        chain = links("liar/small")
        if card == "ollama":  # an old server: it has its own window and ignores what is asked for
            chain["chains"]["night"][0]["window"] = 131_072
        home.configure({**chain, "providers": {"liar": provider(server, card)}})
        done = home.run("run", "--json", TASK.format(last=12))
    answer = done.events[-1]["answer"]
    assert [code for code in codes if code not in answer] == []
    assert (done.code, done.events[-1]["ending"]) == (0, "done")
    assert done.of("truncated")
    assert done.of("window.learned")[-1]["value"] <= 4_096
    assert done.of("compaction")


def test_the_conversation_of_27_messages_keeps_both_keys(home: Any) -> None:
    """Said in thirteen turns to a server that keeps 4,096, claims more, and drops the oldest in silence."""
    messages = conversation27()
    said = [message["content"] for message in messages if message["role"] == "user"]
    (home.workspace / "AGENTS.md").write_text(messages[0]["content"])
    with FaultServer(
        face="ollama", models=["small"], brain=KeyKeeper(), window=4_096, claims=131_072, overflow="drop_oldest"
    ) as server:
        home.configure({**links("liar/small"), "providers": {"liar": provider(server)}})
        done = home.run("run", "--json", "--name", "keys", said[0])
        assert done.code == 0
        for text in said[1:]:
            done = home.run("resume", "--json", "keys", text)
            assert done.code == 0, done.err
    answer = done.events[-1]["answer"]
    assert SYSTEM_KEY in answer
    assert PERSONAL_KEY in answer


def test_a_refused_overflow_is_learned_and_the_same_link_goes_on(home: Any) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(
        face="llamacpp", models=["m"], brain=NoteReader(), window=4_096, claims=16_384, overflow="refuse"
    ) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server, "llamacpp")}})
        done = home.run("run", "--json", TASK.format(last=12))
    assert done.code == 0, done.err
    assert all(code in done.events[-1]["answer"] for code in codes)
    assert {event["value"] for event in done.of("window.learned")} == {4_096}


def test_a_return_to_the_large_window_shows_everything_again(home: Any) -> None:
    """The large link fails for a while, the small one takes over and compacts, the large one comes back whole."""
    codes = twelve_notes(home.workspace)

    def fails_in_the_middle(number: int) -> Status | None:
        return Status(503, {"retry-after": "1"}) if number in (8, 9) else None  # one of them may be a probe

    with (
        FaultServer(models=["big"], brain=NoteReader(), window=128_000, schedule=fails_in_the_middle) as big,
        FaultServer(
            models=["small"], brain=NoteReader(), window=4_096, claims=4_096, schedule=first(1, Slow(1.5))
        ) as small,
    ):
        home.configure(
            {**links("one/big", "two/small"), "providers": {"one": provider(big), "two": provider(small)}}
        )
        done = home.run("run", "--json", TASK.format(last=12))
    assert done.code == 0, done.err
    assert all(code in done.events[-1]["answer"] for code in codes)
    switches = [(event["from"], event["to"]) for event in done.of("link.switched")]
    assert switches[:1] == [("one/big", "two/small")]
    last = big.chats[-1].body["messages"]
    assert sum("Note" in str(message.get("content")) for message in last) >= 12


def test_a_tool_result_that_is_too_large_is_clipped_and_can_be_had_whole(home: Any) -> None:
    (home.workspace / "long.txt").write_text("\n".join(f"line {n} of the long file" for n in range(9_000)))
    script = Script([Call("read_file", {"path": "long.txt", "limit": 9_000}), "read"])
    with FaultServer(models=["m"], brain=script, window=16_000, claims=16_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "read it")
    assert done.code == 0, done.err
    (ended,) = done.of("tool.ended")
    assert ended["clipped"]
    seen = script.seen[1][-1]["content"]
    assert len(seen) < 16_000
    assert "restore_tool_result" in seen


def test_the_story_and_the_answer_go_to_their_own_streams(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["all is well"]), window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "say that all is well")
    assert (done.code, done.out) == (0, "all is well\n")
    assert re.search(r"link: box/m · window 32,000 \(\w+\) · compacts at 16,000", done.err)
    assert "ctx " in done.err


def test_the_users_check_decides_when_a_job_is_done(home: Any) -> None:
    script = Script(["done!", Call("write_file", {"path": "made.txt", "content": "x"}), "now it is done"])
    with FaultServer(models=["m"], brain=script, window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "--until", "test -f made.txt", "make made.txt")
    assert (done.code, done.events[-1]["answer"]) == (0, "now it is done")
    assert done.of("nudge")


def test_a_check_that_says_something_new_each_time_is_not_given_up(home: Any) -> None:
    """Six files are wanted, one after the other: more than a model is told the same thing."""
    check = "for n in 1 2 3 4 5 6; do test -f $n || { echo $n is missing; exit 1; }; done"
    steps: list[Call | str] = ["done"]
    for number in range(1, 7):
        steps += [Call("write_file", {"path": str(number), "content": "x"}), "done"]
    with FaultServer(Script(steps), models=["m"], window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "--until", check, "make the files")
    assert (done.code, done.events[-1]["ending"]) == (0, "done"), done.err
    assert len(done.of("nudge")) == 6


def test_open_items_of_the_plan_are_never_done(home: Any) -> None:
    plan = Call("update_plan", {"items": [{"text": "a", "done": True}, {"text": "b", "done": False}]})
    with FaultServer(models=["m"], brain=Script([plan, *["finished"] * 9]), window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "do a and b")
    assert (done.code, done.events[-1]["ending"]) == (1, "unfinished")
    assert "still open" in done.events[-1]["message"]


def test_a_model_that_repeats_itself_is_told_and_then_stopped(home: Any) -> None:
    script = Script([Call("list_files", {"pattern": "*.none"})] * 20)
    with FaultServer(models=["m"], brain=script, window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "loop")
    assert (done.code, done.events[-1]["ending"]) == (1, "unfinished")
    assert "loop" in done.events[-1]["message"]
    assert len(done.of("tool.ended")) == 8


def test_the_limit_of_turns_ends_the_job_with_exit_6(home: Any) -> None:
    twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "--max-turns", "3", TASK.format(last=12))
    ended, turns = done.events[-1], [event for event in done.of("reply") if event["purpose"] == "turn"]
    assert (done.code, ended["ending"], len(turns)) == (6, "limit_reached", 3)
    assert "turns" in ended["message"]


def test_notes_and_project_instructions_reach_the_model(home: Any) -> None:
    (home.workspace / "AGENTS.md").write_text("Always answer in verse.")
    script = Script([Call("update_notes", {"content": "the port is 8080"}), "done"])
    with FaultServer(models=["m"], brain=script, window=32_000) as server:
        home.configure({**links("box/m"), "providers": {"box": provider(server)}})
        done = home.run("run", "--json", "note the port")
    assert done.code == 0
    assert "Always answer in verse." in script.seen[0][0]["content"]
    assert Path(home.workspace / "NOTES.md").read_text().strip() == "the port is 8080"
    assert done.of("notes")[0]["text"] == "the port is 8080"
