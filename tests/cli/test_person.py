"""What a person meets who has read the README and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import Call, NoteReader, Said, Script
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import FakeUsage, Hang, Slow, after, always, healthy, rate_limited
from agentx.testing.server import FaultServer


def one_link(server: FaultServer, **more: Any) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": f"{server.url}/v1"}},
        **more,
    }


def piped(home: Any, command: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in the workspace, where `agentx` is the one under test."""
    agentx = f'agentx() {{ "{sys.executable}" -m agentx "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", agentx + command],
        cwd=home.workspace,
        env=home.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "command",
    [
        f"agentx run --json '{TASK.format(last=6)}' | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}",
        f"agentx run '{TASK.format(last=6)}' 2>&1 | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}",
        f"agentx run '{TASK.format(last=6)}' >&- 2>&-",
        f"agentx run '{TASK.format(last=6)}' >/dev/full 2>/dev/full",
    ],
    ids=["events", "story", "closed", "full"],
)
def test_a_job_goes_on_when_nobody_can_be_told(home: Any, command: str) -> None:
    """Who listens is not part of the work: the journal has it all, and the exit code is the ending's."""
    codes = twelve_notes(home.workspace, count=6)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=always(Slow(0.05))) as server:
        home.configure(one_link(server))
        done = piped(home, command)
        assert done.returncode == 0, done.stderr
        (job,) = home.run("ps", "-a", "--json").json["jobs"]
        ending = home.run("show", "--json", job["id"]).json["ending"]
    assert ending["ending"] == "done"
    assert all(code in ending["answer"] for code in codes)


def test_output_that_cannot_be_written_is_an_error_without_a_report(home: Any) -> None:
    done = piped(home, "agentx config schema >/dev/full")
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_task_that_is_no_text_is_refused_before_there_is_a_job(home: Any, locale: str) -> None:
    home.extra["LC_ALL"] = locale
    with FaultServer(models=["m"], brain=Script(["x"] * 9)) as server:
        home.configure(one_link(server))
        for command in (
            r"printf 'a\xff\xfeb' | agentx run -",
            r"agentx run $'a\xff\xfeb'",
            r"agentx run --name $'a\xff\xfeb' hello",
            r"agentx run --until $'a\xff\xfeb' hello",
        ):
            done = piped(home, command)
            assert (done.returncode, "not UTF-8" in done.stderr) == (2, True), done.stderr
        assert home.run("ps", "-a", "--json").json["jobs"] == []
        assert home.run("run", "--name", "n", "hello").code == 0
        done = piped(home, r"agentx send n $'\xff'; agentx resume n $'\xff'")
    assert (done.returncode, done.stderr.count("not UTF-8")) == (2, 2)


def test_a_closed_stdin_is_an_empty_task(home: Any) -> None:
    assert piped(home, "agentx run - <&-").returncode == 2


def test_the_answer_of_a_detached_job_is_shown(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["The answer\nis 42.", "x"])) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "think").out.strip()
        until(lambda: home.run("show", "--json", job).json["state"] == "ended")
        told = home.run("run", "-d", "again").err
        columns = {line.rindex("   ") for line in told.splitlines() if line.startswith("  agentx ")}
        assert len(columns) == 1, told
    shown = home.run("show", job).out
    assert shown.endswith("\n\nThe answer\nis 42.\n")
    assert shown.startswith(f"{job}  ended")
    assert f"workspace {home.workspace}\n" in shown


def test_a_name_means_the_newest_job_that_bears_it(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server:
        home.configure(one_link(server))
        ids = [home.run("run", "--name", "n", task, "--json").events[0]["job"] for task in ("one", "two", "three")]
        assert home.run("show", "--json", "n").json["id"] == ids[-1]
        several = home.run("show", "j-")
    assert several.code == 8
    assert "give more of the id" in several.err


def test_a_name_that_a_running_job_bears_is_refused(home: Any, until: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000, schedule=always(Hang())) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "--name", "n", "one").out.strip()
        again = home.run("run", "--name", "n", "two")
        home.run("stop", "--now", job)
    assert again.code == 2
    assert job in again.err


def test_a_resumed_story_counts_on_and_says_what_is_not_known(home: Any, until: Any) -> None:
    """Turns go on from where they were; a call whose process died is not called a failure."""

    def brain(messages: Any, tools: Any) -> Said:
        if not any(message["role"] == "tool" for message in messages):
            return Said(calls=(Call("shell", {"command": "echo $$ > pid.txt; sleep 60"}),))
        return Said("finished")

    with FaultServer(models=["m"], brain=brain, window=32_000) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "count").out.strip()
        until(lambda: (home.workspace / "pid.txt").exists())
        os.kill(home.run("show", "--json", job).json["pid"], signal.SIGKILL)
        until(lambda: home.run("show", "--json", job).json["state"] == "interrupted")
        assert "its process is gone" in home.run("show", job).out
        story = home.run("resume", job).err
    assert re.search(r"^    shell echo .. .* · outcome unknown · ", story, re.M), story
    assert re.search(r"^  2 box/m ", story, re.M), story
    assert "ended what the run before had left running: sleep" in story
    assert not lives((home.workspace / "pid.txt").read_text().strip())
    logs = home.run("logs", job).out
    assert re.search(r"shell echo .. .* · outcome unknown · ", logs), logs


def test_a_failed_call_says_why(home: Any) -> None:
    script = Script([Said(calls=(Call("write_file", {"path": "../x", "content": "x"}),)), "sorry"])
    with FaultServer(models=["m"], brain=script, window=32_000) as server:
        home.configure(one_link(server))
        done = home.run("run", "--name", "n", "write")
    assert re.search(r"write_file \.\./x x · failed: .*outside.*", done.err), done.err
    assert re.search(r"write_file \.\./x x · failed: .*outside.*", home.run("logs", "n").out)


def test_the_time_of_an_ending_counts_to_its_end(home: Any, until: Any) -> None:
    """A job that was interrupted while it waited for its model has worked until then."""
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000, schedule=always(Hang())) as server:
        home.configure(one_link(server))
        job = home.run("run", "-d", "hang").out.strip()
        until(lambda: server.chats)
        until(lambda: home.run("show", "--json", job).json["seconds"] > 1.5)
        home.run("stop", "--now", job)
        server.schedule = healthy
    ended = home.run("events", job).events[-1]
    assert ended["ending"] == "interrupted"
    assert ended["totals"]["seconds"] > 1.5
    assert home.run("show", "--json", job).json["seconds"] == pytest.approx(ended["totals"]["seconds"], abs=0.2)


def test_logs_show_the_readers_time_and_the_day(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server:
        home.configure(one_link(server))
        home.run("run", "--name", "n", "hello")
    stamp = str(home.run("events", "n").events[0]["time"])
    home.extra["TZ"] = "Etc/GMT-14"  # fourteen hours before UTC
    first, second, *_ = home.run("logs", "n").out.splitlines()
    hour = (int(stamp[11:13]) + 14) % 24
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", first)
    assert second.startswith(f"{hour:02}{stamp[13:19]} job: ")


def test_logs_with_json_are_the_events(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server:
        home.configure(one_link(server))
        home.run("run", "--name", "n", "hello")
    assert home.run("logs", "--json", "n").out == home.run("events", "n").out


def test_a_link_that_is_passed_over_is_named_with_its_reason(home: Any) -> None:
    with (
        FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server,
        FaultServer(models=["m"], schedule=always(rate_limited(600))) as busy,
    ):
        settings = one_link(server)
        settings["providers"]["busy"] = {"card": "openai-compatible", "base_url": busy.v1}
        settings["chains"]["c"].insert(0, {"model": "busy/m"})
        home.configure(settings)
        assert home.run("run", "hello").code == 0
        second = home.run("run", "hello")
    assert re.search(r"^link: box/m .* · busy/m: rate_limit", second.err, re.M), second.err


def test_a_dry_run_names_the_check_and_a_missing_key(home: Any) -> None:
    done = home.run("run", "--dry-run", "--chain", "openai/gpt-5", "--until", "pytest -q", "hello")
    assert done.code == 0
    assert "`OPENAI_API_KEY` is not set" in done.out
    assert "until     pytest -q\n" in done.out
    as_json = home.run("run", "--dry-run", "--chain", "openai/gpt-5", "--until", "true", "hello", "--json").json
    assert as_json["until"] == "true"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--max-turns", "0"), ("--max-cost", "-1"), ("--max-hours", "nan"), ("--max-hours", "inf")],
)
def test_a_limit_that_makes_no_sense_is_named_as_it_was_typed(home: Any, option: str, value: str) -> None:
    done = home.run("run", option, value, "hello")
    assert done.code == 2, done.err
    assert option in done.err
    assert "limits." not in done.err


def test_a_setting_of_the_command_line_is_named_once(home: Any) -> None:
    done = home.run("-c", "limits.turns=0", "config", "check")
    assert (done.code, done.err.count("limits.turns")) == (3, 1)


def test_chain_check_shows_the_windows_that_the_servers_name(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"]), window=24_576) as server:
        home.configure(one_link(server))
        (link,) = home.run("chain", "--check", "--json").json["links"]
    assert (link["window"], link["window_source"]) == (24_576, "served")


def test_words_that_are_empty_are_refused(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server:
        home.configure(one_link(server))
        assert home.run("run", "--until", "", "hello").code == 2
        assert home.run("run", "--name", "n", "hello").code == 0
        assert home.run("send", "n", " ").code == 2


def test_a_server_that_is_not_there_is_named_by_its_address(home: Any) -> None:
    home.configure({"providers": {"dead": {"card": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}}})
    said = "http://127.0.0.1:9: Connection refused"
    checked = home.run("chain", "dead/m", "--check")
    assert (f"cannot connect to {said}" in checked.out, checked.code) == (True, 4)
    assert f"the server does not answer: {said}" in home.run("windows", "dead/m").err


def test_a_chain_that_may_not_wait_says_for_how_long(home: Any) -> None:
    with FaultServer(models=["m"], schedule=always(rate_limited(120))) as server:
        home.configure(one_link(server, on_exhausted="fail"))
        done = home.run("run", "hello")
    assert done.code == 5
    assert re.search(r"every link rests for 2 minutes or longer, and nothing may be waited", done.err), done.err


def test_an_option_of_the_program_says_where_it_stands(home: Any) -> None:
    assert "`agentx -c ... run`" in home.run("run", "-c", "limits.turns=3", "hello").err


def test_the_context_is_told_in_words(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"] * 9), window=32_000) as server:
        home.configure(one_link(server))
        home.run("run", "--name", "n", "hello")
    assert re.search(r"^task and your words +\d+ +\d+ %$", home.run("context", "n").out, re.M)


def test_a_guess_at_a_provider_is_near_or_is_not_made(home: Any) -> None:
    assert "known: " in home.run("run", "--chain", "nope/x", "hello").err
    assert "did you mean `openai`" in home.run("run", "--chain", "opnai/x", "hello").err


def test_an_empty_list_of_jobs_says_how_to_start_one(home: Any) -> None:
    assert "agentx run" in home.run("ps").err
    assert home.run("ps").out.startswith("ID ")


def test_json_before_the_command_says_where_it_belongs(home: Any) -> None:
    error = home.run("--json", "ps").json["error"]
    assert error["hint"] == "`--json` stands after the command: `agentx ps --json`"


def test_the_list_of_commands_has_whole_sentences(home: Any) -> None:
    assert "..." not in home.run("config", "--help").out.replace("[ARGS]...", "")


def test_doctor_gives_each_hint_once(home: Any) -> None:
    project: Path = home.workspace / "agentx.yaml"
    project.write_text("providers: {evil: {card: openai}}\n")
    hints = [line for line in home.run("doctor").out.splitlines() if line.startswith("hint: ")]
    assert len(hints) == len(set(hints)) >= 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"chains": {"a": []}}, "chains.a: is empty, expected one entry or more"),
        ({"limits": {"hours": -1}}, "limits.hours: expected 0 or more, got -1"),
        ({"max_wait": "2h"}, "hint: write the number alone: `2`"),
        ({"chains": {"a": [{"model": "ollama/x", "window": "32k"}]}}, "hint: write the number alone: `32000`"),
    ],
    ids=["empty", "negative", "hours", "thousands"],
)
def test_a_value_that_is_wrong_is_told_in_words(home: Any, settings: Any, said: str) -> None:
    home.configure(settings)
    done = home.run("config", "check")
    assert (done.code, said in done.err) == (3, True), done.err


def test_a_dry_run_says_whether_it_would_wait(home: Any) -> None:
    with FaultServer(models=["m"]) as server:
        home.configure(one_link(server, max_wait=2))
        assert "when every link rests it waits, at most 2 hours\n" in home.run("run", "--dry-run", "x").out
        home.configure(one_link(server, on_exhausted="fail"))
        assert "when every link rests the job ends\n" in home.run("run", "--dry-run", "x").out


def test_who_reads_only_the_first_lines_hears_no_error(home: Any) -> None:
    """`agentx logs JOB | head` ends quietly: what is written after the reader has gone is lost and no failure."""
    twelve_notes(home.workspace, count=6)
    with FaultServer(NoteReader(), models=["m"], window=32_000) as server:
        home.configure(one_link(server))
        home.run("run", "--name", "n", TASK.format(last=6))
    for command in ("logs n", "events n"):
        done = piped(home, f"agentx {command} | {{ read -r line; exec <&-; sleep 0.3; }}; exit ${{PIPESTATUS[0]}}")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_turn_line_shows_the_window_of_the_model_that_answered(home: Any) -> None:
    """After a switch it is the other model's; where a provider counts nothing, `~` says that it is an estimate."""
    twelve_notes(home.workspace, count=4)
    with (
        FaultServer(NoteReader(), models=["m"], window=32_000, schedule=after(2, rate_limited(600))) as first,
        FaultServer(NoteReader(), models=["m"], window=16_000, schedule=always(FakeUsage(None))) as second,
    ):
        home.configure(
            {
                "default_chain": "c",
                "chains": {"c": [{"model": "first/m"}, {"model": "second/m"}]},
                "providers": {
                    name: {"card": "openai-compatible", "base_url": server.v1}
                    for name, server in (("first", first), ("second", second))
                },
            }
        )
        told = home.run("run", "--name", "n", TASK.format(last=4)).err
        again = home.run("logs", "n").out
    for story in (told, again):
        turns = re.findall(r"(\S+)/m · (ctx ~?)[\d.]+k?/(\d+)k \(\d+ %\) · ", story)
        assert turns == [("first", "ctx ", "32")] * 2 + [("second", "ctx ~", "16")] * 3, story
