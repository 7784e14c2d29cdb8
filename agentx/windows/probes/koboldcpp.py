"""KoboldCpp: `/api/extra/true_max_context_length` is the window of the loaded model; nobody else has that route.

It also speaks Ollama's and llama.cpp's protocols and trims a prompt that is too long in silence (facts: windows,
sections 1.7 and 8). In router mode its list has the loaded model first, and the others are loaded on demand.
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
    lists,
    root,
    rows,
)

OWNER = "koboldcpp"


def asks(link: Link) -> tuple[Ask, ...]:
    return lists(link), Ask(f"{root(address(link))}/api/extra/true_max_context_length")


def more(link: Link, answers: Answers) -> tuple[Ask, ...]:
    """The older route, which the Kobold protocol has; it may name less than the server holds."""
    list_ask, true_ask = asks(link)
    owned = any(one.get("owned_by") == OWNER for one in rows(answers.any(list_ask), "data"))
    return (_older(link),) if owned and answers.table(true_ask) is None else ()


def read(link: Link, answers: Answers) -> Reading | None:
    list_ask, true_ask = asks(link)
    entries = [one for one in rows(answers.any(list_ask), "data") if one.get("owned_by") == OWNER]
    asked = next((ask for ask in (true_ask, _older(link)) if "value" in (answers.table(ask) or {})), None)
    if asked is None and not entries:
        return None
    numbers = Numbers()
    where = f"{(asked or true_ask).shown} value"
    loaded = len(entries) < 2 or by_id(entries[:1], link.model) is not None
    value = (answers.table(asked) or {}).get("value") if asked else None
    return Reading(
        kind="served",
        detail=where if loaded else "GET /v1/models, not loaded",
        served=numbers.take(where, value) if loaded else None,
        refused=tuple(numbers.refused),
    )


def _older(link: Link) -> Ask:
    return Ask(f"{root(address(link))}/api/v1/config/max_context_length")


PROBE = Probe("koboldcpp", asks, read, owners=(OWNER,), more=more)
