"""Checks what a model passed against a tool's schema: near-misses of certain meaning are forgiven, no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from agentx.errors import ToolFailed
from agentx.tools.tool import Spec

# Names that models bring along from other harnesses; each stands for one thing only.
ALIASES: Mapping[str, str] = {
    "cmd": "command",
    "dir": "path",
    "directory": "path",
    "file": "path",
    "file_path": "path",
    "filename": "path",
    "filepath": "path",
    "new_str": "new",
    "new_string": "new",
    "old_str": "old",
    "old_string": "old",
    "query": "pattern",
    "regex": "pattern",
    "replace_all": "all",
    "text": "content",
    "todos": "items",
    "tool_call_id": "id",
}
WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


class Misfit(Exception):
    """A value that is not of the wanted type, and whose meaning is not certain."""


def parsed(text: str) -> dict[str, Any]:
    """The arguments of a call as an object; an object that was put into a string once more is unpacked.

    Raises ToolFailed when they are no JSON object.
    """
    try:
        value: Any = json.loads(text or "{}")
        if isinstance(value, str):
            value = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ToolFailed(f"the arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ToolFailed("the arguments are not a JSON object")
    return cast("dict[str, Any]", value)


def checked(spec: Spec, given: Mapping[str, Any]) -> dict[str, Any]:
    """*given* with every value of the type that *spec* wants. Raises ToolFailed that says what was expected."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        target = _target(spec, name, given)
        if target is None:
            if value is None:
                continue
            close = get_close_matches(name, list(spec.properties), n=1)
            meant = f" (did you mean `{close[0]}`?)" if close else ""
            raise ToolFailed(f"unknown argument `{name}`{meant}; expected {spec.usage()}")
        if value is None:
            continue
        wanted = str(spec.properties[target]["type"])
        try:
            values[target] = coerced(wanted, value)
        except Misfit:
            raise ToolFailed(
                f"`{name}` must be {WORDS[wanted]}, not {described(value)}; expected {spec.usage()}"
            ) from None
    missing = [name for name in spec.required if name not in values]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ToolFailed(f"missing {listed}; expected {spec.usage()}")
    return values


def _target(spec: Spec, name: str, given: Mapping[str, Any]) -> str | None:
    if name in spec.properties:
        return name
    alias = ALIASES.get(name)
    return alias if alias in spec.properties and alias not in given else None


def coerced(wanted: str, value: Any) -> Any:
    """*value* as JSON type *wanted*: `"5"` is 5, `5.0` is 5, `"true"` is true. Raises Misfit when unsure."""
    match wanted, value:
        case "boolean", bool():
            return value
        case "boolean", str() if value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        case (("integer" | "number"), bool()):
            raise Misfit
        case (("integer" | "number"), int() | float() | str()):
            return _number(wanted, value)
        case "string", str():
            return value
        case "string", int() | float() if not isinstance(value, bool):
            return json.dumps(value)
        case "array", list():
            return cast("list[Any]", value)
        case "array", str():
            return _list(value)
        case _:
            raise Misfit


def _number(wanted: str, value: float | str) -> int | float:
    try:
        number = float(value)
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        raise Misfit from None
    if wanted == "integer" or number != number or number in {float("inf"), float("-inf")}:
        raise Misfit
    return number


def _list(text: str) -> list[Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise Misfit from None
    if not isinstance(value, list):
        raise Misfit
    return cast("list[Any]", value)


def described(value: Any) -> str:
    """*value* in a few characters, with its type."""
    for kind, word in ((bool, "boolean"), (str, "string"), (list, "list"), (dict, "object")):
        if isinstance(value, kind):
            text = json.dumps(value, ensure_ascii=True)
            return f"the {word} {text if len(text) <= 60 else text[:57] + '...'}"
    return f"the number {value}"
