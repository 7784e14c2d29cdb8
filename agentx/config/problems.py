"""What pydantic found wrong, in our words: where it stands, what was expected, and the name that was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from agentx.config.settings import MEANT, MODEL
from agentx.config.yamlfile import Location
from agentx.errors import Problem

Where = Callable[[Location, bool], str]
"""The place of the value at a location, or of its key when the second argument is true."""

EXPECTED: Mapping[str, str] = {
    "bool": "true or false",
    "dict": "a table of `key: value` lines",
    "float": "a number",
    "finite_number": "a number",
    "int": "a whole number",
    "list": "a list",
    "model": "a table of `key: value` lines",
    "string": "text",
}


BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "more than {:g}"),
    "greater_than_equal": ("ge", "{:g} or more"),
    "less_than": ("lt", "less than {:g}"),
    "less_than_equal": ("le", "{:g} or less"),
}
WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*(k|m|h|hours?|tokens?)")


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The one of *names* that *word* is most likely a slip of, or None."""
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.65)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, names: Iterable[str]) -> str | None:
    """A hint with the nearest of *names*, or with all of them when they are few, or None."""
    known = sorted(names)
    if close := nearest(word, known):
        return f"did you mean `{close}`?"
    return "known: " + ", ".join(f"`{name}`" for name in known) if 0 < len(known) <= 60 else None


def problems(error: ValidationError, model: type[BaseModel], where: Where) -> list[Problem]:
    """One problem for each error that pydantic found in data for *model*."""
    return [problem(details, model, where) for details in error.errors(include_url=False)]


def problem(details: Mapping[str, Any], model: type[BaseModel], where: Where) -> Problem:
    at: Location = details["loc"]
    kind: str = details["type"]
    if kind == "extra_forbidden":
        *outer, key = at
        inside = f" in {dotted(outer)}" if outer else ""
        return Problem(
            where(at, True), f"unknown key `{key}`{inside}", did_you_mean(str(key), fields_at(model, (*outer,)))
        )
    if kind == "missing":
        *outer, key = at
        return Problem(where((*outer,), False), f"{dotted(outer) or 'the file'} needs `{key}`")
    what = complaint(kind, details)
    place = where(at, False)
    told = not at or place == f"-c {dotted(at)}"
    hint = plain_number(details["input"]) if kind in ("int_parsing", "float_parsing") else None
    return Problem(place, what if told else f"{dotted(at)}: {what}", hint)


def plain_number(value: Any) -> str | None:
    """A hint for what was written with a unit: `32k` is 32000, and `2h` is 2 where hours are meant."""
    found = WITH_UNIT.fullmatch(str(value).strip().lower())
    if found is None:
        return None
    number = float(found[1]) * {"k": 1_000, "m": 1_000_000}.get(found[2], 1)
    return f"write the number alone: `{number:.15g}`"


def complaint(kind: str, details: Mapping[str, Any]) -> str:
    """What was expected and what is there, for every kind of error that is about a value."""
    value, context = details["input"], details.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"expected {context['expected'].replace(chr(39), '`')}, got {shown(value)}"
    if kind == "string_pattern_mismatch" and context["pattern"] in MEANT:
        meant = f"expected {MEANT[context['pattern']]}"
        # Where a variable's name or an address belongs, people put the key itself: it is not repeated.
        return f"{meant}, got {shown(value)}" if context["pattern"] == MODEL else meant
    if kind in BOUNDS:
        name, words = BOUNDS[kind]
        return f"expected {words.format(context[name])}, got {shown(value)}"
    if kind == "too_short" and context["min_length"] == 1:
        return "is empty, expected one entry or more"
    if kind == "int_from_float":
        return f"expected a whole number, got {shown(value)}"
    noun = EXPECTED.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if noun is None:
        message = str(details["msg"])
        return f"{message[:1].lower()}{message[1:]}, got {shown(value)}"
    quotes = "; put it in quotes" if noun == "text" and isinstance(value, int | float) else ""
    return f"expected {noun}, got {shown(value)}{quotes}"


def shown(value: Any) -> str:
    """*value* as a person would write it, at most 60 characters of it."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    words: dict[Any, str] = {None: "nothing", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def dotted(at: Sequence[str | int]) -> str:
    """A location as people write it: `chains.overnight[0].window`."""
    text = ""
    for part in at:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def fields_at(model: Any, at: Location) -> list[str]:
    """The keys that the table at *at* may have; none when it takes any."""
    shape = shape_at(model, at)
    return list(shape.model_fields) if isinstance(shape, type) and issubclass(shape, BaseModel) else []


def shape_at(model: Any, at: Location) -> Any:
    """The type of the value at *at* below *model*; `Any` inside of free tables, None where nothing can stand."""
    shape = stripped(model)
    for part in at:
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            found = shape.model_fields.get(str(part))
            shape = stripped(found.annotation) if found else None
        elif get_origin(shape) is (list if isinstance(part, int) else dict):
            shape = stripped(get_args(shape)[-1])
        else:
            return Any if shape is Any else None
    return shape


def stripped(annotation: Any) -> Any:
    """*annotation* without `Annotated` and without `| None`."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, UnionType):
            annotation = next(part for part in get_args(annotation) if part is not type(None))
        else:
            return annotation
