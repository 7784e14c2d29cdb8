"""ChatGPT's Codex backend: `models[].context_window` by slug; `max_context_window` is a ceiling, not a budget.

Of the window only `effective_context_window_percent` is for the prompt: 95 where the entry does not say it
(codex 0.166, its bundled list and protocol; openai/codex#29426): 258,400 of 272,000.
"""

from __future__ import annotations

from typing import Any

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address, by_id, rows
from agentx.windows.record import believable

CLIENT_VERSION = "0.166.0"
"""The list is made for a version of the client: the one whose answer these facts describe."""
USUAL_PERCENT = 95
WORKER = "-wm"
"""Such slugs are routed to the plain model."""


def asks(link: Link) -> tuple[Ask, ...]:
    base = address(link, "https://chatgpt.com/backend-api/codex")
    return (Ask(f"{base}/models?client_version={CLIENT_VERSION}"),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = rows(answers.table(asks(link)[0]), "models")
    entry = by_id(entries, link.model, "slug") or by_id(entries, link.model.removesuffix(WORKER), "slug")
    if entry is None:
        return None
    numbers = Numbers()
    served = numbers.take("GET /models context_window", entry.get("context_window"))
    percent = _percent(entry.get("effective_context_window_percent"))
    return Reading(
        kind="listed",
        detail=f"GET /models context_window, {percent} % of it for the prompt",
        served=served,
        trained=numbers.take("GET /models max_context_window", entry.get("max_context_window")),
        prompt=believable(served * percent // 100) if served else None,
        refused=tuple(numbers.refused),
    )


def _percent(value: Any) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 100
    return value if good else USUAL_PERCENT


PROBE = Probe("codex", asks, read)
