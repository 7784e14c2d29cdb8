"""`agentx windows`, at its outermost: the command, real files, real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agentx.cli.session import Session
from agentx.cli.windows import windows
from agentx.errors import UsageError

Payload = Callable[[str], Any]
FIELDS = {
    "link", "provider", "model", "window", "trained", "output", "source", "detail", "age_seconds", "confidence",
    "threshold", "reserve", "warnings",
}  # fmt: skip


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Result]:
    """Runs the command with a user's config; errors are raised, as they are to the program."""
    workspace = tmp_path / "work"
    workspace.mkdir()

    def run(config: str, *arguments: str) -> Result:
        folder = tmp_path / "home" / "config"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "agentx.yaml").write_text(config)
        session = Session({"AGENTX_HOME": str(tmp_path / "home")}, workspace)
        return CliRunner().invoke(windows, arguments, obj=session, catch_exceptions=False)

    return run


def links_of(result: Result) -> list[dict[str, Any]]:
    return json.loads(result.stdout)["links"]


def chain(url: str, *more: str) -> str:
    lines = ["providers:", f'  box: {{card: openai-compatible, base_url: "{url}/v1"}}', "chains:", "  night:"]
    return "\n".join([*lines, '    - model: "box/qwen3:14b"', *more]) + "\n"


def test_each_link_is_shown_with_its_own_window_and_budget(
    serve: Any, payload: Payload, call: Callable[..., Result]
) -> None:
    """The served window of the one, the table's of the other: nothing is borrowed."""
    server = serve({"GET /api/ps": payload("ollama_api_ps"), "GET /api/tags": payload("ollama_api_tags")})
    rows = links_of(call(chain(server.url, "    - model: openai/gpt-5", "      name: big"), "--json"))
    assert all(row.keys() >= FIELDS for row in rows)
    shown = [
        {key: row[key] for key in ("link", "window", "trained", "source", "threshold", "reserve")} for row in rows
    ]
    assert shown == [
        {
            "link": "box/qwen3:14b",
            "window": 4096,
            "trained": 40_960,
            "source": "served",
            "threshold": 2048,
            "reserve": 2048,
        },
        {
            "link": "big",
            "window": 272_000,
            "trained": None,
            "source": "windows.yaml",
            "threshold": 128_000,
            "reserve": 8192,
        },
    ]
    assert 0 <= rows[0]["age_seconds"] < 60
    assert rows[0]["detail"] == "GET /api/ps models[].context_length"


def test_the_table_is_the_answer_and_warnings_are_the_story(
    serve: Any, payload: Payload, call: Callable[..., Result]
) -> None:
    result = call(chain(serve({}).url))
    header, numbers, source = result.stdout.splitlines()
    assert header.split() == ["LINK", "WINDOW", "OUTPUT", "THRESHOLD", "RESERVE", "CONFIDENCE"]
    assert numbers.split() == ["box/qwen3:14b", "4,096", "-", "2,048", "2,048", "assumed"]
    assert source == "  assumed: nobody says"
    assert "warning: box/qwen3:14b: nobody says how much it holds" in result.stderr


def test_a_window_that_cannot_work_has_a_warning_instead_of_a_threshold(
    serve: Any, payload: Payload, call: Callable[..., Result]
) -> None:
    ps = payload("ollama_api_ps")
    ps["models"][0]["context_length"] = 2048
    config = chain(serve({"GET /api/ps": ps}).url)
    (row,) = links_of(call(config, "--json"))
    assert (row["window"], row["threshold"], row["reserve"]) == (2048, None, None)
    assert any("2,256 tokens are needed" in text for text in row["warnings"])
    assert "too small" in call(config).stdout


def test_a_model_is_named_by_itself_or_by_its_links_name(serve: Any, call: Callable[..., Result]) -> None:
    config = chain(serve({}).url, "      name: mine", "      window: 9000")
    named, plain = links_of(call(config, "--json", "mine", "openai/gpt-5"))
    assert (named["link"], named["window"], named["source"]) == ("mine", 9000, "config")
    assert (plain["link"], plain["model"]) == ("openai/gpt-5", "gpt-5")
    with pytest.raises(UsageError):
        call(config, "nope")


def test_a_dead_server_is_said_and_the_command_still_answers(call: Callable[..., Result]) -> None:
    (row,) = links_of(call(chain("http://127.0.0.1:9"), "--json"))
    assert row["source"] == "assumed"
    assert any("does not answer: http://127.0.0.1:9" in text for text in row["warnings"])


def test_what_a_server_said_is_shown_again_with_its_age_when_it_is_gone(
    serve: Any, payload: Payload, call: Callable[..., Result]
) -> None:
    server = serve({"GET /v1/models": payload("llamacpp_v1_models")})
    config = chain(server.url)
    (first,) = links_of(call(config, "--json"))
    server.routes.clear()
    (second,) = links_of(call(config, "--json"))
    assert (first["source"], second["source"]) == ("served", "cache")
    assert first["window"] == second["window"] == 16_384


GATEWAY = """\
title: Acme gateway
wire: openai
base_url: {url}/v9
probes: [openai_list]
"""
LISTED: dict[str, tuple[dict[str, Any], int, int | None]] = {
    "long": ({"contextLength": 96_000, "max_tokens": 5000}, 96_000, None),
    "team/short": ({"context_size": 16_384, "max_output_tokens": 4096}, 16_384, 4096),
    "both": (
        {"context_window": 400_000, "capabilities": {"limits": {"max_prompt_tokens": 300_000}}},
        300_000,
        None,
    ),
    "nested": ({"metadata": {"context_length": 40_960}}, 40_960, None),
    "odd": (
        {"context_length": "65536", "max_model_len": 1e30, "limits": {"max_context_length": 12_288}},
        12_288,
        None,
    ),
}


def test_a_card_of_ones_own_makes_an_unknown_gateway_known(
    serve: Any, call: Callable[..., Result], tmp_path: Path
) -> None:
    """A file and no code: its list is read by the names that other servers use."""
    listed = {"data": [{"id": name, **fields} for name, (fields, _, _) in LISTED.items()]}
    folder = tmp_path / "home" / "config" / "providers"
    folder.mkdir(parents=True)
    (folder / "acme.yaml").write_text(GATEWAY.format(url=serve({"GET /v9/models": listed}).url))
    rows = links_of(call("", "--json", *(f"acme/{name}" for name in LISTED), "acme/unknown"))
    shown = {row["model"]: (row["window"], row["output"], row["source"]) for row in rows}
    expected = {name: (size, output, "listed") for name, (_, size, output) in LISTED.items()}
    assert shown == expected | {"unknown": (32_768, None, "assumed")}
    assert {row["provider"] for row in rows} == {"acme"}


def test_a_card_of_ones_own_replaces_a_shipped_one(
    serve: Any, call: Callable[..., Result], tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "config" / "providers"
    folder.mkdir(parents=True)
    listed = {"models": [{"name": "grok-4.5", "context_window": 50_000}]}
    (folder / "xai.yaml").write_text(GATEWAY.format(url=serve({"GET /v9/models": listed}).url))
    (row,) = links_of(call("", "--json", "xai/grok-4.5"))
    assert (row["window"], row["detail"]) == (50_000, "GET /v9/models context_window")


def test_litellm_is_never_imported(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom agentx.cli.main import main\n"
        "try:\n    main(['windows', '--json', 'openai/gpt-5', 'anthropic/claude-3-opus-20240229'])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'litellm' not in sys.modules\n"
    )
    environ = {"AGENTX_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environ, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["links"][0]["window"] == 272_000
