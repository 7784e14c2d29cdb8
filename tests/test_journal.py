"""The journal: append-only, gapless, readable by others while it is written, honest when the disk is full."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.errors import StateError
from agentx.events import Nudged, Unknown, UserMessage, Warned, from_fields
from agentx.journal import Entry, Journal, storable

WRITER = """
import sys
from pathlib import Path
from agentx.events import Warned
from agentx.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(1_000_000):
    entry = journal.append(Warned(message="m" * 500), {"number": number}, durable=number % 50 == 0)
    sys.stdout.write(f"{entry.seq}\\n")
    sys.stdout.flush()
"""


def test_entries_are_numbered_without_gaps_and_come_back_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", now=lambda: 1_700_000_000.0)
    first = journal.append(Warned(message="one"), {"message": {"role": "user", "text": "é"}})
    second = journal.append(Nudged(text="two"))
    again = Journal(tmp_path / "journal.db", read_only=True)
    assert again.read() == [first, second]
    assert [entry.seq for entry in again.read()] == [1, 2]
    assert again.read(types=("nudge",)) == [second]
    assert again.last("warning") == first
    assert first.line("j-1") == (
        '{"seq": 1, "time": "2023-11-14T22:13:20.000Z", "job": "j-1", "type": "warning", '
        '"message": "one", "hint": null}'
    )


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(60)]
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        acknowledged = max(int(line) for line in lines if line.endswith("\n") and line.strip())
        seqs = [entry.seq for entry in Journal(file, read_only=True).read()]
        assert seqs == list(range(1, len(seqs) + 1))
        assert seqs[-1] >= acknowledged


def test_a_full_disk_is_a_clear_error_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    journal = Journal(file)
    journal.append(Warned(message="kept"))
    journal.query("pragma max_page_count = 20")  # sqlite answers just as it does when the disk is full
    with pytest.raises(StateError, match="full") as caught:
        for _ in range(10_000):
            journal.append(Warned(message="x" * 4_000))
    assert caught.value.hint == "free some space, then go on with `agentx resume`"
    read = Journal(file, read_only=True).read()
    assert read[0].event == Warned(message="kept")
    assert sqlite3.connect(file).execute("pragma quick_check").fetchone() == ("ok",)


def test_letters_are_taken_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    Journal(tmp_path / "journal.db").post("message", "hello")
    (letter,) = journal.letters()
    journal.take(letter)
    assert (letter.kind, letter.text, journal.letters()) == ("message", "hello", [])


def test_a_missing_journal_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no journal"):
        Journal(tmp_path / "journal.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_events_of_a_newer_version_are_kept() -> None:
    newer = from_fields("moon.phase", {"phase": "full"})
    assert newer == Unknown(name="moon.phase", data={"phase": "full"})
    assert from_fields("warning", {"message": "m", "colour": "red"}) == Warned(message="m")


def test_the_journal_is_private(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", now=time.time)
    journal.append(Warned(message="m"))
    assert (tmp_path / "journal.db").stat().st_mode & 0o077 == 0


def test_what_is_hidden_is_hidden_on_disk_and_for_those_who_listen(tmp_path: Path) -> None:
    """But a person's own words stay as they were said."""
    journal = Journal(tmp_path / "journal.db")
    heard: list[Entry] = []
    journal.listen(heard.append)
    journal.hide(lambda text: text.replace("secret", "[redacted]"))
    entry = journal.append(Warned(message="a secret"), {"deep": [{"secret": ("secret", 1)}]})
    said = journal.append(UserMessage(text="my secret"), {"message": {"text": "my secret"}})
    assert entry.event == Warned(message="a [redacted]")
    assert entry.payload == {"deep": [{"[redacted]": ["[redacted]", 1]}]}
    assert said.event == UserMessage(text="my secret")
    assert Journal(tmp_path / "journal.db", read_only=True).read() == heard == [entry, said]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(categories=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(categories=None)), inner),
    )
)
def test_whatever_is_appended_every_reader_of_json_takes(value: Any) -> None:
    text = json.dumps(storable({"value": value}, str), ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode("utf-8")) == storable({"value": value}, str)


def test_a_journal_that_was_removed_is_not_written_in_secret(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append(Warned(message="m"), durable=True)
    (tmp_path / "journal.db").unlink()
    with pytest.raises(StateError, match="is gone"):
        journal.append(Warned(message="m"), durable=True)


@pytest.mark.parametrize("data", ["{", "{}", "[]", "null", ""])
def test_a_broken_entry_is_a_clear_error(tmp_path: Path, data: str) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append(Warned(message="m"))
    with sqlite3.connect(tmp_path / "journal.db") as database:
        database.execute("update entries set data = ?", (data,))
    database.close()
    with pytest.raises(StateError, match="entry 1 of the journal is broken"):
        journal.read()
