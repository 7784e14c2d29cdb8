from __future__ import annotations

import signal
import subprocess
import sys

import httpx


def test_the_server_runs_by_itself_and_ends_with_ctrl_c(client: httpx.Client) -> None:
    command = [sys.executable, "-W", "error", "-m", "agentx.testing", "--face", "llamacpp", "--window", "2304"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert client.get(f"{url}/props").json()["default_generation_settings"]["n_ctx"] == 2_304
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == ""
