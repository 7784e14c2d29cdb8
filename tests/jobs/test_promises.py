"""What a job promises for bad surroundings: limits while it waits, keys that stay hidden, journals that broke."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import Call, Said, Script
from agentx.testing.faults import Slow, Status, always, rate_limited
from agentx.testing.server import FaultServer

KEY = "sk-planted-9f8e7d6c5b4a"


def only_folder(home: Any) -> Path:
    (folder,) = (home.folder / "home" / "state" / "jobs").iterdir()
    return folder


# Limits -----------------------------------------------------------------------------------------------------


def test_hours_are_over_also_while_every_link_rests(home: Any, chain_of_one: Any) -> None:
    with FaultServer(Script([]), models=["m"], schedule=always(rate_limited(600))) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "--max-hours", "0.0005", "x", seconds=30)
    assert (done.code, done.events[-1]["ending"]) == (6, "limit_reached")
    assert "hours" in done.events[-1]["message"]


def test_a_limit_of_tokens_ends_a_model_that_never_stops(home: Any, chain_of_one: Any) -> None:
    def restless(messages: Any, tools: Any) -> Said:
        return Said(calls=(Call("shell", {"command": f"echo {len(messages)}"}),))

    with FaultServer(restless, models=["m"]) as server:
        home.configure(chain_of_one(server, limits={"tokens": 5_000}))
        done = home.run("run", "--json", "x")
    assert (done.code, done.events[-1]["ending"]) == (6, "limit_reached")
    assert "tokens" in done.events[-1]["message"]


def test_a_limit_of_cost_ends_the_job_on_a_model_with_a_price(home: Any) -> None:
    home.extra["OPENAI_API_KEY"] = KEY

    def restless(messages: Any, tools: Any) -> Said:
        return Said(calls=(Call("shell", {"command": f"echo {len(messages)}"}),))

    with FaultServer(restless, models=["gpt-4o"]) as server:
        home.configure({"providers": {"openai": {"base_url": f"{server.url}/v1", "self_hosted": False}}})
        done = home.run("run", "--json", "--chain", "openai/gpt-4o", "--max-cost", "0.01", "x")
    assert (done.code, done.events[-1]["ending"]) == (6, "limit_reached")
    assert "dollars" in done.events[-1]["message"]
    assert done.events[-1]["totals"]["cost"] >= 0.01


def test_a_limit_of_cost_that_cannot_hold_is_said(home: Any) -> None:
    home.extra["OPENAI_API_KEY"] = KEY
    with FaultServer(Script(["x"]), models=["nobody-knows-1"]) as server:
        home.configure({"providers": {"openai": {"base_url": f"{server.url}/v1", "self_hosted": False}}})
        done = home.run("run", "--json", "--chain", "openai/nobody-knows-1", "--max-cost", "1", "x")
    assert done.code == 0
    assert any("price is not known" in event["message"] for event in done.of("warning"))


# What every request begins with -------------------------------------------------------------------------------


def test_a_job_that_goes_on_another_day_begins_its_requests_as_before(home: Any, chain_of_one: Any) -> None:
    """Else everything that a provider has cached would be paid for again after midnight."""
    with FaultServer(Script(["one", "two", "three"]), models=["m"]) as server:
        home.configure(chain_of_one(server, limits={"hours": 1_000_000}))
        assert home.run("run", "--name", "n", "x").code == 0
        with closing(sqlite3.connect(only_folder(home) / "journal.db")) as db, db:
            db.execute("update entries set time = 1767312000 where seq = 1")  # 2026-01-02, just after midnight
        assert home.run("resume", "n", "again").code == 0
        assert home.run("resume", "n", "again").code == 0
    second, third = (seen.body["messages"][0] for seen in server.chats[1:])
    assert "2026-01-02" in second["content"]
    assert second == third


# Keys -------------------------------------------------------------------------------------------------------


def shown_anywhere(home: Any) -> list[str]:
    """Where the key can be found: files of agentx, and what its commands print."""
    state = home.folder / "home" / "state"
    found = [str(file) for file in state.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    for command in ("logs", "events", "show", "context"):
        done = home.run(command, "n")
        found += [command for text in (done.out, done.err) if KEY in text]
    return found


@pytest.mark.parametrize(
    "replies",
    [
        [f"the key is {KEY}"],
        [Said(reasoning=f"{KEY} is the key", text="done")],
        [Call("shell", {"command": f"echo {KEY}"}), "done"],
        [Call("update_plan", {"items": [{"text": KEY, "done": True}]}), "done"],
        [Call(KEY, {KEY: KEY}), "done"],
        [Call("shell", {"command": "cat /proc/$PPID/environ; env"}), "done"],
    ],
    ids=["answer", "reasoning", "arguments", "plan", "name", "output"],
)
def test_a_key_in_what_the_model_says_or_reads_is_hidden(home: Any, chain_of_one: Any, replies: Any) -> None:
    home.extra |= {"BOX_KEY": KEY, "OPENAI_API_KEY": f"{KEY}-other-1"}
    with FaultServer(Script([*replies, *replies]), models=["m"]) as server:
        home.configure(chain_of_one(server, key="BOX_KEY"))
        told = home.run("run", "--json", "--name", "n", "x")
        again = home.run("resume", "n", "again")
    assert (told.code, again.code) == (0, 0), again.err
    assert [text for text in (told.out, told.err, again.out, again.err) if KEY in text] == []
    assert shown_anywhere(home) == []


@pytest.mark.parametrize("header", [("Authorization", "Bearer {}"), ("x-api-key", "{}"), ("Cookie", "session={}")])
def test_a_key_in_a_header_of_the_config_is_hidden_too(home: Any, chain_of_one: Any, header: Any) -> None:
    name, form = header
    replies = [Call("shell", {"command": f"echo {form.format(KEY)}"}), f"the header is {form.format(KEY)}"]
    with FaultServer(Script(replies), models=["m"]) as server:
        settings = chain_of_one(server)
        (box,) = settings["providers"].values()
        box["headers"] = {name: form.format(KEY), "x-title": "agentx"}
        home.configure(settings)
        done = home.run("run", "--json", "--name", "n", "x")
    assert done.code == 0, done.err
    assert KEY not in done.out + done.err
    assert shown_anywhere(home) == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_key_in_an_error_of_the_server_is_hidden(home: Any, chain_of_one: Any, status: int) -> None:
    home.extra["BOX_KEY"] = KEY
    refusal = Status(status, {"retry-after": "1"}, {"error": {"message": f"Incorrect API key: {KEY}."}})
    with FaultServer(Script([]), models=["m"], schedule=always(refusal)) as server:
        home.configure(chain_of_one(server, key="BOX_KEY", on_exhausted="fail"))
        done = home.run("run", "--json", "--name", "n", "x")
    assert done.code in (4, 5)
    assert KEY not in done.out + done.err
    assert shown_anywhere(home) == []


def test_a_placeholder_for_a_key_hides_nothing(home: Any, chain_of_one: Any) -> None:
    """Local servers are given `ollama` or `sk-no-key-required`: hiding that would hide words of the story."""
    home.extra["BOX_KEY"] = "ollama"
    with FaultServer(Script(["ollama serves"]), models=["m"]) as server:
        home.configure(chain_of_one(server, key="BOX_KEY"))
        done = home.run("run", "x")
    assert (done.code, done.out) == (0, "ollama serves\n")


# What models say --------------------------------------------------------------------------------------------


def test_fifty_calls_in_one_reply_all_run_in_order(home: Any, chain_of_one: Any) -> None:
    calls = tuple(Call("shell", {"command": f"echo {n} >> log.txt"}) for n in range(50))
    with FaultServer(Script([Said("now all at once", calls), "done"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "x")
    assert done.code == 0
    assert (home.workspace / "log.txt").read_text().split() == [str(n) for n in range(50)]
    assert len({event["id"] for event in done.of("tool.started")}) == len(done.of("tool.ended")) == 50


@pytest.mark.parametrize(
    "reply",
    [
        Call("shell", '{"command": "echo \\ud800 \\u0000"}'),
        Call("update_plan", '{"items": [{"text": "\\ud800\\u0000\\u001b[31m", "done": true}]}'),
        Call("update_notes", '{"content": "\\udfff\\u0000"}'),
        Call("read_file", '{"path": "a", "offset": NaN, "limit": 1e999}'),
        Call("read_file", '{"path": ' + "[" * 900 + "]" * 900 + "}"),
        Call("frobnicate", {"a": 1}),
        Call("shell", ""),
        Call("shell", {}),
        Said("half \ud800 a character, a \x00, \x1b[31mred\x1b[0m and 😀"),
    ],
    ids=["half", "plan", "notes", "nan", "deep", "unknown", "empty", "none", "text"],
)
def test_strange_replies_never_end_a_job(home: Any, chain_of_one: Any, reply: Any) -> None:
    with FaultServer(Script([reply, "done", "done"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "--name", "n", "x")
    assert (done.code, done.events[-1]["ending"]) == (0, "done")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    for line in home.run("events", "n").out.splitlines():
        json.loads(line, parse_constant=refuse)
    told = home.run("logs", "n")
    assert told.code == 0
    assert "\x1b" not in told.out


# The workspace ----------------------------------------------------------------------------------------------


def write_latin(file: Path) -> None:
    file.write_bytes(b"Answer in v\xe9rse.")


def make_folder(file: Path) -> None:
    file.mkdir()


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


def link_outside(file: Path) -> None:
    file.symlink_to("/etc/hostname")


def write_long(file: Path) -> None:
    file.write_text("Answer in verse.\n" + "More.\n" * 100_000)


@pytest.mark.parametrize(
    ("make", "shown", "trouble"),
    [
        (write_latin, "Answer in v", "is not UTF-8"),
        (write_long, "Answer in verse.", "is longer than"),
        (make_folder, "", "is no file"),
        (make_pipe, "", "is no file"),
        (link_outside, "", "is no file"),
    ],
    ids=["latin", "long", "folder", "pipe", "outside"],
)
def test_what_the_model_does_not_get_of_agents_md_is_said(
    home: Any, chain_of_one: Any, make: Callable[[Path], object], shown: str, trouble: str
) -> None:
    make(home.workspace / "AGENTS.md")
    script = Script(["done"])
    with FaultServer(script, models=["m"]) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "x", seconds=30)
    assert done.code == 0
    assert shown in script.seen[0][0]["content"]
    assert ("AGENTS.md" in script.seen[0][0]["content"]) == bool(shown)
    assert any(f"AGENTS.md {trouble}" in event["message"] for event in done.of("warning"))


def test_a_workspace_that_is_deleted_in_the_middle_does_not_break_the_job(home: Any, chain_of_one: Any) -> None:
    script = Script([
        Call("shell", {"command": 'rm -rf "$PWD"'}),
        Call("shell", {"command": "ls"}),
        Call("list_files", {"pattern": "*"}),
        Call("search", {"pattern": "x"}),
        "it is gone",
    ])  # fmt: skip
    with FaultServer(script, models=["m"]) as server:
        home.configure(chain_of_one(server))
        done = home.run("run", "--json", "--name", "n", "x")
    assert (done.code, done.events[-1]["answer"]) == (0, "it is gone")
    home.workspace.mkdir()
    assert home.run("show", "n", "--json").json["state"] == "ended"


# The job's folder -------------------------------------------------------------------------------------------


def test_a_job_whose_folder_is_removed_ends_with_an_error(home: Any, until: Any, chain_of_one: Any) -> None:
    """Nobody could ever read what it did: it does not go on in secret."""
    with FaultServer(Script(["a", "b"]), models=["m"], schedule=always(Slow(0.5))) as server:
        home.configure(chain_of_one(server))
        with home.started("run", "--json", "x") as process:
            until(lambda: server.chats)
            shutil.rmtree(only_folder(home))
            out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the journal is gone" in json.loads(out.splitlines()[-1])["error"]["message"]


def test_an_output_folder_that_cannot_be_written_ends_the_job_and_can_be_mended(
    home: Any, until: Any, chain_of_one: Any
) -> None:
    (home.workspace / "long.txt").write_text("\n".join(f"line {n} of a long file" for n in range(1_900)))
    script = Script([Call("read_file", {"path": "long.txt"}), "read"])
    with FaultServer(script, models=["m"], window=16_000, schedule=always(Slow(0.5))) as server:
        home.configure(chain_of_one(server))
        with home.started("run", "--json", "--name", "n", "x") as process:
            until(lambda: server.chats)
            output = only_folder(home) / "output"
            output.rmdir()
            output.write_text("in the way")
            out, _ = process.communicate(timeout=30)
        ended = json.loads(out.splitlines()[-1])
        assert (process.returncode, ended["ending"]) == (1, "unfinished")
        assert "cannot keep a tool result" in ended["message"]
        output.unlink()
        done = home.run("resume", "--json", "n")
    assert (done.code, done.events[-1]["answer"]) == (0, "read")


def broken_by(statement: str) -> Callable[[Path], None]:
    def break_(file: Path) -> None:
        with sqlite3.connect(file) as database:
            database.execute(statement)
        database.close()

    return break_


BREAKS: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "another": lambda file: file.write_bytes(b"no database" * 1_000),
    "half": lambda file: file.write_bytes(file.read_bytes()[:5_000]),
    "first entry": broken_by("update entries set data = '{' where seq = 1"),
    "no fields": broken_by("update entries set data = '{}' where seq = 1"),
    "a list": broken_by("update entries set data = '[]' where seq = 1"),
    "last entry": broken_by("update entries set data = '{\"half' where seq = (select max(seq) from entries)"),
    "null": broken_by("update entries set data = 'null' where type = 'link.selected'"),
    "other type": broken_by("update entries set data = json_set(data, '$.chain', 1) where seq = 1"),
    "owner": broken_by("update meta set value = '{' where key = 'owner'"),
    "order": broken_by("update meta set value = '[]' where key = 'order'"),
    "no facts": broken_by("delete from meta"),
    "no entries": broken_by("delete from entries"),
    "no table": broken_by("drop table meta"),
}


def test_a_broken_journal_is_a_clear_error_and_hides_no_other_job(home: Any, chain_of_one: Any) -> None:
    with FaultServer(Script(["a", "b"]), models=["m"]) as server:
        home.configure(chain_of_one(server, on_exhausted="fail"))
        assert home.run("run", "--name", "well", "x").code == 0
    well = only_folder(home)
    for number, break_ in enumerate(BREAKS.values()):
        folder = shutil.copytree(well, well.parent / f"j-{number:06}")
        break_(folder / "journal.db")
    listed = home.run("ps", "-a", "--json")
    assert listed.code == 0
    assert well.name in [job["id"] for job in listed.json["jobs"]]
    for number, name in enumerate(BREAKS):
        for command in ("show", "events", "resume"):
            done = home.run(command, f"j-{number:06}")
            assert "internal" not in done.err, (name, command, done.err)
            assert "Traceback" not in done.err, (name, command, done.err)


# Resume -----------------------------------------------------------------------------------------------------


def test_resume_on_a_chain_that_is_not_there_any_more_names_it_and_loses_nothing(
    home: Any, chain_of_one: Any
) -> None:
    with FaultServer(Script(["a", "b"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        home.run("run", "--name", "n", "x")
        home.configure({"default_chain": "d", "chains": {"d": [{"model": "gone/m"}]}})
        gone = home.run("resume", "n", "more")
        home.configure(chain_of_one(server))
        done = home.run("resume", "n", "more")
    assert (gone.code, "gone" in gone.err) == (3, True)
    assert (done.code, done.out) == (0, "b\n")


def test_words_that_look_like_an_option_are_said_to_a_detached_job(
    home: Any, until: Any, chain_of_one: Any
) -> None:
    with FaultServer(Script(["a", "b"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        home.run("run", "--name", "n", "x")
        resumed = home.run("resume", "-d", "n", "--", "-x is no option")
        job = only_folder(home).name
        assert (resumed.code, resumed.out) == (0, f"{job}\n")
        until(lambda: len(server.chats) == 2)
        assert server.chats[1].body["messages"][-1]["content"] == "-x is no option"


def test_a_relative_home_is_the_same_for_a_detached_job(home: Any, until: Any, chain_of_one: Any) -> None:
    with FaultServer(Script(["a"]), models=["m"]) as server:
        home.configure(chain_of_one(server))
        home.extra["AGENTX_HOME"] = "../home"
        started = home.run("run", "-d", "x")
        assert started.code == 0, started.err
        until(lambda: home.run("show", started.out.strip(), "--json").json["state"] == "ended")
