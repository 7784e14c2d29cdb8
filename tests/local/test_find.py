"""Where the embedded server and its model are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentx.config.links import Link, Provider
from agentx.config.paths import Paths, paths
from agentx.errors import RequestFailed
from agentx.wires.local import installed
from agentx.wires.local_find import find_model, find_server, server_folder, template_for, window_of
from agentx.wires.local_models import MODELS, QWEN, SERVER


@pytest.fixture
def folders(tmp_path: Path) -> Paths:
    return paths({"AGENTX_HOME": str(tmp_path / "home")})


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_the_option_wins_over_the_variable_and_the_variable_over_path(tmp_path: Path, folders: Paths) -> None:
    option, variable, on_path, pulled = (
        program(tmp_path / "option" / "llama-server"),
        program(tmp_path / "variable" / "llama-server"),
        program(tmp_path / "path" / "llama-server"),
        program(server_folder(folders) / SERVER.program),
    )
    environ = {"PATH": str(on_path.parent), "AGENTX_LOCAL_SERVER": str(variable)}
    assert find_server({"server": str(option)}, folders, environ) == option
    assert find_server({}, folders, environ) == variable
    assert find_server({}, folders, {"PATH": str(on_path.parent)}) == on_path
    assert find_server({}, folders, {"PATH": "/nowhere"}) == pulled


def test_a_server_that_is_nowhere_names_the_command_that_gets_one(folders: Paths) -> None:
    with pytest.raises(RequestFailed) as caught:
        find_server({}, folders, {"PATH": "/nowhere"})
    assert caught.value.error_class == "not_found"
    assert "`agentx local pull`" in (caught.value.hint or "")


@pytest.mark.parametrize("where", ["options.server", "AGENTX_LOCAL_SERVER"])
def test_a_named_server_that_is_not_there_is_not_replaced_by_another(where: str, folders: Paths) -> None:
    program(server_folder(folders) / SERVER.program)
    options: dict[str, Any] = {"server": "/no/such"} if where == "options.server" else {}
    with pytest.raises(RequestFailed, match=f"local: {where}: `/no/such` is no program"):
        find_server(options, folders, {"AGENTX_LOCAL_SERVER": "/no/such"} if not options else {})


def test_a_model_is_found_by_the_names_that_people_use(tmp_path: Path, folders: Paths) -> None:
    folders.models.mkdir(parents=True)
    known, own = folders.models / QWEN.file, folders.models / "Llama-3.2-1B-Q4.gguf"
    known.touch()
    own.touch()
    assert find_model(QWEN.name, {}, folders, {}) == known
    assert find_model(QWEN.file, {}, folders, {}) == known
    assert find_model("Llama-3.2-1B-Q4", {}, folders, {}) == own
    assert find_model("llama-3.2", {}, folders, {}) == own
    assert find_model("anything", {}, folders, {"AGENTX_LOCAL_MODEL": str(own)}) == own
    assert find_model("anything", {"model_file": str(known)}, folders, {"AGENTX_LOCAL_MODEL": str(own)}) == known


def test_a_model_that_is_not_there_says_how_to_get_it(folders: Paths) -> None:
    with pytest.raises(RequestFailed) as caught:
        find_model(QWEN.name, {}, folders, {})
    assert caught.value.hint == f"`agentx local pull {QWEN.name}`"
    with pytest.raises(RequestFailed, match=r"AGENTX_LOCAL_MODEL: `/no/such.gguf` is no file"):
        find_model(QWEN.name, {}, folders, {"AGENTX_LOCAL_MODEL": "/no/such.gguf"})


def test_our_template_is_for_the_models_that_need_it_only(tmp_path: Path) -> None:
    ours = template_for(Path(QWEN.file), {})
    assert ours is not None
    assert ours.is_file()
    assert template_for(Path("qwen2.5-coder-1.5b-q8_0.gguf"), {}) == ours
    assert template_for(Path("Llama-3.2-1B-Q4.gguf"), {}) is None
    assert template_for(Path(QWEN.file), {"template": "own"}) is None
    mine = tmp_path / "mine.jinja"
    mine.touch()
    assert template_for(Path(QWEN.file), {"template": str(mine)}) == mine


def test_installed_means_server_and_model(tmp_path: Path, folders: Paths) -> None:
    environ = {"AGENTX_HOME": str(tmp_path / "home"), "PATH": "/nowhere"}
    assert not installed(environ)
    program(server_folder(folders) / SERVER.program)
    assert not installed(environ)
    folders.models.mkdir(parents=True)
    (folders.models / QWEN.file).touch()
    assert installed(environ)


def test_the_window_is_the_links_own_or_the_cards() -> None:
    provider = Provider(name="local", card="local", wire="openai", options={"window": 8192})
    assert window_of(Link(provider=provider, model="m", name="n")) == 8192
    assert window_of(Link(provider=provider, model="m", name="n", window=2304)) == 2304


def test_the_parts_of_each_model_make_the_whole() -> None:
    for model in MODELS:
        assert sum(part.size for part in model.parts) == model.size
        assert len({part.sha256 for part in model.parts}) == len(model.parts)
