"""Bad input: each a clear error, a hint, the right exit code, and nothing lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentx.testing.brain import NoteReader, Script
from agentx.testing.conversations import TASK, twelve_notes
from agentx.testing.faults import Hang, after, always, healthy
from agentx.testing.server import FaultServer


def one_link(server: FaultServer, **more: Any) -> dict[str, Any]:
    return {
        "default_chain": "c",
        "chains": {"c": [{"model": "box/m"}]},
        "providers": {"box": {"card": "openai-compatible", "base_url": f"{server.url}/v1"}},
        **more,
    }


@pytest.mark.usefixtures("usual_ports")
def test_with_nothing_at_all_the_error_says_three_quick_ways_to_a_model(home: Any) -> None:
    done = home.run("run", "--json", "hello")
    error = done.json["error"]
    assert (done.code, error["kind"], error["exit"]) == (4, "no_usable_model", 4)
    assert all(word in error["hint"] for word in ("API_KEY", "ollama", "agentx local pull"))


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("chains: {a: [{modle: x/y}]}\n", "1:14", "model"),
        ("limits:\n  turns: many\n", "2:10", "turns"),
        ("chains: [\n", "2:1", ""),
        ("limits: {turns: 3}\nlimits: {turns: 4}\n", "2:1", "limits"),
        ("- a list\n", "1:1", ""),
    ],
)
def test_bad_yaml_names_file_line_and_column(home: Any, text: str, where: str, what: str) -> None:
    file = home.configure({})
    file.write_text(text)
    done = home.run("run", "hello")
    assert done.code == 3
    assert f"agentx.yaml:{where}" in done.err
    assert what in done.err
    assert "Traceback" not in done.err


def test_an_unknown_provider_names_the_nearest(home: Any) -> None:
    done = home.run("run", "--chain", "opnai/gpt-5", "hello")
    assert done.code in (2, 3)
    assert "openai" in done.err


def test_a_missing_key_is_named_by_its_variable(home: Any) -> None:
    done = home.run("run", "--json", "--chain", "openai/gpt-5", "hello")
    assert done.code == 4
    assert "OPENAI_API_KEY" in done.out


def test_a_dead_server_is_named_by_its_address(home: Any) -> None:
    home.configure(
        {
            "chains": {"c": [{"model": "box/m"}]},
            "default_chain": "c",
            "providers": {"box": {"card": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}},
            "on_exhausted": "fail",
        }
    )
    done = home.run("run", "--json", "hello")
    assert (done.code, done.events[-1]["ending"]) == (4, "no_usable_model")
    assert "127.0.0.1:9" in done.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_state_folder_says_so(home: Any) -> None:
    home.folder.chmod(0o500)
    try:
        done = home.run("run", "--chain", "openai/gpt-5", "hello")
    finally:
        home.folder.chmod(0o700)
    assert done.code == 1
    assert "AGENTX_HOME" in done.err


def test_a_file_in_the_place_of_the_state_folder_says_so(home: Any) -> None:
    with FaultServer(models=["m"], brain=Script(["x"])) as server:
        home.configure(one_link(server))
        (home.folder / "home" / "state").write_text("a file")
        done = home.run("run", "hello")
    assert done.code == 1
    assert "state" in done.err
    assert "AGENTX_HOME" in done.err


def test_a_missing_workspace_says_so(home: Any) -> None:
    done = home.run("run", "--workspace", "nowhere", "hello")
    assert done.code == 2
    assert "mkdir -p nowhere" in done.err


@pytest.mark.parametrize("command", ["show", "logs", "events", "stop", "resume", "context", "compact"])
def test_no_such_job_has_exit_8(home: Any, command: str) -> None:
    done = home.run(command, "j-nothing")
    assert done.code == 8
    assert "agentx ps -a" in done.err


def test_an_empty_task_is_refused(home: Any) -> None:
    done = home.run("run", "-", stdin="  \n")
    assert done.code == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_loses_nothing(home: Any, until: Any, number: signal.Signals) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=32_000, schedule=after(5, Hang())) as server:
        home.configure(one_link(server))
        with home.started("run", "--json", "--name", "n", TASK.format(last=12)) as process:
            until(lambda: len(server.chats) >= 6)
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        assert process.returncode == 128 + number, err
        assert '"ending": "interrupted"' in out.splitlines()[-1]
        server.schedule = healthy
        done = home.run("resume", "--json", "n")
    assert done.code == 0, done.err
    assert all(code in done.events[-1]["answer"] for code in codes)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.15, 0.4, 0.8])
def test_ctrl_c_at_any_moment_gives_130_and_a_job_that_can_be_resumed(home: Any, moment: float) -> None:
    """From the moment that the job has an id: never a traceback, never another code."""
    with FaultServer(Script(["x"] * 99), models=["m"], window=32_000, schedule=always(Hang())) as server:
        home.configure(one_link(server))
        with home.started("run", "hello") as process:
            first = process.stderr.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=moment)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        server.schedule = healthy
        done = home.run("resume", first.split()[1])
    assert (done.code, done.out) == (0, "x\n")


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of two megabytes, where this machine lets us mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_ends_clearly_and_the_journal_stays_readable(home: Any, small_disk: Path) -> None:
    codes = twelve_notes(home.workspace)
    with FaultServer(models=["m"], brain=NoteReader(), window=128_000) as server:
        home.configure(one_link(server))
        home.extra["AGENTX_HOME"] = str(small_disk)
        config = small_disk / "config"
        config.mkdir()
        (config / "agentx.yaml").write_text((home.folder / "home" / "config" / "agentx.yaml").read_text())
        filler = small_disk / "filler"
        filler.write_bytes(b"x" * (2 * 1024 * 1024 - 180_000))
        done = home.run("run", "--name", "n", TASK.format(last=12))
        assert done.code == 1, done.err
        assert "full" in done.err
        assert "Traceback" not in done.err
        assert home.run("ps").code == 0
        filler.unlink()
        again = home.run("resume", "--json", "n")
    assert again.code == 0, again.err
    assert all(code in again.events[-1]["answer"] for code in codes)


def test_a_disk_that_is_full_from_the_start_leaves_no_half_job(home: Any, small_disk: Path) -> None:
    with FaultServer(models=["m"], brain=Script(["x"])) as server:
        file = home.configure(one_link(server))
        home.extra["AGENTX_HOME"] = str(small_disk)
        (small_disk / "config").mkdir()
        (small_disk / "config" / "agentx.yaml").write_text(file.read_text())
        (small_disk / "filler").write_bytes(b"x" * (2 * 1024 * 1024 - 20_000))
        done = home.run("run", "hello")
    assert done.code == 1
    assert "full" in done.err
    listed = home.run("ps", "-a", "--json")
    assert (listed.json["jobs"], listed.err) == ([], "")


def test_a_current_folder_that_is_gone_is_named(home: Any) -> None:
    gone = "mkdir gone && cd gone && rmdir ../gone && exec python -m agentx ps"
    done = subprocess.run(
        ["bash", "-c", gone], cwd=home.workspace, env=home.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "current folder is not there any more" in done.stderr
