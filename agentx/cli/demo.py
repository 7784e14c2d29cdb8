"""`agentx demo`: a night in fast motion, on real sockets, with a job run through the program's own front door."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from agentx.cli.live import Teller
from agentx.cli.output import answer, answer_json, tell
from agentx.cli.session import Session
from agentx.errors import StateError
from agentx.events import (
    Compacted,
    Event,
    JobEnded,
    LinkFailed,
    LinkSelected,
    LinkSwitched,
    Truncated,
    Waiting,
    WindowLearned,
    from_fields,
)
from agentx.testing.brain import NoteReader
from agentx.testing.conversations import missing, note_task, twelve_notes
from agentx.testing.faults import Close, Fault, always, rate_limited
from agentx.testing.server import FaultServer

KEY_VARIABLE, KEY = "AGENT_DEMO_KEY", "demo-key"
CLAIMED, KEPT, HEALTHY = 131_072, 4_096, 32_768
LAST_OF_DESK = "notes/note-10.txt"
"""When the second server is sent this, it dies, as laptops do when the lid is closed."""
TOLD = (LinkFailed, LinkSelected, LinkSwitched, Truncated, WindowLearned, Compacted, Waiting)

CONFIG = """\
# Made by `agentx demo`: three servers on this machine, in the order in which they are preferred.
default_chain: night
chains:
  night:
    - model: cloud/big
    - model: desk/qwen3:14b
    - model: box/qwen3
providers:
  cloud: {{card: openai-compatible, base_url: "{cloud}", api_key_env: {key}}}
  desk: {{card: openai-compatible, base_url: "{desk}"}}
  box: {{card: llamacpp, base_url: "{box}"}}
limits: {{turns: 60, hours: 0.1}}
"""

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True, slots=True)
class Night:
    """The folder of the demo, its servers and what was planted."""

    folder: Path
    servers: Mapping[str, FaultServer]
    codes: Sequence[str]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"


@dataclass
class Told:
    """What the job said of itself, event by event."""

    job: str = ""
    events: list[Event] = field(default_factory=list[Event])
    exit: int = 0
    errors: str = ""
    seconds: float = 0.0

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended(self) -> JobEnded | None:
        return next(iter(self.of(JobEnded)), None)


@click.command()
@click.option("--real", is_flag=True, help="With a small real model on this machine instead of scripted ones.")
@click.option(
    "--best", is_flag=True, help="Real where this machine can run the model (it is got first), else scripted."
)
@click.option("--json", "as_json", is_flag=True, help="The whole outcome as one JSON document.")
@click.pass_obj
def demo(session: Session, *, real: bool, best: bool, as_json: bool) -> int:
    """Show a night in fast motion, on three model servers of this machine.

    The first one is rate-limited. The second claims a window of 131,072 tokens, keeps 4,096, forgets in silence,
    and dies later. The third is well. A dozen notes have to be read, with a code planted in each; the answer
    needs all of them. The models are scripted and know only what they are sent; all the rest is real.
    """
    if best:
        from agentx.cli.demo_real import why_not

        reason = why_not(session)
        real = reason is None
        tell(
            "with a real model" if real else f"with scripted models, since the real one cannot run here: {reason}"
        )
    if real:
        from agentx.cli.demo_real import run_real

        return run_real(session, as_json)
    with night() as scene:
        if not as_json:
            tell("a night in fast motion: three servers, scripted models that know only what they are sent")
        told = run(session, scene, quiet=as_json)
        asked = {name: len(server.chats) for name, server in scene.servers.items()}
    return _close(scene, told, asked, as_json)


@contextmanager
def night() -> Generator[Night]:
    """The servers, running; the notes and the configuration, written. The folder stays."""
    folder = Path(tempfile.mkdtemp(prefix="agentx-demo-"))
    codes = twelve_notes(folder / "work")
    with ExitStack() as stack:
        servers = {name: stack.enter_context(server) for name, server in _servers().items()}
        addresses = {name: server.v1 for name, server in servers.items()}
        config = folder / "home" / "config" / "agentx.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG.format(key=KEY_VARIABLE, **addresses), encoding="utf-8")
        yield Night(folder, servers, codes)


def _servers() -> dict[str, FaultServer]:
    made = {
        "cloud": FaultServer(
            NoteReader(), models=["big"], window=200_000, key=KEY, schedule=always(rate_limited(3_600))
        ),
        "desk": FaultServer(
            NoteReader(),
            face="ollama",
            models=["qwen3:14b"],
            window=KEPT,
            claims=CLAIMED,
            loaded=True,
            overflow="drop_oldest",
        ),
        "box": FaultServer(NoteReader(), face="llamacpp", models=["qwen3"], window=HEALTHY),
    }
    desk = made["desk"]

    def lid(_number: int) -> Fault | None:
        return Close() if any(LAST_OF_DESK in json.dumps(seen.body) for seen in desk.chats) else None

    desk.schedule = lid
    return made


def run(session: Session, scene: Night, *, quiet: bool) -> Told:
    """The job, run by `agentx run --json` in a process of its own; the story on stderr as it happens."""
    command = [sys.executable, "-m", "agentx", "-C", str(scene.work), "run", "--json", note_task()]
    kept = {name: value for name, value in session.environ.items() if not name.startswith("AGENTX_")}
    environ = kept | {"AGENTX_HOME": str(scene.home), KEY_VARIABLE: KEY}
    started = time.monotonic()
    said = scene.folder / "stderr.txt"
    with (
        said.open("w") as errors,
        subprocess.Popen(
            command,
            cwd=session.cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        told = _listen(process, quiet)
    told.exit, told.seconds = process.returncode, time.monotonic() - started
    told.errors = told.errors or said.read_text().strip()
    return told


def _listen(process: subprocess.Popen[str], quiet: bool) -> Told:
    """Every event of *process*, to its end."""
    told, teller = Told(), Teller()
    assert process.stdout is not None
    for text in process.stdout:
        data: dict[str, Any] = json.loads(text)
        if "type" not in data:  # an error before the job began
            told.errors = str(data["error"]["message"])
            continue
        event = from_fields(data["type"], data)
        told.job = data["job"]
        told.events.append(event)
        line = teller.line(event)
        if line and isinstance(event, TOLD) and not quiet:
            tell(line)
    return told


def _close(scene: Night, told: Told, asked: Mapping[str, int], as_json: bool) -> int:
    """Say how it ended. Raises StateError when the job said nothing at all."""
    ended = told.ended
    if ended is None:
        raise StateError(
            f"the demo's job did not end: {told.errors or 'it said nothing'}", hint=f"see {scene.folder}"
        )
    lost = missing(scene.codes, ended.answer or "")
    code = told.exit or (1 if lost else 0)
    if as_json:
        answer_json(_outcome(scene, told, ended, asked, code))
        return code
    learned = ", ".join(f"{event.link} {event.was or 0:,} → {event.value:,}" for event in told.of(WindowLearned))
    shrunk = sum(event.effective for event in told.of(Compacted))
    requests = ", ".join(f"{name} {count}" for name, count in asked.items())
    tell(
        f"{ended.ending}: {len(scene.codes) - len(lost)} of {len(scene.codes)} codes in {told.seconds:.1f} s · "
        f"switches: {len(told.of(LinkSwitched))} · windows learned: {learned or 'none'} · compactions: {shrunk} · "
        f"requests: {requests}"
    )
    tell("the models were scripted; the sockets, the windows, the job and its journal were real")
    tell(
        f"look closer: `AGENTX_HOME={scene.home} agentx logs {told.job}`; with a real model: `agentx demo --real`"
    )
    if ended.answer:
        answer(ended.answer)
    return code


def _outcome(scene: Night, told: Told, ended: JobEnded, asked: Mapping[str, int], code: int) -> dict[str, Any]:
    def plain(kind: type[Event]) -> list[dict[str, Any]]:
        return [event.fields() for event in told.of(kind)]

    lost = missing(scene.codes, ended.answer or "")
    return {
        "scripted": True,
        "ending": ended.ending,
        "exit": code,
        "answer": ended.answer,
        "codes": {"planted": list(scene.codes), "missing": lost},
        "seconds": round(told.seconds, 1),
        "job": told.job,
        "folder": str(scene.folder),
        "requests": dict(asked),
        "links": plain(LinkSelected),
        "switches": plain(LinkSwitched),
        "windows_learned": plain(WindowLearned),
        "truncated": plain(Truncated),
        "compactions": plain(Compacted),
    }
