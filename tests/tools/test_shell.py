"""`shell`: every command ends, nothing of it is left, and its output is bounded."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentx.tools.toolbox import Toolbox
from agentx.wires.messages import ToolCall

if TYPE_CHECKING:
    from tests.tools.conftest import Bench


def body(text: str) -> str:
    return text.split("\n", 1)[1]


def alive(pid: int) -> bool:
    """Whether the process lives; a dead one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_command_gives_exit_code_seconds_and_both_streams(bench: Bench) -> None:
    result = bench.call("shell", command="echo out; echo err >&2; exit 3")
    assert re.fullmatch(r"\[exit code 3, \d+\.\d s\]\nout\nerr\n", result.text)
    assert (result.ok, result.size, result.whole, result.read_only) == (False, 8, None, False)


def test_a_command_runs_in_the_workspace(bench: Bench) -> None:
    result = bench.call("shell", command="pwd -P; true")
    assert (result.ok, body(result.text)) == (True, f"{bench.workspace.resolve()}\n")


def test_silence_is_named(bench: Bench) -> None:
    assert body(bench.call("shell", command="true").text) == "(no output)"


def test_a_signal_is_named(bench: Bench) -> None:
    assert bench.call("shell", command="kill -SEGV $$").text.startswith("[ended by SIGSEGV, ")


def test_keys_do_not_reach_a_command(bench: Bench, secret: str) -> None:
    bench.environ |= {"TZ": "UTC", "AGENTX_X": "1", "LC_MINE": secret, "https_proxy": "http://me:pw@host"}
    result = bench.call("shell", command="env | sort")
    names = {line.split("=")[0] for line in body(result.text).splitlines()}
    assert not names & {"OPENAI_API_KEY", "AGENTX_X", "LC_MINE", "https_proxy"}
    assert {"PATH", "HOME", "TZ", "CI"} <= names


def test_a_key_that_is_printed_stands_nowhere(bench: Bench, secret: str) -> None:
    bench.limits = replace(bench.limits, head_chars=20, tail_chars=20)
    command = f"printf '%s' {secret[:9]}; printf '%s\\n' {secret[9:]}; seq 100; echo {secret} | base64"
    result = bench.call("shell", command=command)
    assert result.whole is not None
    kept = result.whole.read_text()
    assert kept.count("[redacted]") == 2
    assert secret not in kept + result.text


def test_a_child_that_holds_the_pipe_does_not_hold_the_call(bench: Bench) -> None:
    before = time.monotonic()
    result = bench.call("shell", command="sleep 60 & echo $!")
    assert time.monotonic() - before < 20
    assert "still running and terminated: sleep (use background=true" in result.text
    assert not alive(int(body(result.text)))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="strays are found through /proc")
def test_a_child_that_left_the_session_is_found(bench: Bench) -> None:
    result = bench.call("shell", command="setsid sleep 60 >/dev/null 2>&1 & sleep 0.1")
    assert "terminated: sleep" in result.text


def test_a_writer_behind_the_command_may_finish(bench: Bench) -> None:
    result = bench.call("shell", command="echo kept > >(sleep 0.05; cat)")
    assert result.text.startswith("[exit code 0, ")
    assert body(result.text) == "kept\n"


def test_a_time_out_keeps_what_was_printed(bench: Bench) -> None:
    result = bench.call("shell", command="echo begun; exec sleep 60", timeout=2)
    assert re.fullmatch(r"\[no end after \d\.\d s: terminated \(sleep\)\]\nbegun\n", result.text)
    assert not result.ok


def test_what_ignores_term_is_killed(bench: Bench) -> None:
    result = bench.call("shell", command="trap '' TERM; echo $$; while :; do sleep 0.1; done", timeout=2)
    assert "killed, since it ignored TERM" in result.text
    assert not alive(int(body(result.text)))


def test_endless_output_ends_at_its_limit(bench: Bench) -> None:
    result = bench.call("shell", command="yes")
    assert result.text.startswith("[more than 2,000,000 bytes of output after ")
    assert 2_000_000 < result.size < 3_000_000
    assert len(result.text) < 1_500


def test_one_endless_line_is_bounded_in_memory(bench: Bench) -> None:
    result = bench.call("shell", command="head -c 1000000 /dev/zero | tr '\\0' x")
    assert (result.ok, result.size) == (True, 1_000_000)
    assert "[... 999,400 characters left out;" in result.text


def test_a_long_output_lies_whole_on_disk(bench: Bench) -> None:
    result = bench.call("shell", command="seq 1 1000")
    assert result.whole is not None
    assert result.whole.parent == bench.output
    assert result.whole.read_text() == "".join(f"{n}\n" for n in range(1, 1001))
    assert result.whole.stat().st_mode & 0o777 == 0o600
    assert 'restore_tool_result with id "c1_1" brings them back' in result.text
    assert body(result.text).startswith("1\n2\n")
    assert result.text.endswith("\n999\n1000\n")


def test_the_disk_limit_is_kept_and_told(bench: Bench) -> None:
    bench.limits = replace(bench.limits, kept_bytes=1_000)
    result = bench.call("shell", command="for i in 1 2 3 4 5 6 7 8; do seq 100; sleep 0.01; done")
    assert "the disk limit was reached" in result.text or result.whole is None
    assert sum(path.stat().st_size for path in bench.output.iterdir()) <= 1_000


@pytest.mark.parametrize(
    "command",
    ["cat", "read x", "git commit --allow-empty", "git rebase -i HEAD", "python3 -c 'input()'", "man ls"],
)
def test_what_asks_or_pages_ends_by_itself(bench: Bench, command: str) -> None:
    before = time.monotonic()
    bench.call("shell", command=command)
    assert time.monotonic() - before < 20


@pytest.mark.parametrize("command", ["", "  ", "echo \0"])
def test_what_is_no_command_is_refused(bench: Bench, command: str) -> None:
    assert "failed" not in bench.call("shell", command=command).text


def test_a_workspace_that_is_gone_is_told(bench: Bench) -> None:
    first, second = bench.calls(("shell", {"command": f"rm -r {bench.workspace}"}), ("shell", {"command": "true"}))
    assert first.ok
    assert second.text.startswith("the command cannot be started: No such file or directory")


def test_cancelling_a_call_ends_its_command(bench: Bench) -> None:
    os.mkfifo(bench.workspace / "pid")

    async def cancelled() -> int:
        box = bench.box()
        call = ToolCall("c1", "shell", json.dumps({"command": "echo $$ > pid; exec sleep 60"}))
        task = asyncio.create_task(box.run(call))
        pid = await asyncio.to_thread((bench.workspace / "pid").read_text)  # a pipe: waits for the command
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(pid)

    assert not alive(asyncio.run(cancelled()))


def test_the_loop_goes_on_while_a_command_runs(bench: Bench) -> None:
    async def both() -> list[str]:
        box, order = bench.box(), list[str]()

        async def command() -> None:
            await box.run(ToolCall("c1", "shell", json.dumps({"command": "until [ -e go ]; do sleep 0.01; done"})))
            order.append("command")

        task = asyncio.create_task(command())
        await asyncio.sleep(0)
        order.append("loop")
        bench.file("go", "")
        await task
        return order

    assert asyncio.run(both()) == ["loop", "command"]


def test_no_file_descriptor_is_left(bench: Bench) -> None:
    async def several() -> tuple[int, int]:
        box = bench.box()
        call = ToolCall("c1", "shell", json.dumps({"command": "echo x"}))
        await box.run(call)
        before = open_files()
        for _ in range(5):
            await box.run(call)
        return before, open_files()

    before, after = asyncio.run(several())
    assert after <= before


async def until(box: Toolbox, id_: str, words: str) -> str:
    """What a background command printed, until it holds *words*."""
    seen = ""
    while words not in seen:
        result = await box.run(ToolCall("c9", "shell_output", json.dumps({"id": id_, "wait": 0.05})))
        seen += result.text
    return seen


def test_a_background_command_is_read_on_and_stopped(bench: Bench) -> None:
    async def story() -> list[str]:
        box = bench.box()
        command = "echo ready; until [ -e go ]; do sleep 0.01; done; echo gone; exec sleep 60"
        start = ToolCall("c1", "shell", json.dumps({"command": command, "background": True}))
        told = [(await box.run(start)).text]
        told.append(box.background())
        bench.file("go", "")
        told.append(await until(box, "b1", "gone"))
        stopped = await box.run(ToolCall("c2", "shell_output", '{"id": "b1", "stop": true}'))
        assert stopped.ok
        told += [stopped.text, box.background()]
        await box.close()
        return told

    started, listed, later, stopped, left = asyncio.run(story())
    assert re.fullmatch(r"\[b1 runs in the background since \d\.\d s, process group \d+\]\nready\n", started)
    assert re.fullmatch(r"b1: echo ready; until .* sleep 60 \(for \d+ s\)", listed)
    assert "ready" not in later
    ended = r"\[b1 has ended: stopped after \d\.\d s: terminated \(sleep\)\]\n\(no new output\)"
    assert re.fullmatch(ended, stopped)
    assert left == ""


def test_a_background_command_that_fails_at_once_says_so(bench: Bench) -> None:
    result = bench.call("shell", command="echo no port; exit 7", background=True)
    assert re.fullmatch(r"\[b1 has ended: exit code 7, \d\.\d s\]\nno port\n", result.text)
    assert not result.ok


def test_background_commands_end_with_the_toolbox(bench: Bench) -> None:
    (result,) = bench.calls(("shell", {"command": "echo $$; sleep 60", "background": True}))
    assert not alive(int(body(result.text)))


def test_the_whole_of_a_background_command_lies_on_disk(bench: Bench) -> None:
    (result,) = bench.calls(("shell", {"command": "seq 1 1000", "background": True}))
    assert result.whole is not None
    assert result.whole.read_text() == "".join(f"{n}\n" for n in range(1, 1001))


def test_only_so_many_run_in_the_background(bench: Bench) -> None:
    bench.limits = replace(bench.limits, background=1)
    sleeper = ("shell", {"command": "sleep 60", "background": True})
    _, refused = bench.calls(sleeper, sleeper)
    assert refused.text.startswith("1 commands run in the background already\n")


def test_an_unknown_background_command_is_told(bench: Bench) -> None:
    assert bench.call("shell_output", id="b7").text == (
        "no background command `b7`\nknown: none was started; they end with the process of agentx"
    )
