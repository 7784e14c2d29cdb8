"""The folders of jobs: made, found by id, prefix or name, listed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx.errors import NoSuchJob, StateError
from agentx.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was asked for, as data: enough to go on in another process, after an upgrade too."""

    task: str
    workspace: str
    chain: str | None = None
    overrides: tuple[str, ...] = ()
    until: str | None = None
    name: str | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Order:
        data: Mapping[str, Any] = dict(json.loads(text))
        known: dict[str, Any] = {key: data[key] for key in cls.__slots__ if key in data}
        known["overrides"] = tuple(known.get("overrides", ()))
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Job:
    """One job's folder: `journal.db`, `output/`, `log`, `lock`."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def lock_file(self) -> Path:
        return self.folder / "lock"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def journal(self, *, read_only: bool = False) -> Journal:
        return Journal(self.folder / "journal.db", read_only=read_only)

    def order(self) -> Order:
        """What was asked for. Raises StateError when the journal does not say."""
        journal = self.journal(read_only=True)
        try:
            text = journal.meta("order")
        finally:
            journal.close()
        if text is None:
            raise StateError(f"{self.id}: the journal does not say what was asked for")
        try:
            return Order.from_json(text)
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(f"{self.id}: what was asked for cannot be read: {error}") from error


class Store:
    """All jobs below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def named(self, name: str) -> list[Job]:
        """The jobs that bear *name*."""
        return [job for job in self.all() if _meta(job, "name") == name]

    def create(self, order: Order) -> Job:
        """A new job with *order* in its journal. Raises StateError when the folder cannot be written."""
        while True:
            job = Job(self.folder / f"j-{os.urandom(3).hex()}")
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                job.folder.mkdir(mode=0o700)
                job.output.mkdir(mode=0o700)
                break
            except FileExistsError as error:
                if not self.folder.is_dir():
                    raise StateError(f"{self.folder}: is not a folder") from error
            except OSError as error:
                raise StateError(
                    f"{self.folder}: cannot keep jobs here: {error.strerror}",
                    hint="check the folder's permissions, or choose another with `AGENTX_HOME=DIR`",
                ) from error
        try:
            journal = job.journal()
            journal.set_meta("order", order.to_json())
            journal.set_meta("created", str(time.time()))
            if order.name:
                journal.set_meta("name", order.name)
            journal.close()
        except BaseException:  # half a job would be listed as broken for ever
            shutil.rmtree(job.folder, ignore_errors=True)
            raise
        return job

    def all(self) -> list[Job]:
        """Every job, in no particular order. Raises StateError when the folder cannot be read."""
        try:
            folders = list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(f"{self.folder}: cannot be read: {error.strerror}") from error
        return [Job(folder) for folder in folders if (folder / "journal.db").is_file()]

    def find(self, text: str) -> Job:
        """The job with this id or unique prefix of one (with or without `j-`), or the newest with this name.

        Raises NoSuchJob.
        """
        jobs = self.all()
        exact = [job for job in jobs if job.id == text]
        if exact:
            return exact[0]
        if named := self.named(text):
            return max(named, key=lambda job: float(_meta(job, "created") or 0))
        fitting = sorted((job for job in jobs if job.id.startswith((text, f"j-{text}"))), key=lambda job: job.id)
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            listed = ", ".join(job.id for job in fitting)
            raise NoSuchJob(f"{text}: more than one job fits: {listed}", hint="give more of the id")
        raise NoSuchJob(f"{text}: no such job", hint="`agentx ps -a` lists all jobs")


def _meta(job: Job, key: str) -> str | None:
    """What *job*'s journal keeps under *key*; None when it cannot be read."""
    try:
        journal = job.journal(read_only=True)
    except StateError:
        return None
    try:
        return journal.meta(key)
    except StateError:
        return None
    finally:
        journal.close()
