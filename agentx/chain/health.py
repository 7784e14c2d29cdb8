"""Who rests until when, and why: one small SQLite file, shared by all jobs of this machine and all restarts.

Times are absolute. A file that cannot be used never stops a job: health is then kept in memory, and said once.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agentx.chain.health_file import HealthFile
from agentx.chain.taught import Taught
from agentx.config.links import Link
from agentx.errors import ErrorClass
from agentx.events import Event, utc

FIRST_REST, LONGEST_REST = 5.0, 900.0
QUOTA_REST = 3600.0
LEASE_SECONDS = 60.0
"""How long others wait for the one that asks after a rest: it may be killed."""
OUT_SECONDS = 3600.0
OUT_SECONDS_SELF_HOSTED = 300.0
"""A model that one's own server does not have is often there a minute later."""
FADE_SECONDS = 3600.0
"""So long after a rest is over its failures are forgotten."""

Reach = Literal["link", "key", "address"]
"""Whom a rest holds for: one model, all models of an address with the same key, or all of an address."""
REACHES: tuple[Reach, ...] = ("link", "key", "address")


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
    reach: Reach = "link"

    def why(self) -> str:
        """One line for people."""
        if self.out:
            return f"out: {self.error_class}: {self.message}"
        return f"rests until {utc(self.until)}: {self.error_class}: {self.message}"


@dataclass(frozen=True, slots=True)
class Claim:
    """What was known of *link* (its identity) before we took it on us to ask it; `until` stands in the file."""

    link: str
    until: float
    before: Rest


def rest_seconds(error_class: ErrorClass, failures: int) -> float:
    """How long to rest where nobody said: 5 s doubling to 15 min with each failure in a row; a quota one hour."""
    if error_class == "quota":
        return QUOTA_REST
    return min(LONGEST_REST, FIRST_REST * 2.0 ** min(failures, 20))


SELECT = "select key, until, since, class, message, failures, fingerprint from rests"


class Health:
    """What is known of links, by exact endpoint, model and key: a new key has no past."""

    def __init__(
        self,
        file: Path | None,
        *,
        environ: Mapping[str, str],
        now: Callable[[], float] = time.time,
        tell: Callable[[Event], object] | None = None,
    ) -> None:
        """*file* None keeps it in memory. *tell* hears a warning when the file cannot be used."""
        self._environ = environ
        self._now = now
        self._file = HealthFile(file, tell)
        self.taught = Taught(self._file, now)
        self._claims: dict[str, Claim] = {}
        self._marks: dict[str, str] = {}
        self._salt = self._read_salt()

    def rest(
        self, link: Link, until: float | None, error_class: ErrorClass, message: str, reach: Reach = "link"
    ) -> Rest:
        """Let *link*, and all that it shares its *reach* with, rest until *until*, or as long as the failures in a
        row say where that is None.

        A stated time that is shorter than the back-off does not let a link that keeps failing be hammered.
        A failure while it rests already (of another job) does not count again, and the longer rest stays; so does
        what made the link go out.
        """

        def write() -> Rest:
            now = self._now()
            old = self._row(link, self._reach(link, reach), now)
            resting = old is not None and old.until > now
            if old is not None and resting and old.out:
                return old
            before = 0 if old is None else old.failures - resting
            new = Rest(
                until=_end(until, error_class, before, now),
                since=now,
                error_class=error_class,
                message=message,
                failures=before + 1,
                reach=self._reach(link, reach),
            )
            if old is not None and old.until > new.until:
                new = replace(old, since=now)
            return self._write(link, new)

        return self._file.at_once(write)

    def out(self, link: Link, error_class: ErrorClass, message: str, reach: Reach = "link") -> Rest:
        """Leave *link*, and all that it shares its *reach* with, alone until the key or the configuration changes,
        at most for an hour, or as long as it rests already."""
        self_hosted = error_class == "not_found" and link.provider.self_hosted
        seconds = OUT_SECONDS_SELF_HOSTED if self_hosted else OUT_SECONDS

        def write() -> Rest:
            now = self._now()
            old = self._row(link, self._reach(link, reach), now)
            new = Rest(
                until=max(now + seconds, old.until if old else 0.0),
                since=now,
                error_class=error_class,
                message=message,
                failures=1 if old is None else old.failures + 1,
                out=True,
                reach=self._reach(link, reach),
            )
            return self._write(link, new)

        return self._file.at_once(write)

    def resting(self, link: Link) -> Rest | None:
        """Why *link* is not asked now; None when it may be."""
        now = self._now()
        row = self._last(link, now)
        return None if row is None or row.until <= now else row

    def last(self, link: Link) -> Rest | None:
        """The rest of *link* that ends last, over or not; None when it is well, or failed long ago."""
        return self._last(link, self._now())

    def _last(self, link: Link, now: float) -> Rest | None:
        keys = [self._key(link, reach) for reach in REACHES]
        rows = self._file.ask(f"{SELECT} where key in (?, ?, ?) and until > ?", (*keys, now - FADE_SECONDS))
        found = [self._rest(row, REACHES[keys.index(row[0])]) for row in rows]
        return max(found, key=lambda rest: rest.until, default=None)

    def _row(self, link: Link, reach: Reach, now: float) -> Rest | None:
        rows = self._file.ask(
            f"{SELECT} where key = ? and until > ?", (self._key(link, reach), now - FADE_SECONDS)
        )
        return self._rest(rows[0], reach) if rows else None

    def _rest(self, row: tuple[Any, ...], reach: Reach) -> Rest:
        key, until, since, error_class, message, failures, fingerprint = row
        claim = self._claims.get(key)
        if claim is not None and until == claim.until:
            return claim.before
        return Rest(
            until=until,
            since=since,
            error_class=error_class,
            message=message,
            failures=failures,
            out=fingerprint is not None,
            reach=reach,
        )

    def claim(self, link: Link) -> bool:
        """Whether *link* may be asked by us: after a rest only one job does, and the others see it rest until that
        one knows more, a minute at most. What is claimed must be given to `release`."""

        def write() -> bool:
            now = self._now()
            old = self._last(link, now)
            if old is None or old.until > now:
                return old is None or old.out  # who asks what is out has been asked to
            key = self._key(link, old.reach)
            if key not in self._claims:
                taken = self._write(link, replace(old, until=now + LEASE_SECONDS))
                self._claims[key] = Claim(link.identity, taken.until, old)
            return True

        return self.last(link) is None or self._file.at_once(write)

    def release(self, link: Link) -> None:
        """Undo `claim` where nothing was learned of *link*."""
        undo = "update rests set until = ? where key = ? and until = ?"
        for key, claim in list(self._claims.items()):
            if claim.link == link.identity:
                del self._claims[key]
                values = (claim.before.until, key, claim.until)
                self._file.at_once(lambda values=values: self._file.ask(undo, values))

    def failures(self, link: Link) -> int:
        """How often *link* failed in a row, its last rest over or not."""
        row = self.last(link)
        return 0 if row is None else row.failures

    def succeeded(self, link: Link, sent: float) -> None:
        """*link* answered a request that was sent at *sent*: all that was known then of it, of its key and of its
        address is forgotten.

        What another job has learned since is newer than this answer.
        """
        row = self.last(link)
        if row is not None:
            keys = [self._key(link, reach) for reach in REACHES]
            self._file.at_once(
                lambda: self._file.ask("delete from rests where key in (?, ?, ?) and since < ?", (*keys, sent))
            )

    def take_back(self, link: Link, rest: Rest, before: Rest | None) -> None:
        """Make it as if *link* had not been given *rest*, unless another job has said more of it since."""

        def write() -> None:
            if self._row(link, rest.reach, self._now()) != rest:
                return
            self._file.ask("delete from rests where key = ?", (self._key(link, rest.reach),))
            if before is not None and before.reach == rest.reach:
                self._write(link, before)

        self._file.at_once(write)

    def forget(self, link: Link) -> None:
        """Let *link* be asked again at once, with a clean record of its own, its key and its address."""
        self.taught.forget(link)
        keys = [self._key(link, reach) for reach in REACHES]
        self._file.at_once(lambda: self._file.ask("delete from rests where key in (?, ?, ?)", keys))

    def close(self) -> None:
        self._file.close()

    def _write(self, link: Link, rest: Rest) -> Rest:
        key = self._key(link, rest.reach)
        self._claims.pop(key, None)
        fingerprint = self._fingerprint(link) if rest.out else None
        told = (rest.until, rest.since, rest.error_class, rest.message, rest.failures, fingerprint)
        self._file.ask("delete from rests where until < ?", (rest.since - FADE_SECONDS,))
        self._file.ask("insert or replace into rests values (?, ?, ?, ?, ?, ?, ?)", (key, *told))
        return rest

    def _reach(self, link: Link, reach: Reach) -> Reach:
        """Without a key nobody shares it: a server of one's own may have models that need none."""
        return "link" if reach == "key" and not self._secret(link) else reach

    def _key(self, link: Link, reach: Reach) -> str:
        if reach == "address":
            return f"{link.address} *"
        if reach == "key":
            # OpenRouter's free models go on where the money for the others is used up.
            purse = " free" if link.model.endswith(":free") else ""
            return f"{link.endpoint} * {self._fingerprint(link)}{purse}"
        return f"{link.identity} {self._fingerprint(link)}"

    def _secret(self, link: Link) -> str:
        return self._environ.get(link.key_variable or "", "").strip()

    def _fingerprint(self, link: Link) -> str:
        """Tells whether the key is still the same one; the key cannot be told from it."""
        secret = self._secret(link) or f"${link.key_variable}"
        headers = link.provider.headers
        value = f"{self._salt}{secret}{json.dumps(dict(headers), sort_keys=True) if headers else ''}"
        if value not in self._marks:
            self._marks[value] = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:16]
        return self._marks[value]

    def _read_salt(self) -> str:
        new = os.urandom(16).hex()
        self._file.at_once(lambda: self._file.ask("insert or ignore into meta values ('salt', ?)", (new,)))
        return str(self._file.ask("select value from meta where key = 'salt'")[0][0])


def _end(stated: float | None, error_class: ErrorClass, before: int, now: float) -> float:
    """When a rest ends that begins now, after *before* failures in a row."""
    if stated is None:
        return now + rest_seconds(error_class, before)
    return max(stated, now + rest_seconds("rate_limit", before - 1)) if before > 0 else stated
