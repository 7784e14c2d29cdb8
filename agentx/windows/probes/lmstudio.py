"""LM Studio: `/api/v0/models` has `loaded_context_length` of loaded models, `/api/v1/models` one per instance.

`/v1/models` has no window. Several instances of one model may hold different numbers: the smallest counts, since
the server chooses the instance.
"""

from __future__ import annotations

import re

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, address, dig, root, rows

INSTANCE = re.compile(r":\d+$")


def asks(link: Link) -> tuple[Ask, ...]:
    base = root(address(link))
    return Ask(f"{base}/api/v1/models"), Ask(f"{base}/api/v0/models")


def read(link: Link, answers: Answers) -> Reading | None:
    v1_ask, v0_ask = asks(link)
    numbers = Numbers()
    v1 = [entry for entry in rows(answers.table(v1_ask), "models") if "loaded_instances" in entry]
    v0 = [entry for entry in rows(answers.table(v0_ask), "data") if "state" in entry]
    if not v1 and not v0:
        return None
    return _instances(link.model, v1, numbers) or _loaded(link.model, v0, numbers)


def _instances(model: str, entries: list[Table], numbers: Numbers) -> Reading | None:
    detail = "GET /api/v1/models loaded_instances[].config.context_length"
    for entry in entries:
        instances = rows(entry.get("loaded_instances"))
        exact = [one for one in instances if one.get("id") == model]
        if not exact and not _same(model, entry.get("key")):
            continue
        lengths = [numbers.take(detail, dig(one, "config.context_length")) for one in exact or instances]
        trained = numbers.take("GET /api/v1/models max_context_length", entry.get("max_context_length"))
        return Reading(
            kind="served",
            detail=detail if instances else "GET /api/v1/models, not loaded",
            served=min((length for length in lengths if length), default=None),
            trained=trained,
            refused=tuple(numbers.refused),
        )
    return None


def _loaded(model: str, entries: list[Table], numbers: Numbers) -> Reading | None:
    for entry in entries:
        if not _same(model, entry.get("id")):
            continue
        detail = "GET /api/v0/models loaded_context_length"
        loaded = entry.get("state") == "loaded"
        return Reading(
            kind="served",
            detail=detail if loaded else f"GET /api/v0/models, {entry.get('state')}",
            served=numbers.take(detail, entry.get("loaded_context_length")) if loaded else None,
            trained=numbers.take("GET /api/v0/models max_context_length", entry.get("max_context_length")),
            refused=tuple(numbers.refused),
        )
    return None


def _same(asked: str, offered: object) -> bool:
    """v0 leaves the publisher out of unique names; a variant `@q4_k_m` or instance `:2` is of the same model."""
    if not isinstance(offered, str):
        return False
    left, right = (INSTANCE.sub("", name.casefold()) for name in (asked, offered))
    if left == right:
        return True
    left, right = left.partition("@")[0], right.partition("@")[0]
    one_is_short = ("/" in left) != ("/" in right)
    return left == right or (one_is_short and left.rpartition("/")[2] == right.rpartition("/")[2])


PROBE = Probe("lmstudio", asks, read)
