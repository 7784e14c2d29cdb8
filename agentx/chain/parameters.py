"""Parameters that a model refuses: which one a refusal names, and what to send instead. Pure and table-driven."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentx.chain.body import Said

Changes = Mapping[str, str | None]
"""The other name under which a parameter is sent, or None where it is left out."""

NAMES = (
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "reasoning_effort",
)
"""What a request can do without. The output budget has two names; it is left out when neither is taken."""
OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

REFUSED = re.compile(
    r"unsupported[_ ](parameter|value|argument|field)|extra_forbidden|extra (inputs|fields)"
    r"|(un(recogni[sz]ed|known|expected|supported)|invalid) (request )?"
    r"(argument|parameter|field|name|property|key)"
    r"|(not|un)[ -]?(supported|permitted|recogni[sz]ed)|(does not|doesn.t) support|deprecated|no longer"
    r"|only the default|only [\d.]+ is allowed|(may|can) only be set|cannot (both )?be (set|used|specified)",
    re.IGNORECASE,
)
NO_TOOLS = re.compile(
    r"(does not|doesn.t) support (tools?\b|tool[ -](use|calling|calls)|function[ -]calling|functions?\b)"
    r"|no endpoints found that support tool use"
    r"|(tools?|tool (use|calling)|function calling)[`'\"]* (is|are) not (supported|enabled)"
    r"|tool choice requires --enable-auto-tool-choice|tools? (param|parameter)?\s*requires --jinja",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The parameter that is refused, and the name that is wanted instead, where one is."""

    name: str
    instead: str | None = None


def refused_parameter(said: Said) -> Refusal | None:
    """The parameter that *said* refuses; None where it speaks of nothing that could be left out."""
    text = said.text
    if not REFUSED.search(text):
        return None
    named = next((str(value) for key, value in said.pairs if key == "param" and value in NAMES), None)
    found = named or _first_named(text)
    return None if found is None else Refusal(found, OTHER_NAME.get(found))


def _first_named(text: str) -> str | None:
    places = {name: match.start() for name in NAMES if (match := re.search(rf"\b{name}\b", text))}
    return min(places, key=lambda name: places[name], default=None)


def lacks_tools(said: Said) -> bool:
    """Whether the model cannot be given tools at all."""
    return NO_TOOLS.search(said.text) is not None


def changed(changes: Changes, refusal: Refusal) -> Changes | None:
    """*changes* and what *refusal* asks for; None when that was tried already."""
    if refusal.name in changes:
        return None
    came_from = next((name for name, new in changes.items() if new == refusal.name), None)
    if came_from is not None:  # neither name is taken
        return {**changes, came_from: None}
    return {**changes, refusal.name: refusal.instead}
