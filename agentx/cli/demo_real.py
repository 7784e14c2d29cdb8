"""`agentx demo --real`: a job that a 0.5B model does reliably, with real tool calls, over two real windows."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agentx.cli.live import Teller
from agentx.cli.local import bar
from agentx.cli.output import answer, answer_json, tell
from agentx.cli.session import Session
from agentx.errors import AgentxError, NoUsableModel, RequestFailed
from agentx.events import from_fields
from agentx.wires.local_find import find_server, server_folder
from agentx.wires.local_models import MODELS, SERVER
from agentx.wires.local_pull import pull_model, pull_server

SMALL, LARGE = 2_304, 4_096
FIRST = ("gate", "pier", "tower", "mill", "dock")
LATER = ("lamp", "weir")
STEP = "this command with the shell tool: sh {name}.sh"
TASK = (
    f"Collect the codes of the harbour's stations. Run {STEP.format(name=FIRST[0])}\n"
    "Then say which code it printed."
)
CONFIG = """\
# Made by `agentx demo --real`: one small model behind two windows.
default_chain: night
chains:
  night:
    - {{model: small/{model}, window: {small}, temperature: 0, max_tokens: 200}}
    - {{model: large/{model}, window: {large}, temperature: 0, max_tokens: 200}}
providers:
  small: {{card: local, options: {options}}}
  large: {{card: local, options: {options}}}
tools: {{only: [shell]}}
limits: {{turns: 60, hours: 0.5}}
"""


@dataclass(frozen=True, slots=True)
class Means:
    """The program and the model file that the demo runs on."""

    server: Path
    model: Path


def means(session: Session) -> Means:
    """Get the model and the server if they are not here, and see that this processor can run it.

    Raises AgentxError that says why it cannot be done on this machine.
    """
    folders, model = session.paths(), MODELS[0]
    try:
        server = find_server({}, folders, session.environ)
    except RequestFailed:
        with bar("llama-server") as progress:
            server = pull_server(SERVER, server_folder(folders), progress=progress)
    tried = subprocess.run(
        [server, "--version"], capture_output=True, env={"LD_LIBRARY_PATH": str(server.parent)}, check=False
    )
    if tried.returncode != 0:
        raise NoUsableModel(f"{server}: does not run on this machine (exit code {tried.returncode})")
    with bar(model.title) as progress, httpx.Client() as client:
        file = pull_model(model, folders.models, client=client, progress=progress, tell=tell)
    return Means(server, file)


def why_not(session: Session) -> str | None:
    """Why this machine cannot run the real demo; None when it can. Gets what is missing."""
    try:
        means(session)
    except AgentxError as error:
        return error.message
    return None


def run_real(session: Session, as_json: bool) -> int:
    """Run the job in a folder of its own; the exit code is the job's, or 1 when a station was not visited."""
    found = means(session)
    folder = Path(tempfile.mkdtemp(prefix="agentx-demo-"))
    write_scene(folder, found)
    if not as_json:
        tell(f"a real model ({MODELS[0].title}) behind two llama.cpp windows of {SMALL:,} and {LARGE:,} tokens")
    begun = time.monotonic()
    begin = STEP.format(name=FIRST[0])
    task = f"Collect the codes of the harbour's stations. Run {begin}\nThen say which code it printed."
    told = Told(as_json)
    code = told.run(session, folder, "run", "--until", "sh check.sh", task)
    if code == 0:  # the same job goes on with the larger window: everything that happened is shown to it
        only_large = (
            f"chains.night=[{{model: large/{MODELS[0].name}, window: {LARGE}, temperature: 0, max_tokens: 200}}]"
        )
        (folder / "work" / "first").unlink()
        text = "There are more stations. Now run " + STEP.format(name=LATER[0])
        code = told.run(session, folder, "-c", only_large, "resume", told.job, text)
    missing = [name for name in (*FIRST, *LATER) if not (folder / "work" / f"{name}.read").exists()]
    return told.close(folder, code or (1 if missing else 0), missing, time.monotonic() - begun)


def write_scene(folder: Path, found: Means) -> None:
    """The stations, and a configuration with one model behind two windows."""
    write_stations(folder / "work")
    options = json.dumps({"server": str(found.server), "model_file": str(found.model)})
    config = folder / "home" / "config" / "agentx.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG.format(model=MODELS[0].name, small=SMALL, large=LARGE, options=options))


def write_stations(work: Path, lines: int = 22) -> None:
    """Make *work*: a small program for each station, which prints a log of *lines* lines with a code in it and
    leaves a mark, and `check.sh`, which names the next station to visit. While `first` is there, only the FIRST
    ones count."""
    dice = random.Random(4)
    work.mkdir(exist_ok=True)
    for name in (*FIRST, *LATER):
        log = [f"{6 + n // 2:02}:{30 * (n % 2):02} water {dice.randrange(1, 4)}.{n:02} m" for n in range(lines)]
        code = f"{dice.choice(('HERON', 'MAPLE', 'ORBIT'))}-{dice.randrange(10, 99)}"
        log.insert(lines // 2, f"The code of the {name} is {code}.")
        shown = "\n".join(log)
        (work / f"{name}.sh").write_text(f"cat <<'END'\n{shown}\nEND\ntouch {name}.read\n")
    (work / "first").touch()
    (work / "check.sh").write_text(
        f"names='{' '.join(FIRST)}'\ntest -f first || names='{' '.join((*FIRST, *LATER))}'\n"
        "for name in $names; do\n  test -f $name.read || {\n"
        f'    echo "Now run {STEP.format(name="$name")}"\n    exit 1\n  }}\ndone\n'
    )


class Told:
    """What the job said of itself; the story is told on stderr as it happens."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.job = ""
        self.events: list[dict[str, Any]] = []
        self.teller = Teller()

    def run(self, session: Session, folder: Path, *arguments: str) -> int:
        """One `agentx` process to its end; its exit code."""
        before = [word for word in arguments[:2] if arguments[0] == "-c"]
        command, *rest = arguments[len(before) :]
        process = subprocess.Popen(
            [sys.executable, "-m", "agentx", "-C", str(folder / "work"), *before, command, "--json", *rest],
            stdout=subprocess.PIPE,
            text=True,
            env={**session.environ, "AGENTX_HOME": str(folder / "home")},
        )
        assert process.stdout is not None
        for line in process.stdout:
            self._hear(json.loads(line))
        return process.wait()

    def _hear(self, data: dict[str, Any]) -> None:
        self.job = data.get("job", self.job)
        self.events.append(data)
        if "type" not in data:
            tell(f"error: {data.get('error', data)}")
        elif not self.as_json and (line := self.teller.line(from_fields(data["type"], data))):
            tell(line)

    def close(self, folder: Path, code: int, missing: list[str], seconds: float) -> int:
        """Say how it ended."""
        counts = {kind: sum(e.get("type") == kind for e in self.events) for kind in ("tool.ended", "compaction")}
        windows = list(dict.fromkeys(e["window"] for e in self.events if e.get("type") == "link.selected"))
        outcome = {
            "exit": code,
            "missing": missing,
            "windows": windows,
            "tool_calls": counts["tool.ended"],
            "compactions": counts["compaction"],
            "seconds": round(seconds, 1),
            "answer": next((e["answer"] for e in reversed(self.events) if e.get("type") == "job.ended"), None),
            "scripted": False,
            "folder": str(folder),
        }
        if self.as_json:
            answer_json(outcome)
            return code
        tell(
            f"{'done' if code == 0 else 'not done'}: {counts['tool.ended']} real tool calls,"
            f" {counts['compaction']} compactions, windows {windows}, {seconds:.0f} s"
        )
        tell(f"look closer: `AGENTX_HOME={folder / 'home'} agentx logs {self.job}`")
        if outcome["answer"]:
            answer(str(outcome["answer"]))
        return code
