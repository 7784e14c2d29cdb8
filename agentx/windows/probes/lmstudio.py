"""LM Studio: `/api/v0/models` has `loaded_context_length` of loaded models, `/api/v1/models` one per instance.

`/v1/models` has no window. Several instances of one model may hold different numbers: an instance that is asked
for by its own id counts alone, else the smallest, since the server chooses. One that is not loaded (any more) has
none: never that of its sisters.
"""

from __future__ import annotations

import re

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, address, dig, root, rows

INSTANCE = re.compile(r":\d+$")
V1 = "GET /api/v1/models loaded_instances[].config.context_length"
V0 = "GET /api/v0/models loaded_context_length"


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
    every = [(entry, one) for entry in entries for one in rows(entry.get("loaded_instances"))]
    exact = [(entry, one) for entry, one in every if one.get("id") == model]
    ours = [entry for entry, _ in exact] or _named(model, entries, "key")
    if not ours:
        return None
    chosen = [one for _, one in exact] or [
        one for entry, one in every if any(entry is mine for mine in ours) and _answers_to(model, entry)
    ]
    lengths = [numbers.take(V1, dig(one, "config.context_length")) for one in chosen]
    return Reading(
        kind="served",
        detail=V1 if chosen else "GET /api/v1/models, not loaded",
        served=min((length for length in lengths if length), default=None),
        trained=_trained("GET /api/v1/models", ours, numbers),
        refused=tuple(numbers.refused),
    )


def _loaded(model: str, entries: list[Table], numbers: Numbers) -> Reading | None:
    exact = [entry for entry in entries if entry.get("id") == model]
    ours = exact or _named(model, entries, "id")
    if not ours:
        return None
    awake = [entry for entry in ours if entry.get("state") == "loaded" and (exact or not INSTANCE.search(model))]
    lengths = [numbers.take(V0, entry.get("loaded_context_length")) for entry in awake]
    return Reading(
        kind="served",
        detail=V0 if awake else "GET /api/v0/models, not loaded",
        served=min((length for length in lengths if length), default=None),
        trained=_trained("GET /api/v0/models", ours, numbers),
        refused=tuple(numbers.refused),
    )


def _named(model: str, entries: list[Table], field: str) -> list[Table]:
    """The entries that *model* may mean: those of exactly that name, else of nearly that name."""
    for same in (_equal, _same):
        if found := [entry for entry in entries if same(model, entry.get(field))]:
            return found
    return []


def _equal(asked: str, offered: object) -> bool:
    return isinstance(offered, str) and asked.casefold() == offered.casefold()


def _same(asked: str, offered: object) -> bool:
    """v0 leaves the publisher out of unique names; a variant `@q4_k_m` or instance `:2` is of the same model."""
    if not isinstance(offered, str):
        return False
    left, right = (INSTANCE.sub("", name.casefold()).partition("@")[0] for name in (asked, offered))
    one_is_short = ("/" in left) != ("/" in right)
    return left == right or (one_is_short and left.rpartition("/")[2] == right.rpartition("/")[2])


def _answers_to(model: str, entry: Table) -> bool:
    """An instance number that no instance has, or another variant than the loaded one, is not loaded."""
    variant, chosen = model.partition("@")[2], entry.get("selected_variant")
    other = bool(variant) and isinstance(chosen, str) and chosen.partition("@")[2].casefold() != variant.casefold()
    return not INSTANCE.search(model) and not other


def _trained(where: str, entries: list[Table], numbers: Numbers) -> int | None:
    name = "max_context_length"
    lengths = [numbers.take(f"{where} {name}", entry.get(name)) for entry in entries]
    return min((length for length in lengths if length), default=None)


PROBE = Probe("lmstudio", asks, read, owners=("organization_owner",))
