"""The cache, the tables and the catalogue: files that may be missing, wrong, or written by several jobs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentx.config.links import Link
from agentx.config.paths import Paths
from agentx.config.yamlfile import parse_document
from agentx.errors import ConfigError
from agentx.windows.cache import MOST_LINKS, Cache
from agentx.windows.catalogue import Catalogue, Price, catalogue_file
from agentx.windows.known import Heard, Held, Known, Learned, known_from
from agentx.windows.probes import Reading
from agentx.windows.tables import Tables, load_tables, read_table

Make = Callable[..., Link]
KNOWN = Known(
    heard=Heard(
        reading=Reading(kind="served", detail="GET /x", served=8192, trained=40_960), probe="ollama", at=5.0
    ),
    learned=Learned(limit=4096, evidence="refused", at=6.0, served=8192),
    held=Held(tokens=3000, evidence="a prompt of 3,000 tokens fitted", at=7.0),
)


def test_what_is_known_survives_the_file(tmp_path: Path) -> None:
    file = tmp_path / "state" / "windows.json"
    Cache(file).update("a m", lambda _: KNOWN)
    assert Cache(file).get("a m") == KNOWN
    assert Cache(file).get("b m") == Known()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_two_jobs_see_each_others_news(tmp_path: Path) -> None:
    first, second = Cache(tmp_path / "w.json"), Cache(tmp_path / "w.json")
    first.update("a m", lambda _: KNOWN)
    second.update("b m", lambda _: KNOWN)
    assert first.get("b m") == second.get("a m") == KNOWN
    second.update("a m", lambda known: replace(known, learned=None))
    assert first.get("a m").learned is None


def test_many_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom agentx.windows.cache import Cache\n"
        "from agentx.windows.known import Known, Learned\ncache = Cache(Path(sys.argv[1]))\n"
        "for i in range(10):\n    learned = Learned(limit=4096, evidence='e', at=1.0)\n"
        "    cache.update(f'{sys.argv[2]} {i}', lambda _: Known(learned=learned))\n"
    )
    file = tmp_path / "w.json"
    started = [subprocess.Popen([sys.executable, "-c", program, str(file), str(n)]) for n in range(4)]
    assert [one.wait() for one in started] == [0, 0, 0, 0]
    assert len(json.loads(file.read_text())["links"]) == 40


@pytest.mark.parametrize("text", ["", "{", "[]", '{"links": []}', "nul\0", "[" * 100_000])
def test_a_broken_cache_is_set_aside_said_once_and_written_anew(text: str, tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    for number in (1, 2):
        file.write_text(text)
        cache = Cache(file)
        assert cache.get("a m") == cache.get("b m") == Known()
        assert [f"w.json.broken-{number}" in warning for warning in cache.warnings] == [True]
        assert (tmp_path / f"w.json.broken-{number}").read_text() == text, "nothing is lost"
        cache.update("a m", lambda _: KNOWN)
        assert Cache(file).get("a m") == KNOWN


def test_bytes_that_are_no_text_and_a_file_that_is_too_large_are_set_aside_too(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    for number, content in enumerate((b"\xff\xfe{}", b" " * (5 << 20)), 1):
        file.write_bytes(content)
        Cache(file).update("a m", lambda _: KNOWN)
        assert (tmp_path / f"w.json.broken-{number}").read_bytes() == content
        assert Cache(file).get("a m") == KNOWN


def test_a_file_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    file.mkdir()
    cache = Cache(file)
    cache.update("a m", lambda _: KNOWN)
    assert cache.get("a m") == KNOWN
    assert len(cache.warnings) == 1
    assert sorted(tmp_path.iterdir()) == [file, file.with_suffix(".lock")] and not list(file.iterdir())


def test_a_broken_file_met_by_many_processes_at_once_is_set_aside_once(tmp_path: Path) -> None:
    """Who comes second must not set aside the good file that the first has written."""
    file = tmp_path / "w.json"
    file.write_text("{broken")
    program = (
        "import sys\nfrom pathlib import Path\nfrom agentx.windows.cache import Cache\n"
        "from agentx.windows.known import Known, Learned\ncache = Cache(Path(sys.argv[1]))\n"
        "sys.stdin.read()\ncache.get('x')\n"
        "cache.update(sys.argv[2], lambda _: Known(learned=Learned(limit=4096, evidence='e', at=1.0)))\n"
    )
    command = [sys.executable, "-c", program, str(file)]
    started = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE) for n in range(6)]
    assert [one.communicate() and one.returncode for one in started] == [0] * 6
    assert len(json.loads(file.read_text())["links"]) == 6
    assert [one.name for one in tmp_path.glob("*.broken*")] == ["w.json.broken-1"]


def test_the_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    """Another process writes as fast as it can; each look sees a file that can be read."""
    file = tmp_path / "w.json"
    program = (
        "import sys\nfrom pathlib import Path\nfrom agentx.windows.cache import Cache\n"
        "from agentx.windows.known import Known, Learned\ncache = Cache(Path(sys.argv[1]))\n"
        "for i in range(300):\n    learned = Learned(limit=4096 + i, evidence='e' * (i % 90), at=1.0)\n"
        "    cache.update('a m', lambda _: Known(learned=learned))\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(file)])
    reader, looks = Cache(file), 0
    while writer.poll() is None:
        learned = reader.get("a m").learned
        assert learned is None or len(learned.evidence) == (learned.limit - 4096) % 90
        looks += 1
    assert (writer.returncode, reader.warnings) == (0, []) and looks > 10


def test_only_the_newest_links_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    learned = {"limit": 4096, "evidence": "e", "served": None}
    links = {f"http://x m{n}": {"learned": learned | {"at": 1000.0 + n}} for n in range(MOST_LINKS)}
    file.write_text(json.dumps({"version": 1, "links": links}))
    cache = Cache(file)
    cache.update("new", lambda _: Known(learned=Learned(limit=4096, evidence="e", at=9e9)))
    kept = json.loads(file.read_text())["links"]
    assert len(kept) == MOST_LINKS and "new" in kept and "http://x m0" not in kept


@pytest.mark.parametrize(
    "data",
    [None, [], {"heard": 3}, {"heard": {"at": "x"}}, {"learned": {"limit": 0, "at": 1.0, "evidence": "e"}}],
)
def test_an_edited_entry_is_left_out(data: Any) -> None:
    assert known_from(data) == Known()


def test_a_cache_that_cannot_be_written_still_serves_this_run(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = Cache(blocked / "windows.json")
    cache.update("a m", lambda _: KNOWN)
    assert cache.get("a m") == KNOWN
    assert cache.warnings


def test_what_is_forgotten_is_forgotten_for_all_jobs(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    cache, other = Cache(file), Cache(file)
    cache.update("a m", lambda _: KNOWN)
    assert other.get("a m") == KNOWN
    cache.update("a m", lambda _: Known())
    assert other.get("a m") == Cache(file).get("a m") == Known()


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    Cache(tmp_path / "w.json").update("a m", lambda known: known)
    assert not (tmp_path / "w.json").exists()


# tables


def paths(folder: Path) -> Paths:
    (folder / "config").mkdir(exist_ok=True)
    return Paths(folder / "config", folder / "state", folder / "cache")


def test_the_shipped_table_is_whole_and_dated(tmp_path: Path, link: Make) -> None:
    tables = load_tables(paths(tmp_path))
    entries = tables.files[-1].values()
    assert len(entries) >= 70
    assert all(
        entry.window.size and entry.window.seen_at > 1.7e9 and entry.window.detail.endswith(")")
        for entry in entries
    )
    window = tables.window(link("https://x", "gpt-5", card="openai", self_hosted=False))
    assert window is not None
    assert (window.size, window.served, window.output, window.source) == (
        272_000,
        400_000,
        128_000,
        "windows.yaml",
    )
    assert window.detail.startswith("shipped windows.yaml:")


def test_the_users_table_goes_first_and_says_where_it_stands(tmp_path: Path, link: Make) -> None:
    place = paths(tmp_path)
    (place.config / "windows.yaml").write_text("# mine\nopenai/gpt-5: 100000\ngpu/qwen*: {window: 9000}\n")
    tables = load_tables(place)
    window = tables.window(link("https://x", "gpt-5", card="openai", self_hosted=False))
    assert window is not None
    assert (window.size, window.detail) == (100_000, f"{place.config / 'windows.yaml'}:2")
    mine = tables.window(link("http://x", "qwen3:14b", name="gpu"))
    assert mine is not None and mine.size == 9000


def test_an_exact_name_beats_a_glob_and_a_longer_glob_a_shorter(link: Make) -> None:
    document = parse_document("o/*: 1000\no/qwen*: 2000\no/qwen3: 3000\n", "w.yaml")
    tables = Tables((read_table(document, 0.0),))
    sizes = {
        model: window.size if (window := tables.window(link("http://x", model, name="o"))) else None
        for model in ("llama", "qwen2", "qwen3")
    }
    assert sizes == {"llama": 1000, "qwen2": 2000, "qwen3": 3000}
    assert tables.window(link("http://x", "qwen3", name="other")) is None


def test_a_snapshot_is_read_as_its_undated_name_unless_it_has_an_entry(link: Make) -> None:
    document = parse_document("o/m: 2000\no/m-2025-08-07: 3000\no/k: {window: 4000, source: docs}\n", "w.yaml")
    tables = Tables((read_table(document, 0.0),))

    def size(model: str) -> int | None:
        window = tables.window(link("http://x", model, name="o"))
        return window and window.size

    assert [size(one) for one in ("m-20250929", "m@20250929", "m-2025-08-07", "m-v2", "k-001")] == [
        2000,
        2000,
        3000,
        None,
        4000,
    ]
    window = tables.window(link("http://x", "k", name="o"))
    assert window is not None and window.detail == "w.yaml:3 (docs)"


def test_one_of_ones_own_servers_is_not_known_by_its_card(link: Make) -> None:
    """A table line for a hosted provider says nothing of a self-hosted address that borrows the card."""
    tables = Tables((read_table(parse_document("openai/gpt-5: 1000\n", "w.yaml"), 0.0),))
    assert tables.window(link("http://x", "gpt-5", card="openai", name="mine")) is None
    assert tables.window(link("http://x", "gpt-5", card="openai", name="mine", self_hosted=False)) is not None


def test_every_wrong_line_of_a_table_is_named_with_its_place() -> None:
    text = (
        "a/b: 32k\nc: 4096\nd/e: {windw: 4096, window: 0}\nf/g: {output: 4096}\n"
        'h/i: {window: 4096, dated: "x"}\nj/k: {window: 4096, source: 3}\n'
    )
    with pytest.raises(ConfigError) as caught:
        read_table(parse_document(text, "w.yaml"), 0.0)
    assert [problem.where for problem in caught.value.problems] == [
        "w.yaml:1:6",
        "w.yaml:2:1",
        "w.yaml:3:7",
        "w.yaml:3:28",
        "w.yaml:4:1",
        "w.yaml:5:28",
        "w.yaml:6:29",
    ]
    assert "got `32k`" in caught.value.message and caught.value.hint is not None


# catalogue


ENTRIES = {
    "sample_spec": {"max_input_tokens": "max input tokens", "litellm_provider": "openai"},
    "gpt-5": {
        "litellm_provider": "openai",
        "max_input_tokens": 272000,
        "max_output_tokens": 128000,
        "max_tokens": 9,
        "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
        "successor_model": "gpt-6",
        "supports_vision": True,
    },
    "groq/llama": {"litellm_provider": "groq", "max_input_tokens": 131072, "max_output_tokens": 131072},
    "llama": {"litellm_provider": "groq", "max_input_tokens": 65536},
    "groq/blind": {"litellm_provider": "groq", "max_input_tokens": 65536, "supports_vision": False},
    "groq/pasted": {"litellm_provider": "groq", "max_input_tokens": 131072, "max_output_tokens": 131072},
    "vertex_ai/claude": {"litellm_provider": "vertex_ai-anthropic_models", "max_input_tokens": 200000},
    "gpt-nulls": {"litellm_provider": "openai", "max_input_tokens": None},
}


@pytest.fixture(params=[None, 4])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Catalogue:
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps(ENTRIES, indent=request.param))
    return Catalogue(file)


def test_a_catalogue_is_read_by_provider_and_never_across(catalogue: Catalogue, link: Make) -> None:
    def size(model: str, *providers: str, **more: Any) -> int | None:
        settings = {"self_hosted": False, "catalogue": providers} | more
        window = catalogue.window(link("https://x", model, **settings))
        return window.size if window else None

    assert size("gpt-5", "openai") == size("gpt-5-2025-08-07", "openai") == 272_000
    assert size("gpt-5", "groq") is None
    assert size("gpt-5", "openai", self_hosted=True) is None
    assert size("gpt-5") is None
    assert size("gpt-6", "openai") is None
    assert size("sample_spec", "openai") is None
    assert size("gpt-nulls", "openai") is None
    assert size("llama", "groq") == 65_536, "of several hits the smaller one"
    vertex = ("vertex_ai-language-models", "vertex_ai-anthropic_models")
    assert size("claude@20251101", *vertex, litellm_prefix="vertex_ai") == 200_000, "the key has LiteLLM's prefix"
    assert size("claude", *vertex) is None
    assert size("claude", "vertex_ai-language-models", litellm_prefix="vertex_ai") is None


def test_an_output_limit_that_repeats_the_window_is_none(catalogue: Catalogue, link: Make) -> None:
    whole = catalogue.window(link("https://x", "gpt-5", self_hosted=False, catalogue=("openai",)))
    pasted = catalogue.window(link("https://x", "pasted", self_hosted=False, catalogue=("groq",)))
    assert whole is not None and whole.output == 128_000
    assert pasted is not None and pasted.output is None


def test_a_model_sees_images_or_not_or_nobody_knows(catalogue: Catalogue, link: Make) -> None:
    def sees(provider: str, model: str) -> bool | None:
        return catalogue.sees_images(link("https://x", model, self_hosted=False, catalogue=(provider,)))

    assert [sees("openai", "gpt-5"), sees("groq", "blind"), sees("groq", "llama")] == [True, False, None]


def test_prices_are_dollars_a_token_and_none_where_one_is_missing(catalogue: Catalogue, link: Make) -> None:
    openai = {"self_hosted": False, "catalogue": ("openai",)}
    price = catalogue.price(link("https://x", "gpt-5", **openai))
    assert price == Price(input=1.25e-06, output=1e-05, cache_read=1.25e-07, cache_write=1.25e-06)
    assert catalogue.price(link("https://x", "gpt-nulls", **openai)) is None
    assert catalogue.price(link("http://x", "gpt-5", catalogue=("openai",))) is None


def test_a_missing_or_broken_catalogue_is_no_error(tmp_path: Path, link: Make) -> None:
    one = link("https://x", "gpt-5", self_hosted=False, catalogue=("openai",))
    broken = tmp_path / "broken.json"
    broken.write_bytes(b'\xff{"gpt-5": {')
    cut = tmp_path / "cut.json"
    cut.write_text('{"gpt-5": {"litellm_provider": "openai", "max_in')
    for file in (None, tmp_path / "nope.json", broken, cut):
        assert Catalogue(file).window(one) is None


@pytest.mark.parametrize("spoil", [None, "cut", "other sum", "no text", "another file", "a folder", "unwritable"])
def test_the_kept_index_is_used_while_it_is_of_that_very_file_and_made_anew_else(
    tmp_path: Path, link: Make, spoil: str | None
) -> None:
    file, kept = tmp_path / "catalogue.json", tmp_path / "cache" / "catalogue.index"
    one = link("https://x", "gpt-5", self_hosted=False, catalogue=("openai",))

    def size(catalogue: Catalogue) -> int | None:
        found = catalogue.window(one)
        return found and found.size

    def written(limit: int, *before: str) -> None:
        names = [*before, "gpt-5"]
        entries = {name: {"litellm_provider": "openai", "max_input_tokens": limit} for name in names}
        file.write_text(json.dumps(entries, indent=4))

    written(272_000)
    assert size(Catalogue(file, kept)) == 272_000
    whole = kept.read_text()
    if spoil == "cut":
        kept.write_text(whole[:-9])
    elif spoil == "other sum":
        kept.write_text(whole.replace("gpt-5", "gpt-6"))
    elif spoil == "no text":
        kept.write_bytes(b"\xff\xfe\x00")
    elif spoil == "another file":
        written(400_000, "a much longer name", "another one")
    elif spoil == "a folder":
        kept.unlink()
        kept.mkdir()
    elif spoil == "unwritable":
        kept = file / "no folder" / "catalogue.index"
    elif spoil is None:  # what is read is what is kept, not the catalogue: its keys are not looked for again
        file.write_bytes(file.read_bytes().replace(b"gpt-5", b"gpt-7"))
        changed = int(whole.split("\t")[2])
        os.utime(file, ns=(changed, changed))
    assert size(Catalogue(file, kept)) == (400_000 if spoil == "another file" else 272_000)
    if kept.is_file():
        assert spoil == "another file" or kept.read_text() == whole
    assert [left.name for left in (tmp_path / "cache").iterdir()] == ["catalogue.index"]


def test_the_installed_catalogue_is_found_and_read_without_importing_litellm() -> None:
    program = (
        "import sys\nfrom agentx.config.links import Link, Provider\n"
        "from agentx.windows.catalogue import Catalogue, catalogue_file\n"
        "p = Provider(name='openai', card='openai', wire='openai', catalogue=('openai',))\n"
        "print(Catalogue(catalogue_file()).window(Link(provider=p, model='gpt-5', name='x')).size)\n"
        "assert 'litellm' not in sys.modules and 'pydantic' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "272000\n"
    assert catalogue_file() is not None
