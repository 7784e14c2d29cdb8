"""`agentx local`: a small model of one's own, and the server that runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from agentx.cli.output import answer, answer_json, table, tell
from agentx.cli.session import Session
from agentx.errors import RequestFailed, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentx.wires.local_models import Model

STEP_PERCENT = 10
json_flag = click.option("--json", "as_json", is_flag=True, help="The outcome as one JSON document.")


@click.group()
def local() -> None:
    """Get and keep a small model of one's own: no key, no account, no network afterwards."""


@local.command()
@click.argument("name", required=False)
@click.option("--force", is_flag=True, help="Get the model again even if it is there.")
@json_flag
@click.pass_obj
def pull(session: Session, *, name: str | None, force: bool, as_json: bool) -> None:
    """Get the model NAME (the smallest one by default), and a llama-server if there is none.

    Both are checked against a pinned SHA-256. A download that was interrupted goes on where it stopped.
    """
    import httpx

    from agentx.wires.local_find import server_folder
    from agentx.wires.local_models import SERVER
    from agentx.wires.local_pull import pull_model, pull_server

    model, folders = _model(name), session.paths()
    with bar(f"{model.title}") as progress, httpx.Client() as client:
        file = pull_model(model, folders.models, client=client, progress=progress, tell=tell, force=force)
    program = _server(session)
    if program is None:
        with bar("llama-server") as progress:
            program = pull_server(SERVER, server_folder(folders), progress=progress)
    if as_json:
        answer_json({"model": model.name, "file": str(file), "size": model.size, "server": str(program)})
        return
    tell(f"model   {file}\nserver  {program}")
    answer(f"`agentx run --chain local/{model.name} TASK` uses it; `agentx demo --real` shows it at work")


@local.command(name="list")
@json_flag
@click.pass_obj
def list_(session: Session, *, as_json: bool) -> None:
    """List the models that can be had and those that are there, and say which server would run them."""
    from agentx.wires.local_find import models_in
    from agentx.wires.local_models import MODELS, model_of_file

    there = models_in(session.paths())
    rows = [
        _row(one.name, one.title, one.size, next((f for f in there if f.name == one.file), None)) for one in MODELS
    ]
    rows += [_row(f.stem, "", f.stat().st_size, f) for f in there if model_of_file(f.name) is None]
    program = _server(session)
    if as_json:
        answer_json({"models": rows, "server": None if program is None else str(program)})
        return
    shown = [
        (row["name"], f"{row['size'] / 1e6:,.0f} MB", "yes" if row["file"] else "no", row["title"]) for row in rows
    ]
    answer(table(["MODEL", "SIZE", "HERE", "WHAT"], shown))
    tell(f"server  {program or 'none: `agentx local pull` gets one'}")


@local.command()
@click.argument("name")
@json_flag
@click.pass_obj
def rm(session: Session, *, name: str, as_json: bool) -> None:
    """Delete the file of the model NAME, and what is left of an interrupted download of it."""
    from agentx.wires.local_find import models_in
    from agentx.wires.local_models import model_named

    folder, known = session.paths().models, model_named(name)
    names = {known.file} if known else {name, f"{name}.gguf"}
    found = [file for file in models_in(session.paths()) if file.name in names]
    found += [part for one in names if (part := folder / f"{one}.partial").is_file()]
    if not found:
        raise UsageError(f"no model `{name}` in {folder}", hint="`agentx local list` shows what is there")
    for file in found:
        file.unlink()
    if as_json:
        answer_json({"deleted": [str(file) for file in found]})
    else:
        answer("\n".join(f"deleted {file}" for file in found))


def _model(name: str | None) -> Model:
    """The model to get. Raises UsageError for a name that is not in the table."""
    from agentx.wires.local_models import MODELS, model_named

    if name is None:
        return MODELS[0]
    if (model := model_named(name.removeprefix("local/"))) is None:
        known = ", ".join(f"`{one.name}`" for one in MODELS)
        raise UsageError(
            f"no model `{name}` can be pulled; there is {known}",
            hint="any GGUF file will do: put it into the folder that `agentx local list` shows, "
            "or set `AGENTX_LOCAL_MODEL`",
        )
    return model


def _server(session: Session) -> Path | None:
    from agentx.wires.local_find import find_server

    try:
        return find_server({}, session.paths(), session.environ)
    except RequestFailed:
        return None


def _row(name: str, title: str, size: int, file: Path | None) -> dict[str, Any]:
    return {"name": name, "title": title, "size": size, "file": None if file is None else str(file)}


@contextmanager
def bar(what: str) -> Generator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, else a line for every tenth; on stderr."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda source, done, total: progress.update(
            task, completed=done, total=total, description=f"{what} ({source})"
        )


def _lines(what: str) -> Callable[[str, int, int], None]:
    told = -1

    def progress(source: str, done: int, total: int) -> None:
        nonlocal told
        tenth = min(100, 100 * done // max(total, 1)) // STEP_PERCENT
        if tenth > told:
            told = tenth
            tell(f"{what}: {tenth * STEP_PERCENT} % of {total / 1e6:,.0f} MB ({source})")

    return progress
