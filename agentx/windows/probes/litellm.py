"""A LiteLLM proxy: `/v1/model/info` has a row for each deployment; behind one name the smallest counts.

`max_tokens` there is the output limit or else the input limit, and never a window.
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, address, dig, root, rows


def asks(link: Link) -> tuple[Ask, ...]:
    return (Ask(f"{root(address(link))}/v1/model/info"),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = [one for one in rows(answers.table(asks(link)[0]), "data") if "model_info" in one]
    ours = [one for one in entries if one.get("model_name") == link.model]
    if not ours:
        return None
    numbers = Numbers()
    return Reading(
        kind="listed",
        detail="GET /v1/model/info model_info.max_input_tokens",
        prompt=_smallest(ours, "max_input_tokens", numbers),
        output=_smallest(ours, "max_output_tokens", numbers),
        refused=tuple(numbers.refused),
    )


def _smallest(entries: list[Table], name: str, numbers: Numbers) -> int | None:
    values = [numbers.take(f"GET /v1/model/info {name}", dig(one, f"model_info.{name}")) for one in entries]
    return min((value for value in values if value), default=None)


PROBE = Probe("litellm", asks, read)
