"""No answer of any server raises, hangs, or makes an impossible window; and no key goes where it was not sent."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx.config.links import Link, Provider
from agentx.windows.asking import LARGEST_ANSWER
from agentx.windows.probes import PROBES, SELF_HOSTED, Answers, Ask, questions, read_all
from agentx.windows.record import LARGEST, SMALLEST
from agentx.windows.registry import WindowRegistry
from tests.windows.conftest import run

Make = Callable[..., Link]
BODIES = [
    json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "payloads").glob("*.json"))
    if "error" not in file.name
]
NAMES = [
    "qwen3:14b",
    "Qwen/Qwen3-32B",
    "my-lora",
    "gemma",
    "qwen3-coder-30b",
    "ai/qwen2.5-coder",
    "../x?y#z",
    "\u0130",
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 255, 256, 20_000_000, 20_000_001, 10**30, -(10**400), 1e30, float("inf"), float("nan")]
    ),
    st.sampled_from(["", "None", "131072", "\ud800", "\x1b[31m", "x" * 5000, [], {}, [[[[]]]], {"a": {"a": {}}}]),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
)
FIELDS = st.sampled_from(
    [
        *(
            "data",
            "models",
            "id",
            "name",
            "model",
            "key",
            "owned_by",
            "meta",
            "n_ctx",
            "n_ctx_train",
            "status",
            "role",
        ),
        *(
            "context_length",
            "max_model_len",
            "parent",
            "loaded_instances",
            "config",
            "state",
            "loaded_context_length",
        ),
        *(
            "default_generation_settings",
            "max_total_tokens",
            "max_input_tokens",
            "max_req_input_len",
            "value",
            "tags",
        ),
        *("all_models_loaded", "recipe_options", "ctx_size", "model_name", "model_info", "general.architecture"),
        *("details", "format", "parameters", "aliases", "context_size", "gguf", "architecture", "remote_model"),
    ]
)
JSON = st.recursive(
    ODD | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=12,
)


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A real body with some values replaced by odd ones."""

    def walk(value: Any, depth: int) -> Any:
        if depth and draw(st.integers(0, 19)) == 0:
            return draw(JSON)
        if isinstance(value, dict):
            return {key: walk(item, depth + 1) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [walk(item, depth + 1) for item in cast("list[Any]", value)[:3]]
        return value

    return walk(draw(st.sampled_from(BODIES)), 0)


def bare(model: str, probes: tuple[str, ...] = (), *, self_hosted: bool = True) -> Link:
    provider = Provider(
        name="p", card="p", wire="openai", base_url="http://h/v1", self_hosted=self_hosted, probes=probes
    )
    return Link(provider=provider, model=model, name="p/m")


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data(), st.sampled_from(NAMES), st.sampled_from([None, *SELF_HOSTED]), st.booleans())
def test_no_json_raises_asks_for_ever_or_makes_an_impossible_window(
    data: st.DataObject, model: str, guess: str | None, sure: bool
) -> None:
    link = bare(model, tuple(PROBES)) if guess is None else bare(model)
    given_answers: dict[Ask, Any] = {}
    asked: set[Ask] = set()
    for _ in range(6):
        asks = questions(link, Answers(given_answers), asked, guess, sure=sure)
        asked |= set(asks)
        for ask in asks:
            if (value := data.draw(JSON | spoiled())) is not None:
                given_answers[ask] = value
        if not asks:
            break
    else:
        raise AssertionError("it asks and asks")
    found = read_all(link, Answers(given_answers))
    if found is not None:
        reading = found[1]
        for size in (reading.served, reading.trained, reading.prompt, reading.output, reading.default):
            assert size is None or (type(size) is int and SMALLEST <= size <= LARGEST)
        json.dumps([reading.detail, *reading.refused]).encode()
        assert all(line.isprintable() and len(line) < 300 for line in (reading.detail, *reading.refused))


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Starts servers that send the same bytes to whoever connects, in pieces with a pause; gives their address."""
    stopped, sockets = threading.Event(), list[socket.socket]()

    def start(content: bytes, *, pieces: int = 1, pause: float = 0.0) -> str:
        listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        sockets.append(listening)
        size = max(1, -(-len(content) // pieces))

        def serve(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65536)
                    for at in range(0, len(content), size):
                        connection.sendall(content[at : at + size])
                        if stopped.wait(pause):
                            return
                except OSError:
                    return

        def accept() -> None:
            while not stopped.is_set():
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    stopped.set()
    for one in sockets:
        one.close()


def http(body: bytes, headers: Mapping[str, str] | None = None, status: str = "200 OK") -> bytes:
    lines = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in (lines | dict(headers or {})).items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


LIST = json.dumps({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 8192}]}).encode()
BOMB = gzip.compress(b"[" + b" " * (80 << 20) + b"]", 9)
ZIPPED = {"content-encoding": "gzip"}
STRANGE: dict[str, tuple[bytes, int | None]] = {
    # what is sent, and the window that it is worth
    "as it should be": (http(LIST), 8192),
    "packed though nobody asked": (http(gzip.compress(LIST), ZIPPED), 8192),
    "deflated though nobody asked": (http(zlib.compress(LIST), {"content-encoding": "deflate"}), 8192),
    "a bomb": (http(BOMB, ZIPPED), None),
    "packed in an unknown way": (http(LIST, {"content-encoding": "zstd, gzip"}), None),
    "said to be packed": (http(LIST, ZIPPED), None),
    "cut": (http(LIST)[:-10], None),
    "longer than it says": (http(LIST, {"content-length": "20"}), None),
    "no protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", None),
    "nothing": (b"", None),
    "huge": (http(b"[" + b"0," * (LARGEST_ANSWER // 2) + b"0]"), None),
    "deep": (http(b'{"data":' * 50_000 + b"1" + b"}" * 50_000), None),
    "deep in a value": (http(LIST.replace(b"8192", b"[" * 900 + b"]" * 900)), None),
    "a number of a million digits": (http(LIST.replace(b"8192", b"9" * 1_000_000)), None),
    "half a letter": (http(LIST.replace(b"vllm", b"\\ud800")), 8192),
    "not utf-8": (http(b'{"data": [{"id": "\xff\xfe"}]}'), None),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 2_000_000, None),
    "a status that is none": (http(LIST, status="999 What"), None),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", None),
}


@pytest.mark.parametrize(("content", "size"), STRANGE.values(), ids=STRANGE)
def test_a_strange_answer_is_worth_a_window_or_nothing(
    content: bytes, size: int | None, answering: Callable[..., str], link: Make, clock: Any, tmp_path: Path
) -> None:
    one, file = link(answering(content) + "/v1", "m"), tmp_path / "windows.json"

    async def work(registry: WindowRegistry) -> None:
        began = time.monotonic()
        await registry.refresh([one])
        assert time.monotonic() - began < 4
        window = registry.window(one)
        assert (window.size, window.source) == ((size, "served") if size else (32_768, "assumed"))
        f"{registry.warnings(one)} {registry.explain(one)}".encode()

    run(work, clock, file=file)
    if size:
        assert json.loads(file.read_text())["links"][one.identity]["heard"]["reading"]["served"] == size


@pytest.mark.parametrize("content", [http(LIST), BOMB], ids=["an answer", "noise"])
def test_an_answer_that_drips_costs_the_time_that_was_given_and_no_more(
    content: bytes, answering: Callable[..., str], link: Make, clock: Any
) -> None:
    slow = link(answering(content, pieces=200, pause=0.1), "m")
    quick = link(answering(http(LIST)), "m")

    async def work(registry: WindowRegistry) -> None:
        began = time.monotonic()
        await registry.refresh([slow, quick], timeout=0.5)
        assert time.monotonic() - began < 2
        assert [registry.window(one).source for one in (slow, quick)] == ["assumed", "served"]

    run(work, clock)


def test_an_answer_that_comes_late_changes_the_next_turn(serve: Any, link: Make, clock: Any) -> None:
    """The server is still starting when the job does; nothing waits for it, and the window follows."""
    server = serve({"GET /v1/models": json.loads(LIST)})
    one = link(server.url, "m")
    slow = threading.Event()

    async def work(registry: WindowRegistry) -> None:
        server.before = lambda: slow.wait(0.6)
        await registry.refresh([one], timeout=0.2)
        assert registry.window(one).source == "assumed"
        slow.set()
        server.before = lambda: None
        clock.at += 60
        await registry.touch(one)
        assert (registry.window(one).size, registry.window(one).source) == (8192, "served")

    run(work, clock)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("self_hosted", [True, False])
def test_a_key_does_not_follow_a_redirect(
    status: int, self_hosted: bool, answering: Callable[..., str], serve: Any, link: Make, clock: Any
) -> None:
    thief = serve({"GET /v1/models": json.loads(LIST)})
    moved = http(b"", {"location": f"{thief.url}/v1/models"}, f"{status} Moved")
    one = link(
        answering(moved) + "/v1",
        "m",
        self_hosted=self_hosted,
        probes=("vllm", "openai_list"),
        api_key_env="SECRET",
        headers={"x-mine": "secret"},
    )

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([one])
        assert registry.window(one).source == "assumed"

    run(work, clock, environ={"SECRET": "secret"})
    assert thief.log == []


def test_many_dead_servers_cost_no_more_than_one(link: Make, clock: Any) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        port = silent.getsockname()[1]
        hanging = [link(f"http://127.0.0.{n}:{port}", f"m{n}") for n in range(1, 11)]

        async def work(registry: WindowRegistry) -> None:
            began = time.monotonic()
            await registry.refresh(hanging, timeout=0.5)
            assert time.monotonic() - began < 1.5
            assert {registry.window(one).source for one in hanging} == {"assumed"}

        run(work, clock)


def test_what_a_hosted_provider_does_not_say_is_not_asked_again_for_a_day_but_a_failure_is(
    serve: Any, link: Make, clock: Any, tmp_path: Path
) -> None:
    file = tmp_path / "windows.json"
    unlisted = serve({"GET /v1/models": {"data": [{"id": "other"}]}})
    missing = serve({"GET /v1/models": 404})
    failing = serve({"GET /v1/models": 503})
    links = [
        link(f"{server.url}/v1", "m", self_hosted=False, probes=("openai_list",))
        for server in (unlisted, missing, failing)
    ]
    dead = link("http://127.0.0.1:9/v1", "m", self_hosted=False, probes=("openai_list",))

    async def work(registry: WindowRegistry) -> None:
        await registry.refresh([*links, dead])
        assert {registry.window(one).source for one in (*links, dead)} == {"assumed"}

    for _ in range(2):
        run(work, clock, file=file)
    assert [len(server.log) for server in (unlisted, missing, failing)] == [1, 1, 2]
    assert dead.identity not in json.loads(file.read_text())["links"]
    clock.at += 24 * 3600
    run(work, clock, file=file)
    assert [len(server.log) for server in (unlisted, missing, failing)] == [2, 2, 3]
