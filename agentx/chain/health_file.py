"""The SQLite file under the health of links: read, written at once, and replaced by memory when it breaks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agentx.events import Event, Warned

SCHEMA = """
create table if not exists rests(
    key text primary key, until real not null, since real not null, class text not null, message text not null,
    failures integer not null, fingerprint text);
create table if not exists taught(key text primary key, changes text not null, since real not null);
create table if not exists meta(key text primary key, value text not null);
"""
Found = TypeVar("Found")


class HealthFile:
    """Rows by SQL. A file that cannot be used is said once to *tell*; memory then serves this process."""

    def __init__(self, file: Path | None, tell: Callable[[Event], object] | None) -> None:
        """*file* None keeps everything in memory."""
        self.file = file
        self._tell = tell
        self._db = self._open(file)

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of *sql*. What writes stands in `at_once`."""
        if self._db.in_transaction:
            return self._db.execute(sql, values).fetchall()
        return self._or_in_memory(lambda: self._db.execute(sql, values).fetchall())

    def at_once(self, work: Callable[[], Found]) -> Found:
        """What *work* gives, while nobody else writes: what it reads is still true when it writes."""

        def whole() -> Found:
            self._db.execute("begin immediate")
            try:
                found = work()
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise
            self._db.execute("commit")
            return found

        return self._or_in_memory(whole)

    def close(self) -> None:
        self._db.close()

    def _or_in_memory(self, work: Callable[[], Found]) -> Found:
        try:
            return work()
        except sqlite3.Error as error:
            self._db.close()
            self._db = self._in_memory(error)
            return work()

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


def _memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(SCHEMA)
    return db
