"""Lemonade: `/api/v1/health` has each loaded model with the `ctx_size` that its llama-server was started with.

`max_context_window` is the trained length. A model that is not loaded may have a saved `ctx_size` in the list of
models (facts: windows, section 1.7).
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import (
    Answers,
    Ask,
    Numbers,
    Probe,
    Reading,
    address,
    by_id,
    dig,
    lists,
    root,
    rows,
)

LOADED = "all_models_loaded"
SIZE = "recipe_options.ctx_size"


def asks(link: Link) -> tuple[Ask, ...]:
    return Ask(f"{root(address(link))}/api/v1/health"), lists(link)


def read(link: Link, answers: Answers) -> Reading | None:
    health_ask, list_ask = asks(link)
    health = answers.table(health_ask) or {}
    if not isinstance(health.get(LOADED), list):
        return None
    numbers = Numbers()
    loaded = by_id(rows(health, LOADED), link.model, "model_name")
    saved = by_id(rows(answers.any(list_ask), "data"), link.model)
    where = f"GET /api/v1/health {LOADED}[].{SIZE}"
    served = numbers.take(where, dig(loaded, SIZE))
    default = numbers.take(f"{list_ask.shown} {SIZE}", dig(saved, SIZE)) if loaded is None else None
    lengths = [
        numbers.take("max_context_window", dig(one, "max_context_window")) for one in (loaded, saved) if one
    ]
    not_loaded = f"{list_ask.shown} {SIZE}" if default else "GET /api/v1/health, not loaded"
    return Reading(
        kind="served",
        detail=where if loaded else not_loaded,
        served=served,
        trained=next((length for length in lengths if length), None),
        default=default,
        refused=tuple(numbers.refused),
    )


PROBE = Probe("lemonade", asks, read, owners=("lemonade",))
