"""OpenRouter: a request is held to the endpoint it is routed to, so the smallest of a model's endpoints counts.

The list of models says the largest (`context_length`) and the top provider's; both may be wrong for the endpoint.
`:free` and its like are models of their own, with smaller windows; `:nitro`, `:floor`, `:online` and `:exacto`
only say how to choose among the endpoints of the plain model (facts: windows, section 2).
"""

from __future__ import annotations

from urllib.parse import quote

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, address, by_id, dig, rows

ROUTERS = ("openrouter/auto", "auto")
"""Choose another model for each request: no window is theirs. Aliases that begin with `~` move, too."""
ROUTINGS = (":nitro", ":floor", ":online", ":exacto")


def asks(link: Link) -> tuple[Ask, ...]:
    base = address(link, "https://openrouter.ai/api/v1")
    return Ask(f"{base}/models/{quote(_plain(link.model), safe='/:')}/endpoints"), Ask(f"{base}/models")


def read(link: Link, answers: Answers) -> Reading | None:
    if link.model in ROUTERS or link.model.startswith("~"):
        return None
    endpoints_ask, list_ask = asks(link)
    numbers = Numbers()
    endpoints = rows(dig(answers.table(endpoints_ask), "data.endpoints"))
    served = _smallest(endpoints, "context_length", numbers)
    prompt = _smallest(endpoints, "max_prompt_tokens", numbers)
    if served or prompt:
        return Reading(
            kind="listed",
            detail="GET /models/{id}/endpoints context_length, the smallest",
            served=served,
            prompt=prompt,
            output=_smallest(endpoints, "max_completion_tokens", numbers),
            refused=tuple(numbers.refused),
        )
    entry = by_id(rows(answers.table(list_ask), "data"), _plain(link.model))
    if entry is None:
        return None
    top = numbers.take("GET /models top_provider.context_length", dig(entry, "top_provider.context_length"))
    whole = numbers.take("GET /models context_length", entry.get("context_length"))
    return Reading(
        kind="listed",
        detail="GET /models top_provider.context_length" if top else "GET /models context_length",
        served=top or whole,
        output=numbers.take(
            "GET /models top_provider.max_completion_tokens", dig(entry, "top_provider.max_completion_tokens")
        ),
        refused=tuple(numbers.refused),
    )


def _plain(model: str) -> str:
    for routing in ROUTINGS:
        model = model.removesuffix(routing)
    return model


def _smallest(endpoints: list[Table], name: str, numbers: Numbers) -> int | None:
    values = [numbers.take(f"endpoints {name}", one.get(name)) for one in endpoints]
    return min((value for value in values if value), default=None)


PROBE = Probe("openrouter", asks, read)
