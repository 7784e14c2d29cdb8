"""Docker Model Runner: the model's own `context_size`, else what `docker model configure` set, else 4,096.

Its llama.cpp engine takes them in this order; its vLLM engine starts with the trained length, which nothing here
names (facts: windows, section 1.7). It speaks Ollama's protocol too. Both routes only read.
"""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import quote

from agentx.config.links import Link
from agentx.windows.probes.reading import (
    Answers,
    Ask,
    Numbers,
    Probe,
    Reading,
    Table,
    address,
    dig,
    root,
    rows,
)

UNSET = 4096
"""What the llama.cpp engine starts with when nobody says."""


def asks(link: Link) -> tuple[Ask, ...]:
    return (Ask(f"{root(address(link))}/models/{quote(link.model, safe='/:@')}"),)


def more(link: Link, answers: Answers) -> tuple[Ask, ...]:
    config = _config(link, answers)
    return (_configured(link),) if config is not None and config.get("context_size") is None else ()


def read(link: Link, answers: Answers) -> Reading | None:
    config = _config(link, answers)
    if config is None:
        return None
    numbers = Numbers()
    where = "GET /models/{model} config.context_size"
    served = numbers.take(where, config.get("context_size"))
    if served is None:
        set_sizes = [dig(row, "Config.context-size") for row in rows(answers.any(_configured(link)))]
        found = [numbers.take("GET /engines/_configure context-size", size) for size in set_sizes]
        served = min((size for size in found if size), default=None)
        where = "GET /engines/_configure context-size" if served else "GET /models/{model}, no context_size"
    return Reading(
        kind="served",
        detail=where,
        served=served,
        trained=_trained(config, numbers),
        default=UNSET if served is None and config.get("format") == "gguf" else None,
        refused=tuple(numbers.refused),
    )


def _config(link: Link, answers: Answers) -> Table | None:
    """The model's configuration: only this server has one beside digest and tags."""
    model = answers.table(asks(link)[0])
    config: Any = model.get("config") if model and isinstance(model.get("tags"), list) else None
    return cast("Table", config) if isinstance(config, dict) else None


def _configured(link: Link) -> Ask:
    return Ask(f"{root(address(link))}/engines/_configure?model={quote(link.model, safe='')}")


def _trained(config: Table, numbers: Numbers) -> int | None:
    """From the model file's metadata, whose values are all texts here."""
    metadata, architecture = config.get("gguf"), config.get("architecture")
    if not isinstance(metadata, dict) or not isinstance(architecture, str):
        return None
    name = f"{architecture[:80]}.context_length"
    value = cast("Table", metadata).get(name)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    return numbers.take(f"GET /models/{{model}} config.gguf {name}", value)


PROBE = Probe("docker", asks, read, owners=("docker",), more=more)
