"""The append-only record of a job: one SQLite file, read by anybody, written by the job's process.

Rules for the file are those of measured crashes (WAL; `BEGIN IMMEDIATE`; 30 s of patience; FULL sync for what
must survive a power cut; a truncating checkpoint now and then; no read transaction held while following).
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agentx.errors import StateError
from agentx.events import Event, JobStarted, UserMessage, from_fields, line, name_of

Payload = Mapping[str, Any]

SCHEMA = """
create table if not exists entries(
    seq integer primary key, time real not null, type text not null, data text not null, payload text);
create index if not exists entries_by_type on entries(type, seq);
create table if not exists inbox(
    id integer primary key, time real not null, kind text not null, text text not null, taken integer);
create table if not exists meta(key text primary key, value text not null);
"""

TAKEN = 1
"""What marks a letter as taken; greater numbers are the entries that answer one (the first never does)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event with its place in the journal, and the payload that only the job itself needs."""

    seq: int
    time: float
    event: Event
    payload: Payload | None = None

    def line(self, job: str) -> str:
        return line(self.seq, self.time, job, self.event)


@dataclass(frozen=True, slots=True)
class Letter:
    """Something another process asks of the job: `kind` is `message`, `compact` or `stop`."""

    id: int
    kind: str
    text: str


class Journal:
    """Append, read, follow. `seq` starts at 1 and has no gaps.

    A writer raises StateError when the disk is full or the file cannot be written; what was appended before
    stays readable. Who reads gets StateError for what is broken.
    """

    def __init__(self, file: Path, *, now: Callable[[], float] = time.time, read_only: bool = False) -> None:
        self.file = file
        self._now = now
        self._hide: Callable[[str], str] = str
        self._listeners: list[Callable[[Entry], None]] = []
        with self._translated("open"):
            if read_only and not file.is_file():
                raise StateError(f"{file}: no journal")
            self._db = sqlite3.connect(file, timeout=30, isolation_level=None, check_same_thread=False)
            if not read_only:
                file.chmod(0o600)
                self._db.execute("pragma journal_mode=wal")
                self._db.execute("pragma journal_size_limit=16777216")
                self._db.executescript(SCHEMA)
            self._db.execute("pragma synchronous=normal")

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Call *listener* with every entry that this object appends, after it is on disk."""
        self._listeners.append(listener)

    def hide(self, hide: Callable[[str], str]) -> None:
        """Let every text pass through *hide* before it is written or told, but not a person's own words."""
        self._hide = hide

    def append(self, event: Event, payload: Payload | None = None, *, durable: bool = False) -> Entry:
        """Add one entry; it is given back as it was written. *durable* waits for the disk (for tools with side
        effects and for money)."""
        hide = str if isinstance(event, JobStarted | UserMessage) else self._hide
        said = event.fields()
        fields, payload = storable(said, hide), storable(payload, hide)
        if fields != said:
            event = from_fields(name_of(event), fields)
        data = json.dumps(fields, ensure_ascii=False)
        packed = None if payload is None else json.dumps(payload, ensure_ascii=False)
        now = self._now()
        if durable and not self.file.exists():  # sqlite would go on writing to a file that nobody can open again
            raise StateError(f"{self.file}: the journal is gone: somebody removed it while the job ran")
        with self._translated("write"):
            if durable:
                self._db.execute("pragma synchronous=full")
            try:
                row = self._db.execute(
                    "insert into entries(seq, time, type, data, payload)"
                    " values ((select coalesce(max(seq), 0) + 1 from entries), ?, ?, ?, ?) returning seq",
                    (now, name_of(event), data, packed),
                ).fetchone()
            finally:
                if durable:
                    self._db.execute("pragma synchronous=normal")
        entry = Entry(row[0], now, event, payload)
        for listener in self._listeners:
            listener(entry)
        return entry

    def read(self, after: int = 0, *, types: Sequence[str] = (), limit: int = -1) -> list[Entry]:
        """Entries with `seq` greater than *after*, oldest first; only of *types* when some are given."""
        wanted = f" and type in ({','.join('?' * len(types))})" if types else ""
        with self._translated("read"):
            rows = self._db.execute(
                f"select seq, time, type, data, payload from entries where seq > ?{wanted} order by seq limit ?",
                (after, *types, limit),
            ).fetchall()
        return [self._entry(row) for row in rows]

    def last(self, *types: str) -> Entry | None:
        """The newest entry of *types* (of any type when none is given)."""
        wanted = f" where type in ({','.join('?' * len(types))})" if types else ""
        with self._translated("read"):
            row = self._db.execute(
                f"select seq, time, type, data, payload from entries{wanted} order by seq desc limit 1", types
            ).fetchone()
        return None if row is None else self._entry(row)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a read-only question to the tables `entries`, `inbox` and `meta`."""
        with self._translated("read"):
            return self._db.execute(sql, parameters).fetchall()

    def post(self, kind: str, text: str = "") -> Letter:
        """Leave a letter for the job's process; any process may."""
        with self._translated("write"):
            row = self._db.execute(
                "insert into inbox(time, kind, text) values (?, ?, ?) returning id", (self._now(), kind, text)
            ).fetchone()
        return Letter(row[0], kind, text)

    def letters(self, *kinds: str) -> list[Letter]:
        """Letters of *kinds* that were not taken yet, oldest first."""
        wanted = f" and kind in ({','.join('?' * len(kinds))})" if kinds else ""
        with self._translated("read"):
            rows = self._db.execute(
                f"select id, kind, text from inbox where taken is null{wanted} order by id", kinds
            ).fetchall()
        return [Letter(*row) for row in rows]

    def take(self, letter: Letter, *, answer: int = TAKEN) -> None:
        """Mark *letter* as delivered; *answer* is the `seq` of the entry that tells what came of it."""
        with self._translated("write"):
            self._db.execute("update inbox set taken = ? where id = ?", (answer, letter.id))

    def answer(self, letter: Letter) -> Entry | None:
        """The entry that tells what came of *letter*; None while there is none."""
        rows = self.query("select taken from inbox where id = ? and taken > ?", (letter.id, TAKEN))
        return self.read(rows[0][0] - 1, limit=1)[0] if rows else None

    def meta(self, key: str) -> str | None:
        """A small fact about the job that is no event (its chain as data, its process)."""
        rows = self.query("select value from meta where key = ?", (key,))
        return rows[0][0] if rows else None

    def set_meta(self, key: str, value: str) -> None:
        with self._translated("write"):
            self._db.execute(
                "insert into meta values (?, ?) on conflict(key) do update set value = excluded.value",
                (key, value),
            )

    def shrink(self) -> None:
        """Fold the write-ahead log into the file; after a compaction and at the end."""
        with self._translated("write"):
            self._db.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _translated(self, what: str) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            hint = None
            if "full" in text:
                hint = "free some space, then go on with `agentx resume`"
            elif "disk I/O" in text:  # sqlite says this too when there is no room for the index of its log
                hint = f"the disk may be full: `df -h {self.file.parent}`"
            elif "readonly" in text or "unable to open" in text:
                hint = "check the folder's permissions, or choose another with `AGENTX_HOME=DIR`"
            raise StateError(f"{self.file}: cannot {what} the journal: {text}", hint=hint) from error
        except OSError as error:
            raise StateError(f"{self.file}: cannot {what} the journal: {error.strerror}") from error

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        seq, when, name, data, payload = row
        try:
            event = from_fields(name, json.loads(data))
            return Entry(int(seq), float(when), event, None if payload is None else dict(json.loads(payload)))
        except (ValueError, TypeError, AttributeError) as error:
            raise StateError(f"{self.file}: entry {seq} of the journal is broken: {error}") from error


def storable(value: Any, hide: Callable[[str], str]) -> Any:
    """*value* as JSON that every reader takes: no half characters, no NaN; its texts have gone through *hide*."""
    match value:
        case str():
            return hide(value.encode("utf-8", "replace").decode("utf-8"))
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {storable(key, hide): storable(item, hide) for key, item in items}
        case list() | tuple():
            return [storable(item, hide) for item in cast("Sequence[Any]", value)]
        case _:
            return value
