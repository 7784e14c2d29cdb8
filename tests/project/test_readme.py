"""What the README says is true: its commands exist, its settings load, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from agentx.chain.classify import classify
from agentx.cli.main import COMMANDS, cli
from agentx.config.cards import read_cards
from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.testing import faults
from agentx.testing.brain import KeyKeeper
from agentx.testing.named import NAMED
from agentx.testing.server import FaultServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_command_stands_in_the_readme() -> None:
    assert [name for name in COMMANDS if f"agentx {name}" not in README] == []


def test_the_readme_shows_only_commands_and_options_that_exist() -> None:
    for line in re.findall(r"^\$? *agentx ([a-z].*)$", "\n".join(blocks("console") + blocks("sh")), re.MULTILINE):
        words = re.sub(r"(['\"]).*?\1", "TEXT", line.split("#")[0]).split()
        command: Any = cli
        context = click.Context(cli)
        while words and isinstance(command, click.Group) and words[0] in command.list_commands(context):
            command = command.get_command(context, words.pop(0))
        assert command is not cli, line
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {f"-{letter}" for option in known if len(option) == 2 for letter in option[1:]}
        for word in words:
            if word.startswith("-") and word != "-":
                assert word.split("=")[0] in known, f"{line}: {word}"


def card_in(block: str) -> str | None:
    """The name of the card that *block* is; None where it is an `agentx.yaml`."""
    found = re.match(r"# providers/([a-z-]+)\.yaml", block)
    return found and found[1]


def test_the_readme_s_settings_are_valid(home: Any) -> None:
    for block in blocks("yaml"):
        file = home.configure({})
        name = card_in(block)
        file = file.parent / "providers" / f"{name}.yaml" if name else file
        file.parent.mkdir(exist_ok=True)
        file.write_text(block)
        done = home.run("config", "check")
        assert done.code == 0, done.err


def test_the_readme_s_card_was_run(home: Any) -> None:
    """Against a gateway that lists and refuses as the README tells, the command shows what stands there."""
    (card,) = [block for block in blocks("yaml") if card_in(block)]
    (shown,) = [block for block in blocks("console") if "acme/" in block]
    folder = home.configure({}).parent / "providers"
    folder.mkdir()
    listed = faults.Status(200, {}, {"data": [{"id": "coder-large", "contextLength": 96_000}]})
    with FaultServer(list_fault=listed) as server:
        (folder / "acme.yaml").write_text(card.replace("https://gateway.acme.example/v1", server.v1))
        home.extra["ACME_API_KEY"] = "k"
        command = shown.strip().splitlines()[0].removeprefix("$ agentx ")
        done = home.run(*command.split())
    said = as_shown(done.out.replace(server.v1, "https://gateway.acme.example/v1"))
    for line in as_shown(shown.partition("\n")[2]):
        assert any(one.startswith(line.removesuffix("...").strip()) for one in said), line
    patterns = read_cards(folder.parent)["acme"].patterns()
    acme = Provider(name="acme", card="acme", wire="openai", errors=patterns)
    for body, expected in (
        ("a conversation of 90211 units is beyond the 64000 of this desk", ("overflow", 64_000, 90_211)),
        ("your wallet is empty", ("quota", None, None)),
    ):
        found = classify(RequestFailed("x", phase="status", status=400, body=body), acme, now=0)
        assert (found.error_class, found.limit, found.actual) == expected


def test_files_that_the_readme_links_to_exist() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_make_targets_of_the_readme_exist() -> None:
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", "\n".join(blocks("sh")), re.MULTILINE)) <= made
    assert {"demo", "test"} <= set(re.findall(r"make ([a-z-]+)", README))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_it_does(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0
    assert "--json" in shown.output or name in ("logs", "config", "local")
    assert COMMANDS[name][1].rstrip(".").split()[0].lower() in shown.output.lower() or "Commands:" in shown.output


SHOWN_AS = (
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"read [\d,]+ of about [\d,]+", "read N of about M"),
    (r"used at most [\d,]+", "used at most N"),
    (r"request \d of about [\d,]+", "request N of about M"),
    (r"\d+ s\b", "N s"),
)


def as_shown(text: str) -> list[str]:
    """The words of *text*, line by line, without what differs from run to run; wrapped lines are one."""
    for pattern, stands in SHOWN_AS:
        text = re.sub(pattern, stands, re.sub(r"\n {10,}", " ", text))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_the_transcripts_of_windows_are_what_the_commands_say(home: Any) -> None:
    """Against the servers that the README names, which were started a moment ago."""
    with (
        FaultServer(KeyKeeper(), face="vllm", models=["qwen3-coder"], window=65_536) as gpu,
        FaultServer(
            KeyKeeper(), face="ollama", models=["qwen3:14b"], window=4_096, overflow="drop_oldest"
        ) as desk,
    ):
        home.configure(
            {
                "chains": {
                    "night": [{"model": "gpu-box/qwen3-coder", "window": 131_072}, {"model": "desk/qwen3:14b"}]
                },
                "providers": {
                    "gpu-box": {"card": "vllm", "base_url": gpu.v1},
                    "desk": {"card": "openai-compatible", "base_url": desk.v1},
                },
            }
        )
        transcripts = [
            text for text in blocks("console") if text.startswith("$ agentx windows") and "acme/" not in text
        ]
        assert len(transcripts) == 2
        for transcript in transcripts:
            command, _, shown = transcript.partition("\n")
            done = home.run(*command.removeprefix("$ agentx ").split())
            assert done.code == 0, done.err
            said = as_shown(done.err + done.out)
            for line in as_shown(shown):
                assert any(one.startswith(line.removesuffix("...").strip()) for one in said), line


def test_the_library_example_of_the_readme_runs(home: Any) -> None:
    (example,) = [text for text in blocks("python") if "agentx.windows" in text]
    with FaultServer(face="ollama", models=["qwen3:14b"], window=8_192, loaded=True) as server:
        done = subprocess.run(
            [sys.executable, "-c", example],
            env=home.environ | {"OLLAMA_HOST": server.url},
            cwd=home.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "8192 served GET /api/ps models[].context_length\n"


def test_the_context_in_the_readme_runs() -> None:
    (example,) = [text for text in blocks("python") if "agentx.context" in text]
    assert example.count("\n") <= 15
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"82 → \d+ messages, \d+ tokens, by \('\w+',.*\)\n\(\) day 0: ok\n", done.stdout), (
        done.stdout
    )


def test_the_chain_in_the_readme_runs(home: Any) -> None:
    """Against the server that it starts: the cut stream is asked for once more, then the second answers."""
    (example,) = [text for text in blocks("python") if "agentx.chain" in text]
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=home.environ,
        cwd=home.workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *told, said = done.stdout.splitlines()
    assert said == "second Hello. 2"
    assert [line.partition("(")[0] for line in told] == ["LinkFailed", "LinkFailed", "LinkSwitched"]


def test_the_faults_in_the_readme_are_those_that_doctor_tries() -> None:
    """Each with its sentence and its number of tries; and as many as there are (that they are survived has its own
    test)."""
    (shown,) = [text for text in blocks("console") if "doctor --fault" in text]
    rows = [line.split(maxsplit=5) for line in shown.splitlines() if line.startswith("ok ")]
    assert rows
    for _, name, asked, served_by, _, says in rows:
        assert (int(asked), served_by, says) == (1, "second", NAMED[name].says)
    tried = sum(not named.harmless for named in NAMED.values())
    assert f"survived {tried} of {tried} faults in " in shown
