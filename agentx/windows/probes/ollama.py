"""Ollama: only `/api/ps` says what is served now; `/api/show` has the trained length and the Modelfile's num_ctx.

`<general.architecture>.context_length` is read by exactly that name: `rope.scaling.original_context_length` holds
the same words and is another number. SGLang, llama.cpp, KoboldCpp and Docker speak parts of this API and are told
apart. A cloud model, and one that the MLX runner holds, has its trained length whatever `num_ctx` says.
"""

from __future__ import annotations

import re
from typing import cast

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
    post,
    root,
    rows,
)

NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


def short_name(name: str) -> str:
    """The name as `/api/ps` prints it: no registry, no `library/`, no `:latest`; case does not count."""
    name = name.casefold()
    for prefix in ("registry.ollama.ai/", "https://", "library/"):
        name = name.removeprefix(prefix)
    return name.removesuffix(":latest")


def asks(link: Link) -> tuple[Ask, ...]:
    base = root(address(link))
    return Ask(f"{base}/api/ps"), post(f"{base}/api/show", {"model": link.model})


def more(link: Link, answers: Answers) -> tuple[Ask, ...]:
    """The list of all models, where the model itself has no length: new builds have it there."""
    ps_ask, show_ask = asks(link)
    is_ollama = "models" in (answers.table(ps_ask) or {})
    known = trained_length(answers.table(show_ask), Numbers())
    return (_tags(link),) if is_ollama and known is None else ()


def trained_length(show: Table | None, numbers: Numbers) -> int | None:
    """The context length of the model's own architecture, from an answer of `/api/show`."""
    info = dig(show, "model_info")
    if not isinstance(info, dict):
        return None
    table = cast("Table", info)
    architecture = table.get("general.architecture")
    if not isinstance(architecture, str):
        return None
    name = f"{architecture[:80]}.context_length"
    return numbers.take(f"POST /api/show {name}", table.get(name))


def is_cloud(show: Table | None, model: str) -> bool:
    """A model that runs elsewhere, always at its maximum: `num_ctx` is ignored there."""
    return bool(dig(show, "remote_model")) or model.endswith((":cloud", "-cloud"))


def is_mlx(*entries: Table | None) -> bool:
    """The MLX runner takes prompts up to the trained length; what `/api/ps` says is only what was asked for."""
    return any(dig(entry, "details.format") == "safetensors" for entry in entries)


def read(link: Link, answers: Answers) -> Reading | None:
    ps_ask, show_ask = asks(link)
    ps, show, tags = answers.table(ps_ask), answers.table(show_ask), answers.table(_tags(link))
    if dig(show, "details.format") == "sglang":
        return None
    cloud = is_cloud(show, link.model)
    if (ps is None or "models" not in ps) and not cloud:
        return None
    numbers = Numbers()
    wanted = short_name(link.model)
    loaded = _named(rows(ps, "models"), wanted)
    tagged = _named(rows(tags, "models"), wanted)
    trained = trained_length(show, numbers) or numbers.take(
        "GET /api/tags details.context_length", dig(tagged, "details.context_length")
    )
    default = None
    parameters = dig(show, "parameters")
    if isinstance(parameters, str) and (match := NUM_CTX.search(parameters)):
        default = numbers.take("POST /api/show num_ctx", int(match[1]))
    if cloud:
        served, detail = trained, "POST /api/show, a cloud model runs at its maximum"
    elif loaded and trained and is_mlx(loaded, show):
        served, detail = trained, "POST /api/show, an MLX model takes its maximum whatever GET /api/ps says"
    else:
        served = numbers.take("GET /api/ps context_length", dig(loaded, "context_length"))
        where = "POST /api/show parameters num_ctx" if default else "POST /api/show"
        detail = "GET /api/ps models[].context_length" if served else where
    if default and trained:
        default = min(default, trained)
    return Reading(
        kind="served",
        detail=detail,
        served=served,
        trained=trained,
        default=default,
        refused=tuple(numbers.refused),
    )


def _named(entries: list[Table], wanted: str) -> Table | None:
    for entry in entries:
        for field in ("model", "name"):
            name = entry.get(field)
            if isinstance(name, str) and short_name(name) == wanted:
                return entry
    return None


def _tags(link: Link) -> Ask:
    return Ask(f"{root(address(link))}/api/tags")


PROBE = Probe("ollama", asks, read, owners=("library",), more=more)
