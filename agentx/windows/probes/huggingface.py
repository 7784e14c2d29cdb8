"""Hugging Face's router: one model, several providers, each with its own `context_length`.

A suffix picks one (`owner/model:groq`); `:fastest`, `:cheapest` or none leave the choice to the router, and then
the smallest counts (facts: windows, section 2).
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, by_id, lists, rows

CHOICES = ("fastest", "cheapest", "preferred")


def asks(link: Link) -> tuple[Ask, ...]:
    return (lists(link),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = rows(answers.table(asks(link)[0]), "data")
    model, _, picked = link.model.partition(":")
    entry = by_id(entries, model)
    if entry is None or "providers" not in entry:
        return None
    providers = rows(entry.get("providers"))
    chosen = picked.casefold()
    if chosen and chosen not in CHOICES:
        providers = [one for one in providers if str(one.get("provider")).casefold() == chosen]
    numbers = Numbers()
    where = "GET /v1/models providers[].context_length"
    lengths = [numbers.take(where, one.get("context_length")) for one in providers]
    return Reading(
        kind="listed",
        detail=where + (f" of {chosen}" if chosen and chosen not in CHOICES else ", the smallest"),
        served=min((length for length in lengths if length), default=None),
        refused=tuple(numbers.refused),
    )


PROBE = Probe("huggingface", asks, read)
