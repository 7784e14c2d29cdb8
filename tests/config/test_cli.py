"""`agentx config`: what is set and by whom, whether it is right, where it lies, what could be set."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator, ValidationError, validate

from agentx.config.cards import read_cards
from agentx.config.yamlfile import parse_document
from agentx.errors import ConfigError, StateError, UsageError

if TYPE_CHECKING:
    from tests.config.conftest import Place


def test_show_prints_what_counts_and_by_whom(place: Place) -> None:
    place.user("limits: {cost: 5}\nchains: {night: [openai/x]}\n")
    place.said_here("limits: {hours: 2}\n")
    result = place.run("show", "--origin", overrides=("timers.idle=7",))
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert result.exit_code == 0
    assert lines["limits.cost"] == ["5", f"{place.user_file}:1:16"]
    assert lines["limits.hours"] == ["2", "agentx.yaml:1:17"]
    assert lines["chains.night.0.model"] == ["openai/x", f"{place.user_file}:2:18"]
    assert lines["timers.idle"] == ["7", "-c", "timers.idle"]
    assert lines["max_wait"] == ["null", "default"]
    assert lines["on_exhausted"] == ["wait", "default"]
    assert lines["providers"] == ["{}", "default"]


def test_bare_config_shows(place: Place) -> None:
    assert place.run().stdout == place.run("show").stdout != ""


def test_show_as_json_has_settings_and_origins(place: Place) -> None:
    place.user("chains: {night: [openai/x]}\n")
    result = place.run("show", "--json", environ={"AGENTX_LIMITS__CST": "1"})
    shown = json.loads(result.stdout)
    assert shown["settings"]["chains"] == {"night": [{"model": "openai/x"}]}
    assert shown["origins"]["chains.night.0.model"] == f"{place.user_file}:1:18"
    assert shown["origins"]["limits.cost"] == "default"
    assert shown["files"] == [str(place.user_file)]
    assert len(shown["warnings"]) == 1 and result.stderr == ""


def test_warnings_go_to_stderr(place: Place) -> None:
    result = place.run("show", environ={"AGENTX_LIMITS__CST": "1"})
    assert result.stderr == (
        "warning: the variable AGENTX_LIMITS__CST means nothing here; did you mean AGENTX_LIMITS__COST?\n"
    )


def test_headers_are_never_shown(place: Place) -> None:
    place.user("providers: {box: {card: vllm, headers: {Authorization: Bearer sk-secret}}}\n")
    for arguments in (["show"], ["show", "--origin"], ["show", "--json"]):
        output = place.run(*arguments).output
        assert "sk-secret" not in output and "Authorization" in output


def test_check_says_ok_or_every_problem(place: Place) -> None:
    place.user("chains: {night: [openai/x]}\n")
    result = place.run("check")
    assert (result.exit_code, result.stdout) == (
        0,
        f"ok: {place.user_file} (1 chain, 0 providers, {len(read_cards(place.root))} cards)\n",
    )
    assert json.loads(place.run("check", "--json").stdout)["ok"] is True
    place.user("chains: {night: [opnai/x, olama/y]}\n")
    (place.paths.config / "windows.yaml").write_text("openai/x: lots\n")
    error = place.run("check").exception
    assert isinstance(error, ConfigError)
    assert [problem.where.rpartition("/")[2] for problem in error.problems] == [
        "agentx.yaml:1:18",
        "agentx.yaml:1:27",
        "windows.yaml:1:11",
    ]


def test_path_prints_the_users_file_alone_on_stdout(place: Place) -> None:
    result = place.run("path")
    assert result.stdout == f"{place.user_file}\n"
    assert "project: none" in result.stderr
    place.said_here("")
    shown = json.loads(place.run("path", "--json").stdout)
    assert (shown["user"], shown["project"]) == (str(place.user_file), str(place.project / "agentx.yaml"))


def test_the_schema_accepts_what_we_accept_and_refuses_what_we_refuse(place: Place) -> None:
    schema = json.loads(place.run("schema").stdout)
    Draft202012Validator.check_schema(schema)

    def accepted(text: str) -> bool:
        try:
            validate(parse_document(text, "f").data, schema, Draft202012Validator)
        except ValidationError:
            return False
        return True

    good = (
        "default_chain: night\n"
        "chains: {night: [openai/x, {model: ollama/qwen3:14b, window: 8192}]}\n"
        "providers: {box: {card: vllm, base_url: 'http://box/v1'}}\n"
        "limits: {cost: 5, hours: null}\n"
    )
    assert accepted(good)
    for bad in ("limits: {cst: 5}", "chains: {a: [x]}", "chains: {a: [{name: x}]}", "shell: 5", "on: 1"):
        assert not accepted(bad)


def test_the_variables_are_listed(place: Place) -> None:
    assert "AGENTX_LIMITS__COST" in place.run("schema", "--env").stdout
    listed = json.loads(place.run("schema", "--env", "--json").stdout)["variables"]
    assert {"AGENTX_HOME", "AGENTX_PROVIDERS__NAME__BASE_URL"} <= {entry["name"] for entry in listed}


def test_init_writes_a_file_that_sets_nothing_and_is_right_line_by_line(place: Place) -> None:
    result = place.run("init")
    assert (result.exit_code, result.stdout) == (0, f"{place.user_file}\n")
    assert place.load().settings == place.load().settings.__class__()
    text = place.user_file.read_text(encoding="utf-8")
    place.user("\n".join(line[2:] if is_setting(line) else line for line in text.splitlines()))
    config = place.load()
    assert config.problems() == []
    assert [link.name for link in config.chain()][-1] == "ollama/qwen3:14b"
    assert stat.S_IMODE(place.paths.config.stat().st_mode) == 0o700
    schema = json.loads((place.paths.config / "agentx.schema.json").read_text(encoding="utf-8"))
    assert schema == json.loads(place.run("schema").stdout)


def is_setting(line: str) -> bool:
    """Whether a commented line holds a setting, not a sentence."""
    return line.startswith("# ") and "yaml-language-server" not in line


def test_init_keeps_what_is_there_unless_forced(place: Place) -> None:
    place.user("limits: {cost: 1}\n")
    error = place.run("init").exception
    assert isinstance(error, UsageError) and error.hint is not None and "--force" in error.hint
    assert place.user_file.read_text() == "limits: {cost: 1}\n"
    assert place.run("init", "--force", "--json").stdout == json.dumps({"file": str(place.user_file)}) + "\n"
    assert place.user_file.read_text() != "limits: {cost: 1}\n"


def test_init_where_nothing_can_be_written_says_so(place: Place) -> None:
    place.paths.config.parent.mkdir()
    place.paths.config.write_text("a file, not a folder")
    error = place.run("init").exception
    assert isinstance(error, StateError)
    assert error.hint is not None and "AGENTX_HOME" in error.hint


def test_a_wrong_file_is_a_config_error_for_show_too(place: Place) -> None:
    place.user("limits: [\n")
    error = place.run("show").exception
    assert isinstance(error, ConfigError) and error.exit_code == 3


def test_check_knows_what_a_job_will_need_at_night(place: Place) -> None:
    """A tool and a summariser that are not there are found before the job that would use them."""
    place.user("tools: {only: [read_file, serch]}\ncompaction: {summary_model: olama/x}\n")
    error = place.run("check").exception
    assert isinstance(error, ConfigError)
    found = {(one.where, one.what, one.hint) for one in error.problems}
    assert found == {
        (f"{place.user_file}:1:15", "there is no tool `serch`", "did you mean `search`?"),
        (f"{place.user_file}:2:29", "there is no provider `olama`", "did you mean `ollama`?"),
    }
