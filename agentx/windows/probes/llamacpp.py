"""llama.cpp (and llamafile): `/v1/models` `data[].meta.n_ctx` and `/props` say the window of one slot.

A single server takes any model name; a router lists several and its bare `/props` says 0. Builds without
`meta.n_ctx` have it in `/props`, and where a key keeps that shut perhaps in `/slots`. `n_ctx_train` is the trained
length and no window. `/props?model=` is never asked: a build that does not know `autoload=false` loads the model.
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import (
    Answers,
    Ask,
    Numbers,
    Probe,
    Reading,
    Table,
    address,
    by_id,
    dig,
    lists,
    root,
    rows,
)

OWNER = "llamacpp"


def asks(link: Link) -> tuple[Ask, ...]:
    return lists(link), Ask(f"{root(address(link))}/props")


def more(link: Link, answers: Answers) -> tuple[Ask, ...]:
    """The slots, when it is one llama.cpp server that has not said its window yet: a busy one says much there."""
    reading = read(link, answers)
    return (_slots(link),) if reading and not reading.found and not _is_router(link, answers) else ()


def read(link: Link, answers: Answers) -> Reading | None:
    list_ask, props_ask = asks(link)
    listed = rows(answers.any(list_ask), "data")
    entries = [one for one in listed if _ours(one)]
    settings = dig(answers.table(props_ask), "default_generation_settings")
    foreign = any(one.get("owned_by") not in (None, OWNER) for one in listed)  # KoboldCpp has a `/props` too
    if not entries and (foreign or not isinstance(settings, dict)):
        return None
    is_router = _is_router(link, answers)
    entry = by_id(entries, link.model) or (entries[0] if len(entries) == 1 and not is_router else None)
    numbers = Numbers()
    meta = dig(entry, "meta")
    served, detail = numbers.take("GET /v1/models meta.n_ctx", dig(meta, "n_ctx")), "GET /v1/models meta.n_ctx"
    if served is None and not is_router:
        detail = "GET /props default_generation_settings.n_ctx"
        served = numbers.take(detail, dig(settings, "n_ctx"))
    if served is None and not is_router and (slots := rows(answers.any(_slots(link)))):
        detail = "GET /slots n_ctx"
        sizes = [numbers.take(detail, slot.get("n_ctx")) for slot in slots]
        served = min((size for size in sizes if size), default=None)
    return Reading(
        kind="served",
        detail=detail,
        served=served,
        trained=numbers.take("GET /v1/models meta.n_ctx_train", dig(meta, "n_ctx_train")),
        refused=tuple(numbers.refused),
    )


def _ours(entry: Table) -> bool:
    return entry.get("owned_by") == OWNER or dig(entry, "meta.n_ctx_train") is not None


def _is_router(link: Link, answers: Answers) -> bool:
    """Only a router says of each model whether it is running, however many it has."""
    list_ask, props_ask = asks(link)
    entries = [one for one in rows(answers.any(list_ask), "data") if _ours(one)]
    return (
        dig(answers.table(props_ask), "role") == "router"
        or len(entries) > 1
        or any("status" in one for one in entries)
    )


def _slots(link: Link) -> Ask:
    return Ask(f"{root(address(link))}/slots")


PROBE = Probe("llamacpp", asks, read, owners=(OWNER,), more=more)
