"""A LiteLLM proxy: `/v1/model/info` has a row for each deployment; behind one name the smallest counts.

`max_tokens` there is the output limit or else the input limit, and never a window. Where a key may not ask for it,
`/v1/models` is left, which says the widest of all deployments: no more than `listed` either.
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
    return Ask(f"{root(address(link))}/v1/model/info"), lists(link)


def read(link: Link, answers: Answers) -> Reading | None:
    info_ask, list_ask = asks(link)
    entries = [one for one in rows(answers.table(info_ask), "data") if "model_info" in one]
    ours = [one for one in entries if one.get("model_name") == link.model]
    return _deployments(ours) if ours else _widest(by_id(rows(answers.table(list_ask), "data"), link.model))


def _deployments(ours: list[Table]) -> Reading:
    numbers = Numbers()
    return Reading(
        kind="listed",
        detail="GET /v1/model/info model_info.max_input_tokens",
        prompt=_smallest(ours, "max_input_tokens", numbers),
        output=_smallest(ours, "max_output_tokens", numbers),
        refused=tuple(numbers.refused),
    )


def _widest(entry: Table | None) -> Reading | None:
    if entry is None or not {"max_input_tokens", "max_output_tokens"} <= entry.keys():
        return None
    numbers = Numbers()
    return Reading(
        kind="listed",
        detail="GET /v1/models max_input_tokens, the widest of all deployments",
        prompt=numbers.take("GET /v1/models max_input_tokens", entry["max_input_tokens"]),
        output=numbers.take("GET /v1/models max_output_tokens", entry["max_output_tokens"]),
        refused=tuple(numbers.refused),
    )


def _smallest(entries: list[Table], name: str, numbers: Numbers) -> int | None:
    values = [numbers.take(f"GET /v1/model/info {name}", dig(one, f"model_info.{name}")) for one in entries]
    return min((value for value in values if value), default=None)


PROBE = Probe("litellm", asks, read)
