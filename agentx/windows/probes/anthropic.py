"""Anthropic: `/v1/models` says `max_input_tokens` (shared with the output) and `max_tokens` (of the output)."""

from __future__ import annotations

import re

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address, by_id, root, rows


def asks(link: Link) -> tuple[Ask, ...]:
    base = root(address(link, "https://api.anthropic.com"))
    return (Ask(f"{base}/v1/models?limit=1000", headers=(("anthropic-version", "2023-06-01"),)),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = rows(answers.table(asks(link)[0]), "data")
    entry = by_id(entries, link.model)
    if entry is None:
        # A name without a date stands for one of its dated snapshots.
        dated = re.compile(re.escape(link.model) + r"-\d{8}")
        entry = next((one for one in entries if dated.fullmatch(str(one.get("id")))), None)
    if entry is None or "max_input_tokens" not in entry:
        return None
    numbers = Numbers()
    return Reading(
        kind="listed",
        detail="GET /v1/models max_input_tokens",
        served=numbers.take("GET /v1/models max_input_tokens", entry.get("max_input_tokens")),
        output=numbers.take("GET /v1/models max_tokens", entry.get("max_tokens")),
        refused=tuple(numbers.refused),
    )


PROBE = Probe("anthropic", asks, read)
