"""Jobs that wait: what a person mends meanwhile lets them go on, and a network that comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentx.testing.brain import Brain, NoteReader, Script
from agentx.testing.conversations import note_task
from agentx.testing.faults import always, rate_limited
from agentx.testing.server import FaultServer

if TYPE_CHECKING:
    from tests.chaos.conftest import Night, Ran


def once(night: Night, work: Callable[[], object]) -> None:
    """Do *work* when the job sleeps for the first time."""
    todo = [work]

    def asleep() -> None:
        if todo:
            todo.pop()()

    night.clock.asleep = asleep


@contextmanager
def opened_after(seconds: float, night: Night, brain: Brain, *ports: int) -> Generator[list[FaultServer]]:
    """While it is entered, servers open *ports* as soon as *seconds* of the night are slept."""
    opened: list[FaultServer] = []

    def asleep() -> None:
        if night.clock.skipped >= seconds and not opened:
            opened.extend(FaultServer(brain, port=port).__enter__() for port in ports)

    night.clock.asleep = asleep
    try:
        yield opened
    finally:
        for server in opened:
            server.__exit__(None, None, None)


def woken(ran: Ran) -> list[str]:
    return [event["reason"] for event in ran.of("woken")]


def test_a_changed_agentx_yaml_gives_a_waiting_job_its_new_links(night: Night) -> None:
    with FaultServer(schedule=always(rate_limited(7_200))) as busy, FaultServer(Script(["done"])) as other:
        once(night, lambda: night.configure([busy, other], {}))
        ran = night.run([busy], "go")
    assert (ran.ending.name, woken(ran)) == ("done", ["agentx.yaml was changed"]), ran.story
    assert (len(busy.chats), ran.of("reply")[0]["link"]) == (1, "s2/scripted")
    assert ran.waited <= 31


def test_a_key_that_is_named_anew_is_used_and_hidden(night: Night) -> None:
    """The first link rests, the second has a key that is refused: the user names another one."""
    good = "sk-good-5b4a3c2d1e0f"
    night.environ |= {"OLD_KEY": "sk-old-1234567890abc", "NEW_KEY": good}
    says_the_key = Script([f"the key is {good}"])
    with FaultServer(schedule=always(rate_limited(7_200))) as busy, FaultServer(says_the_key, key=good) as locked:

        def links(key: str) -> list[FaultServer | dict[str, object]]:
            return [busy, {"server": locked, "provider": {"api_key_env": key}}]

        once(night, lambda: night.configure(links("NEW_KEY"), {}))
        ran = night.run(links("OLD_KEY"), "go")
    assert (ran.ending.name, ran.of("reply")[0]["link"]) == ("done", "s2/scripted"), ran.story
    assert good not in ran.answer
    assert good not in ran.story
    assert good.encode() not in (ran.job.folder / "journal.db").read_bytes()


def test_a_change_that_is_wrong_is_said_and_changes_nothing(night: Night) -> None:
    with FaultServer(Script(["done"]), schedule=lambda n: rate_limited(600) if n == 1 else None) as server:
        once(night, lambda: night.paths.user_file.write_text("chains: ["))
        ran = night.run([server], "go")
    assert (ran.ending.name, woken(ran)) == ("done", []), ran.story
    assert any("agentx.yaml does not count" in event["message"] for event in ran.of("warning"))
    assert ran.waited >= 600


def test_agentx_chain_reset_in_another_process_ends_a_wait(night: Night) -> None:
    def reset() -> None:
        home = {"AGENTX_HOME": str(night.folder / "home"), "PATH": os.environ["PATH"]}
        arguments = ["chain", "--reset", "s1/scripted"]
        subprocess.run([sys.executable, "-m", "agentx", *arguments], env=home, check=True, cwd=night.workspace)

    with FaultServer(Script(["done"]), schedule=lambda n: rate_limited(7_200) if n == 1 else None) as server:
        once(night, reset)
        ran = night.run([server], "go")
    assert (ran.ending.name, woken(ran)) == ("done", ["s1/scripted does not rest any more"]), ran.story
    assert ran.waited <= 31


def test_a_job_waits_while_all_ports_are_closed_and_goes_on_when_one_opens(night: Night) -> None:
    """Ninety seconds. Nothing is asked meanwhile, and nobody is charged."""
    codes = night.notes(3, words=60)
    with FaultServer(Script(["hello"])) as one, FaultServer() as two:
        begun = night.run([one, two], "say hello")
    with opened_after(90, night, NoteReader(), one.port, two.port):
        ran = night.run([one, two], job=begun.job, said=note_task(3))
    assert ran.ending.name == "done", ran.story
    assert [code for code in codes if code not in ran.answer] == []
    assert woken(ran) == ["s1/scripted can be connected to"]
    kinds = [event["type"] for event in ran.events]
    offline = kinds[kinds.index("waiting") : kinds.index("woken")]
    assert set(offline) == {"waiting"}, ran.story
    assert 90 <= ran.waited <= 90 + 61
    assert night.rests() == []


def test_a_job_that_nobody_watches_waits_for_its_first_server_too(night: Night) -> None:
    with FaultServer() as gone:
        pass
    watched = night.run([gone], "go")
    assert (watched.ending.name, watched.waited < 60) == ("no_usable_model", True), watched.story
    with opened_after(night.clock.skipped + 600, night, Script(["done"]), gone.port) as opened:
        ran = night.run([gone], "go", watched=False)
    assert (ran.ending.name, [len(server.chats) for server in opened]) == ("done", [1]), ran.story
