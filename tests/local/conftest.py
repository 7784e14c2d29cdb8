"""Stand-ins for programs on real sockets, and real servers: llama.cpp and Ollama, got once into a cache folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentx.config.links import Link, Provider
from agentx.wires.local_models import QWEN, SERVER
from agentx.wires.local_pull import pull_model, pull_server

HERE = Path(__file__).parent
TEMPLATE = HERE.parents[1] / "agentx" / "wires" / "templates" / "chatml-tools.jinja"
SMALL, LARGE, CUT = 2304, 4096, 2304
OLLAMA_PACKAGES = ("bigdl-core-cpp==2.6.0", "intel-cmplr-lib-rt==2025.0.5", "intel-openmp==2025.0.5")
OLLAMA_LIBRARIES = (
    "ollama-lib", "libollama_ggml.so", "libollama-ggml-cpu.so", "libollama-ggml-base.so", "libollama_llama.so",
    "libollama_llava_shared.so", "libmllama.so", "libsample.so",
)  # fmt: skip
OLLAMA_TEMPLATE = (HERE / "ollama-tools.gotmpl").read_text()

FAKE = """\
#!{python}
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
{before}
arguments = sys.argv[1:]
port = int(arguments[arguments.index("--port") + 1])
chunks = [
    {{"choices": [{{"index": 0, "delta": {{"role": "assistant", "content": json.dumps(arguments)}}}}]}},
    {{"choices": [{{"index": 0, "delta": {{}}, "finish_reason": "stop"}}]}},
    {{"choices": [], "usage": {{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}}},
]

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply("application/json", b"{{}}")
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("authorization") != "Bearer " + os.environ["LLAMA_API_KEY"]:
            self.send_error(401)
            return
        {at_chat}
        lines = [b"data: " + json.dumps(chunk).encode() + b"\\n\\n" for chunk in chunks]
        self.reply("text/event-stream", b"".join(lines) + b"data: [DONE]\\n\\n")
    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", port), Answers).serve_forever()
"""


@pytest.fixture
def fake_server(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program that answers like a `llama-server`, with lines of its own before it listens or answers."""

    def write(before: str = "pass", at_chat: str = "pass") -> Path:
        program = tmp_path / "llama-server"
        program.write_text(FAKE.format(python=sys.executable, before=before, at_chat=at_chat))
        program.chmod(0o755)
        return program

    return write


@pytest.fixture
def local_link(tmp_path: Path) -> Callable[..., Link]:
    """A link of the card `local` with an (empty) model file, and the options given."""
    model = tmp_path / "tiny.gguf"
    model.touch()

    def link(window: int | None = None, **options: Any) -> Link:
        chosen = {"model_file": str(model), "window": 4096, **options}
        provider = Provider(name="local", card="local", wire="openai", self_hosted=True, options=chosen)
        return Link(provider=provider, model="tiny", name="local/tiny", window=window)

    return link


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where real servers and models are kept between runs."""
    folder = Path(os.environ.get("AGENTX_TEST_CACHE") or HERE.parents[1] / ".cache").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def silent(_source: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="session")
def model_file(cache: Path) -> Path:
    """The 0.5B model, got with `agentx local pull`'s own code."""
    with httpx.Client() as client:
        return pull_model(QWEN, cache / "models", client=client, progress=silent, tell=lambda _: None)


@pytest.fixture(scope="session")
def llama_server(cache: Path) -> Path:
    """The prebuilt `llama-server`, or the one that `AGENTX_LOCAL_SERVER` names."""
    if named := os.environ.get("AGENTX_LOCAL_SERVER"):
        return Path(named)
    return pull_server(SERVER, cache / "llama-server", progress=silent)


@dataclass(frozen=True, slots=True)
class Running:
    """A real server: `url` without a path."""

    url: str
    model: str
    window: int


@pytest.fixture(scope="session")
def small(llama_server: Path, model_file: Path, cache: Path) -> Generator[Running]:
    with _llama(llama_server, model_file, SMALL, cache) as running:
        yield running


@pytest.fixture(scope="session")
def large(llama_server: Path, model_file: Path, cache: Path) -> Generator[Running]:
    with _llama(llama_server, model_file, LARGE, cache) as running:
        yield running


@contextmanager
def _llama(program: Path, model: Path, window: int, cache: Path) -> Generator[Running]:
    port = _free_port()
    command = [str(program), "-m", str(model), "-a", "qwen", "--host", "127.0.0.1", "--port", str(port)]
    command += ["-c", str(window), "--parallel", "1", "-t", "2", "--chat-template-file", str(TEMPLATE)]
    environ = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
    url = f"http://127.0.0.1:{port}"
    with _process(command, environ, cache / f"llama-{window}.log", f"{url}/health"):
        yield Running(url, "qwen", window)


@pytest.fixture(scope="session")
def ollama(cache: Path, model_file: Path) -> Generator[Running]:
    """A real Ollama 0.5.4 with a model of `num_ctx` 2304: it cuts a conversation in silence."""
    home = _installed_ollama(cache / "ollama")
    data = cache / "ollama-data"
    data.mkdir(exist_ok=True)
    url = f"http://127.0.0.1:{_free_port()}"
    environ = {
        **os.environ,
        "LD_PRELOAD": str(home / "app" / "libollama-ggml-sycl.so"),
        "LD_LIBRARY_PATH": f"{home / 'app'}:{home / 'lib'}",
        "HOME": str(data),
        "OLLAMA_HOST": url.removeprefix("http://"),
        "OLLAMA_MODELS": str(data / "models"),
        "OLLAMA_NUM_PARALLEL": "1",
        "OLLAMA_KEEP_ALIVE": "10m",
    }
    command = [str(home / "app" / "ollama-lib"), "serve"]
    with _process(command, environ, cache / "ollama.log", f"{url}/api/version"):
        _create(url, "qwen-cut", model_file)
        yield Running(url, "qwen-cut", CUT)


def _installed_ollama(home: Path) -> Path:
    """The Ollama of an Intel GPU package, made to run on the processor by a small stub."""
    done = home / "done"
    if done.exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, *OLLAMA_PACKAGES], check=True)
    (libraries,) = home.glob("lib/python3*/site-packages/bigdl/cpp/libs")
    app = home / "app"
    app.mkdir()
    for name in OLLAMA_LIBRARIES:
        shutil.copy2(libraries / name, app / name)
    stub = app / "libollama-ggml-sycl.so"
    flags = ["-shared", "-fPIC", "-O1", f"-Wl,-soname,{stub.name}"]
    subprocess.run(["cc", *flags, "-o", str(stub), str(HERE / "sycl_stub.c")], check=True)
    done.touch()
    return home


def _create(url: str, name: str, model: Path) -> None:
    """Make *name* out of the model file. This version takes the text of a Modelfile."""
    blob = f"{url}/api/blobs/sha256:{QWEN.sha256}"
    if _status(blob, method="HEAD") != 200:
        with model.open("rb") as file:
            headers = {"content-length": str(model.stat().st_size)}
            _status(blob, method="POST", data=file, headers=headers)
    text = f'FROM @sha256:{QWEN.sha256}\nPARAMETER num_ctx {CUT}\nTEMPLATE """{OLLAMA_TEMPLATE}"""\n'
    body = json.dumps({"model": name, "stream": False, "modelfile": text}).encode()
    assert _status(f"{url}/api/create", method="POST", data=body) == 200


def _status(url: str, *, method: str = "GET", data: Any = None, headers: Mapping[str, str] | None = None) -> int:
    asked = urllib.request.Request(url, data, dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(asked, timeout=300) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0


@contextmanager
def _process(command: list[str], environ: Mapping[str, str], log: Path, health: str) -> Generator[None]:
    """*command* while the block runs, once *health* answers; what it said is shown when it does not."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            until = time.monotonic() + 120
            while _status(health) != 200:
                said = log.read_text("utf-8", "replace")[-2000:]
                assert process.poll() is None, f"{command[0]} ended with {process.returncode}:\n{said}"
                assert time.monotonic() < until, f"{command[0]} does not answer:\n{said}"
                time.sleep(0.1)
            yield
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
