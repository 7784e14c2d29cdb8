"""Who rests until when, and why: one small SQLite file, shared by all jobs of this machine and all restarts.

Times are absolute. A file that cannot be used never stops a job: health is then kept in memory, and said once.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.config.links import Link
from agentx.errors import ErrorClass
from agentx.events import Event, Warned, utc

FIRST_REST, LONGEST_REST = 5.0, 900.0
QUOTA_REST = 3600.0
OUT_SECONDS = 3600.0
OUT_SECONDS_SELF_HOSTED = 300.0
"""A model that one's own server does not have is often there a minute later."""

SCHEMA = """
create table if not exists rests(
    key text primary key, until real not null, since real not null, class text not null, message text not null,
    failures integer not null, fingerprint text);
create table if not exists meta(key text primary key, value text not null);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A link that is not asked until `until` (epoch seconds). `out`: until the configuration or its key changes
    (or, in case nobody tells, until then). `failures` is how often it failed in a row."""

    until: float
    since: float
    error_class: ErrorClass
    message: str
    failures: int
    out: bool = False

    def why(self) -> str:
        """One line for people."""
        if self.out:
            return f"out: {self.error_class}: {self.message}"
        return f"rests until {utc(self.until)}: {self.error_class}: {self.message}"


def rest_seconds(error_class: ErrorClass, failures: int) -> float:
    """How long to rest where nobody said: 5 s doubling to 15 min with each failure in a row; a quota one hour."""
    if error_class == "quota":
        return QUOTA_REST
    return min(LONGEST_REST, FIRST_REST * 2.0 ** min(failures, 20))


class Health:
    """What is known of links, by exact endpoint, model and key variable."""

    def __init__(
        self,
        file: Path | None,
        *,
        environ: Mapping[str, str],
        now: Callable[[], float] = time.time,
        tell: Callable[[Event], object] | None = None,
    ) -> None:
        """*file* None keeps it in memory. *tell* hears a warning when the file cannot be used."""
        self.file = file
        self._environ = environ
        self._now = now
        self._tell = tell
        self._db = self._open(file)
        self._salt = self._read_salt()

    def rest(self, link: Link, until: float | None, error_class: ErrorClass, message: str) -> Rest:
        """Let *link* rest until *until*, or as long as its failures in a row say where that is None.

        A stated time that is shorter than the back-off does not let a link that keeps failing be hammered.
        A failure while it rests already (of another job) does not count again.
        """
        now, old = self._now(), self._row(link)
        resting = old is not None and old.until > now
        before = 0 if old is None else old.failures - resting
        if until is None:
            until = now + rest_seconds(error_class, before)
        elif before > 0:
            until = max(until, now + rest_seconds("rate_limit", before - 1))
        if resting and old is not None and not old.out:
            until = max(until, old.until)
        new = Rest(until=until, since=now, error_class=error_class, message=message, failures=before + 1)
        self._write(link, new)
        return new

    def out(self, link: Link, error_class: ErrorClass, message: str) -> Rest:
        """Leave *link* alone until its key or the configuration changes, at most for an hour."""
        now, old = self._now(), self._row(link)
        self_hosted = error_class == "not_found" and link.provider.self_hosted
        seconds = OUT_SECONDS_SELF_HOSTED if self_hosted else OUT_SECONDS
        failures = 1 if old is None else old.failures + 1
        new = Rest(
            until=now + seconds, since=now, error_class=error_class, message=message, failures=failures, out=True
        )
        self._write(link, new)
        return new

    def resting(self, link: Link) -> Rest | None:
        """Why *link* is not asked now; None when it may be."""
        row = self._row(link)
        return None if row is None or row.until <= self._now() else row

    def failures(self, link: Link) -> int:
        """How often *link* failed in a row, its last rest over or not."""
        row = self._row(link)
        return 0 if row is None else row.failures

    def succeeded(self, link: Link) -> None:
        """*link* answered: all is forgotten."""
        if self._row(link) is not None:
            self.forget(link)

    def forget(self, link: Link) -> None:
        """Let *link* be asked again at once, with a clean record."""
        self._ask("delete from rests where key = ?", (_key(link),), write=True)

    def close(self) -> None:
        self._db.close()

    def _row(self, link: Link) -> Rest | None:
        rows = self._ask(
            "select until, since, class, message, failures, fingerprint from rests where key = ?", (_key(link),)
        )
        if not rows:
            return None
        until, since, error_class, message, failures, fingerprint = rows[0]
        if fingerprint is not None and fingerprint != self._fingerprint(link):
            return None
        return Rest(
            until=until,
            since=since,
            error_class=error_class,
            message=message,
            failures=failures,
            out=fingerprint is not None,
        )

    def _write(self, link: Link, rest: Rest) -> None:
        self._ask(
            "insert or replace into rests values (?, ?, ?, ?, ?, ?, ?)",
            (
                _key(link),
                rest.until,
                rest.since,
                rest.error_class,
                rest.message,
                rest.failures,
                self._fingerprint(link) if rest.out else None,
            ),
            write=True,
        )

    def _fingerprint(self, link: Link) -> str:
        """Tells whether the key is still the same one; the key cannot be told from it."""
        value = self._environ.get(link.key_variable or "", "")
        return hashlib.sha256(f"{self._salt}{value}".encode()).hexdigest()[:16]

    def _read_salt(self) -> str:
        self._ask("insert or ignore into meta values ('salt', ?)", (os.urandom(16).hex(),), write=True)
        return str(self._ask("select value from meta where key = 'salt'")[0][0])

    def _open(self, file: Path | None) -> sqlite3.Connection:
        if file is None:
            return _memory()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(file, timeout=30, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            return self._in_memory(error)
        try:
            file.chmod(0o600)
            db.execute("pragma journal_mode=wal")
            db.execute("pragma synchronous=normal")
            db.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            db.close()
            return self._in_memory(error)
        return db

    def _in_memory(self, error: Exception) -> sqlite3.Connection:
        if self._tell is not None:
            self._tell(
                Warned(
                    message=f"{self.file}: cannot be used, rests are kept in memory only: {error}",
                    hint="move the file away, or check the folder's permissions and space",
                )
            )
        return _memory()

    def _ask(self, sql: str, values: Sequence[Any] = (), *, write: bool = False) -> list[tuple[Any, ...]]:
        """Rows of *sql*; when the file fails, memory takes over for the rest of this process."""
        try:
            return self._run(sql, values, write)
        except sqlite3.Error as error:
            self._db.close()
            self._db = self._in_memory(error)
            return self._run(sql, values, write)

    def _run(self, sql: str, values: Sequence[Any], write: bool) -> list[tuple[Any, ...]]:
        if not write:
            return self._db.execute(sql, values).fetchall()
        self._db.execute("begin immediate")
        try:
            rows = self._db.execute(sql, values).fetchall()
        except sqlite3.Error:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")
        return rows


def _memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(SCHEMA)
    return db


def _key(link: Link) -> str:
    return f"{link.identity} {link.key_variable or '-'}"
