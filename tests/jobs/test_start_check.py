"""The check at second 0 through the outermost door: links that can never serve are named before any request."""

from __future__ import annotations

from typing import Any

from agentx.testing.brain import NoteReader
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.server import FaultServer


def chain(servers: dict[str, FaultServer], links: dict[str, Any]) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": f"{name}/m", **links.get(name, {})} for name in servers]},
        "providers": {
            name: {"card": "openai-compatible", "base_url": f"{server.url}/v1"} for name, server in servers.items()
        },
    }


def server(window: int, **more: Any) -> FaultServer:
    return FaultServer(NoteReader(), models=["m"], window=window, **more)


def test_a_link_that_can_never_serve_is_named_before_the_first_request_and_not_asked(home: Any) -> None:
    twelve_notes(home.workspace)
    with server(2_000) as small, server(32_000) as big:
        home.configure(chain({"small": small, "big": big}, {}))
        done = home.run("run", "--json", TASK.format(last=12))
        story = home.run("run", TASK.format(last=12)).err
        states = [row["state"] for row in home.run("chain", "--json").json["links"]]
    assert (done.code, len(small.chats)) == (0, 0)
    types = [event["type"] for event in done.events]
    (warning,) = done.of("warning")
    assert types.index("warning") < types.index("request")
    assert warning["message"].startswith(
        "small/m can not serve this job and is left out: a window of 2,000 tokens"
    )
    assert warning["hint"]
    assert done.of("link.switched") == []
    assert {event["link"] for event in done.of("link.selected")} == {"big/m"}
    assert "small/m can not serve this job" in story
    assert states == ["too small", "ready"]


def test_a_chain_of_links_that_can_never_serve_ends_at_once(home: Any) -> None:
    with server(2_000) as one, server(2_100) as two:
        home.configure(chain({"one": one, "two": two}, {}))
        done = home.run("run", "--json", "read the notes")
    ended = done.events[-1]
    assert (done.code, ended["ending"], len(one.chats) + len(two.chats)) == (7, "context_overflow", 0)
    assert "one/m: a window of 2,000 tokens" in ended["message"]
    assert "two/m: a window of 2,100 tokens" in ended["message"]
    assert ended["hint"]


def test_a_link_that_turns_out_too_small_is_told_once_and_not_at_each_turn(home: Any) -> None:
    """It claims more than it holds: its refusal teaches that, and from then on no request can be made for it."""
    twelve_notes(home.workspace)
    with server(2_100, face="llamacpp", claims=16_384, overflow="refuse") as small, server(32_000) as big:
        config = chain({"small": small, "big": big}, {})
        config["providers"]["small"]["card"] = "llamacpp"
        home.configure(config)
        done = home.run("run", "--json", TASK.format(last=12))
    assert done.code == 0, done.err
    assert len(done.of("reply")) >= 6
    ours = [e for e in done.of("link.failed") if e["message"].startswith("not asked: ")]
    assert [(e["link"], e["class"], e["status"], e["limit"]) for e in ours] == [
        ("small/m", "overflow", None, 2_100)
    ]
    assert ours[0]["actual"] > ours[0]["limit"]
    assert len(done.of("link.switched")) == 1
