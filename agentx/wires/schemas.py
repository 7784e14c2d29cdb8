"""The schema of a tool in the words that a provider takes, always from a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

Schemas = Literal["whole", "gemini", "grammar"]
"""`gemini`: a small part of JSON schema. `grammar`: llama.cpp and its kin make a grammar of it."""

_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMA = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LIST_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_LEFT_OUT: Mapping[Schemas, frozenset[str]] = {
    "whole": frozenset({"$schema"}),
    "gemini": frozenset({"$schema", "$id", "$comment", "additionalProperties", "patternProperties", "const"}),
    # A pattern must be anchored and simple, a format one of four: the model is told by the description anyway.
    "grammar": frozenset({"$schema", "pattern", "format"}),
}


def cleaned(schema: Mapping[str, Any], schemas: Schemas) -> dict[str, Any]:
    """A copy of *schema* without what is refused; an array always says what it holds (OpenAI, Gemini)."""
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in _LEFT_OUT[schemas]:
            made[key] = _inner(key, value, lambda inner: cleaned(inner, schemas))
    if schemas == "gemini" and "const" in schema:
        made |= {"enum": [schema["const"]]}
    if made.get("type") == "array" and "items" not in made:
        made["items"] = {"type": "string"} if schemas == "gemini" else {}
    return made


def _inner(key: str, value: Any, clean: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    if key in _OF_SCHEMAS and isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        return {name: _inner("not", inner, clean) for name, inner in named.items()}
    if key in _LIST_OF_SCHEMAS and isinstance(value, Sequence) and not isinstance(value, str):
        return [_inner("not", inner, clean) for inner in cast("Sequence[Any]", value)]
    if key in _SCHEMA and isinstance(value, Mapping):
        return clean(cast("Mapping[str, Any]", value))
    return value
