"""Fireworks: a model has `contextLength` in the control plane, a deployment `maxContextLength` (0: as its model).

Both are asked by the resource's name, which is the model's name too: `accounts/A/models/M`,
`accounts/A/deployments/D`, or both with a `#` between them. The OpenAI-style list has `context_length`.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address

RESOURCE = re.compile(r"accounts/[^/\s]+/(models|deployments)/[^/\s]+")


def asks(link: Link) -> tuple[Ask, ...]:
    host = address(link, "https://api.fireworks.ai/inference/v1").removesuffix("/v1").removesuffix("/inference")
    names = [part for part in link.model.split("#") if RESOURCE.fullmatch(part)]
    return tuple(Ask(f"{host}/v1/{quote(name)}") for name in names)


def read(link: Link, answers: Answers) -> Reading | None:
    numbers = Numbers()
    lengths: dict[str, int | None] = {}
    for ask in asks(link):
        for name in ("contextLength", "maxContextLength"):
            table = answers.table(ask) or {}
            if name in table:
                lengths[name] = numbers.take(f"{ask.shown} {name}", table[name] or None)
    if not lengths:
        return None
    # A deployment may hold less than its model.
    name = "maxContextLength" if lengths.get("maxContextLength") else "contextLength"
    return Reading(
        kind="listed",
        detail=f"GET /v1/{{model}} {name}",
        served=lengths.get(name),
        refused=tuple(numbers.refused),
    )


PROBE = Probe("fireworks", asks, read)
