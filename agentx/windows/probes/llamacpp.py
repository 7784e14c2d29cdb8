"""llama.cpp (and llamafile): `/v1/models` `data[].meta.n_ctx` and `/props` say the window of one slot.

A single server takes any model name; a router lists several and its bare `/props` says 0. Builds without
`meta.n_ctx` have it in `/props`. `n_ctx_train` is the trained length and no window.
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


def asks(link: Link) -> tuple[Ask, ...]:
    return lists(link), Ask(f"{root(address(link))}/props")


def read(link: Link, answers: Answers) -> Reading | None:
    list_ask, props_ask = asks(link)
    entries = [one for one in rows(answers.any(list_ask), "data") if _ours(one)]
    props = answers.table(props_ask)
    settings = dig(props, "default_generation_settings")
    is_router = dig(props, "role") == "router" or len(entries) > 1
    if not entries and not isinstance(settings, dict):
        return None
    entry = by_id(entries, link.model) or (entries[0] if len(entries) == 1 and not is_router else None)
    numbers = Numbers()
    meta = dig(entry, "meta")
    served, detail = numbers.take("GET /v1/models meta.n_ctx", dig(meta, "n_ctx")), "GET /v1/models meta.n_ctx"
    if served is None and not is_router:
        detail = "GET /props default_generation_settings.n_ctx"
        served = numbers.take(detail, dig(settings, "n_ctx"))
    return Reading(
        kind="served",
        detail=detail,
        served=served,
        trained=numbers.take("GET /v1/models meta.n_ctx_train", dig(meta, "n_ctx_train")),
        refused=tuple(numbers.refused),
    )


def _ours(entry: Table) -> bool:
    return entry.get("owned_by") == "llamacpp" or dig(entry, "meta.n_ctx_train") is not None


PROBE = Probe("llamacpp", asks, read)
