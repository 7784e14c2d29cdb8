"""`agentx config`: what is set and by whom, whether it is right, where it lies, what could be set."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from agentx.cli.output import answer, answer_json, table, tell
from agentx.cli.session import Session
from agentx.cli.words import count
from agentx.errors import ConfigError, Problem, StateError, UsageError

if TYPE_CHECKING:
    from agentx.config.load import Config
    from agentx.config.settings import Table

DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@click.group(invoke_without_command=True)
@click.pass_context
def config(context: click.Context) -> None:
    """Show and check the settings; without a command, show them."""
    if context.invoked_subcommand is None:
        context.invoke(show)


@config.command()
@click.option("--origin", is_flag=True, help="Say where each value was set: file:line:column, variable, option.")
@json_option
@click.pass_obj
def show(session: Session, *, origin: bool = False, as_json: bool = False) -> None:
    """Print the settings that count here."""
    loaded = session.config()
    values = loaded.settings.model_dump(mode="json")
    chains = {name: [set_only(link) for link in links] for name, links in loaded.settings.chains.items()}
    values |= {"chains": chains, "providers": {n: set_only(p) for n, p in loaded.settings.providers.items()}}
    placed = [(".".join(at), value, loaded.where(*at)) for at, value in leaves(values)]
    if as_json:
        origins = {at: where for at, _, where in placed}
        files = [str(file) for file in loaded.files]
        answer_json({"settings": values, "origins": origins, "files": files, "warnings": list(loaded.warnings)})
        return
    for warning in loaded.warnings:
        tell(f"warning: {warning}")
    rows = [(at, said(value), where) for at, value, where in placed]
    answer(
        table(("setting", "value", "origin"), rows)
        if origin
        else table(("setting", "value"), [r[:2] for r in rows])
    )


def set_only(values: Table) -> dict[str, Any]:
    """What was set of *values*; of headers only their names, since people write keys into them."""
    shown = values.model_dump(mode="json", exclude_unset=True)
    if "headers" in shown:
        shown["headers"] = dict.fromkeys(shown["headers"], "(hidden)")
    return shown


def leaves(value: Any, at: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every value with its keys; lists of tables by index."""
    if isinstance(value, dict) and value:
        inside = cast("dict[str, Any]", value)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[Any]", value)):
        inside = {str(index): item for index, item in enumerate(cast("list[Any]", value))}
    else:
        return [(at, value)]
    return [leaf for key, item in inside.items() for leaf in leaves(item, (*at, key))]


def said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@config.command()
@json_option
@click.pass_obj
def check(session: Session, *, as_json: bool) -> None:
    """Check settings, cards and windows files."""
    loaded = session.config()
    problems = [*loaded.problems(), *tool_problems(loaded), *windows_problems(session)]
    if problems:
        raise ConfigError(problems)
    files = [str(file) for file in loaded.files]
    if as_json:
        answer_json({"ok": True, "files": files, "cards": sorted(loaded.cards), "warnings": list(loaded.warnings)})
        return
    for warning in loaded.warnings:
        tell(f"warning: {warning}")
    answer(summary(loaded, files))


def summary(loaded: Config, files: Sequence[str]) -> str:
    settings = loaded.settings
    sizes = {"chain": settings.chains, "provider": settings.providers, "card": loaded.cards}
    counts = ", ".join(count(len(there), noun) for noun, there in sizes.items())
    return f"ok: {', '.join(files) or 'no file, only defaults'} ({counts})"


def tool_problems(loaded: Config) -> Sequence[Problem]:
    from agentx.config.problems import did_you_mean
    from agentx.tools.toolbox import TOOL_NAMES

    where = loaded.where("tools", "only")
    return [
        Problem(where, f"there is no tool `{name}`", did_you_mean(name, TOOL_NAMES))
        for name in loaded.settings.tools.only or ()
        if name not in TOOL_NAMES
    ]


def windows_problems(session: Session) -> Sequence[Problem]:
    from agentx.windows.tables import load_tables

    try:
        load_tables(session.paths())
    except ConfigError as error:
        return error.problems
    return []


@config.command()
@json_option
@click.pass_obj
def path(session: Session, *, as_json: bool) -> None:
    """Print where your own agentx.yaml lies."""
    from agentx.config.load import project_file

    paths = session.paths()
    found = project_file(session.cwd, paths.user_file)
    places: dict[str, Path | None] = {
        "user": paths.user_file,
        "project": found,
        "providers": paths.config / "providers",
        "windows": paths.config / "windows.yaml",
        "state": paths.state,
        "cache": paths.cache,
    }
    if as_json:
        answer_json({name: None if place is None else str(place) for name, place in places.items()})
        return
    for name, place in list(places.items())[1:]:
        tell(f"{name}: {place or 'none'}")
    answer(str(paths.user_file))


@config.command()
@click.option("--card", is_flag=True, help="The schema of a provider's card, `providers/NAME.yaml`, instead.")
@click.option("--env", "variables", is_flag=True, help="List the AGENTX_... variables instead.")
@click.option("--json", "as_json", is_flag=True, help="The list of variables as JSON; a schema always is.")
def schema(*, card: bool, variables: bool, as_json: bool) -> None:
    """Print the JSON schema of agentx.yaml, for editors."""
    from agentx.config.environment import SPECIAL
    from agentx.config.environment import variables as names

    if card and variables:
        raise UsageError("`--card` and `--env` are two different things", hint="`agentx config schema --card`")
    if not variables:
        answer(card_schema() if card else schema_text())
        return
    rows = [*SPECIAL.items(), *names()]
    if as_json:
        answer_json({"variables": [{"name": name, "description": text} for name, text in rows]})
        return
    answer(table(("variable", "what it sets"), rows))


def schema_text() -> str:
    from agentx.config.settings import Settings

    return json.dumps(DIALECT | Settings.model_json_schema() | {"title": "agentx.yaml"}, indent=2)


def card_schema() -> str:
    from agentx.config.cards import Card

    return json.dumps(DIALECT | Card.model_json_schema() | {"title": "providers/NAME.yaml"}, indent=2)


@config.command()
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@click.pass_obj
def init(session: Session, *, force: bool, as_json: bool) -> None:
    """Write a commented agentx.yaml that sets nothing.

    Its schema for editors is put beside it.
    """
    from agentx.config.template import TEMPLATE

    file = session.paths().user_file
    try:
        write_new(file, TEMPLATE, force=force)
        write_new(file.with_name("agentx.schema.json"), schema_text(), force=True)
    except FileExistsError as error:
        hint = "`agentx config init --force` replaces it; `agentx config show` says what is set"
        raise UsageError(f"{file}: is there already", hint=hint) from error
    except OSError as error:
        hint = "choose another folder: `AGENTX_HOME=DIR`"
        raise StateError(
            f"{file}: cannot be written: {(error.strerror or str(error)).lower()}", hint=hint
        ) from error
    if as_json:
        answer_json({"file": str(file)})
        return
    answer(str(file))
    tell("written; every line is a comment: take the signs off what you want to set, then `agentx config check`")


def write_new(file: Path, text: str, *, force: bool) -> None:
    """*text* as *file*, whole or not at all. Raises FileExistsError unless *force*, and OSError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        if force:
            part.replace(file)
        else:
            file.hardlink_to(part)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
