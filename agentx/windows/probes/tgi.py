"""TGI: `/info` says `max_total_tokens` (prompt and output) and `max_input_tokens`; the model's name is ignored."""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address, root


def asks(link: Link) -> tuple[Ask, ...]:
    return (Ask(f"{root(address(link))}/info"),)


def read(link: Link, answers: Answers) -> Reading | None:
    info = answers.table(asks(link)[0])
    if info is None or "max_total_tokens" not in info:
        return None
    numbers = Numbers()
    return Reading(
        kind="served",
        detail="GET /info max_total_tokens, max_input_tokens",
        served=numbers.take("GET /info max_total_tokens", info.get("max_total_tokens")),
        prompt=numbers.take("GET /info max_input_tokens", info.get("max_input_tokens")),
        refused=tuple(numbers.refused),
    )


PROBE = Probe("tgi", asks, read)
