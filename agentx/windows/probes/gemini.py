"""Gemini: `inputTokenLimit` and `outputTokenLimit` are separate budgets: a reply takes nothing from the prompt.

Names stand there as `models/NAME`; a plain name means its `-001`, and a `-001` or `-latest` that is not listed is
read under the plain name.
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address, by_id, root, rows


def asks(link: Link) -> tuple[Ask, ...]:
    base = root(address(link, "https://generativelanguage.googleapis.com"))
    return (Ask(f"{base}/v1beta/models?pageSize=1000"),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = rows(answers.table(asks(link)[0]), "models")
    model = link.model.removeprefix("models/")
    plain = model.removesuffix("-latest").removesuffix("-001")
    names = (model, f"{model}-001", plain)
    entry = next((found for name in names if (found := by_id(entries, f"models/{name}", "name"))), None)
    if entry is None:
        return None
    numbers = Numbers()
    return Reading(
        kind="listed",
        detail="GET /v1beta/models inputTokenLimit",
        prompt=numbers.take("GET /v1beta/models inputTokenLimit", entry.get("inputTokenLimit")),
        output=numbers.take("GET /v1beta/models outputTokenLimit", entry.get("outputTokenLimit")),
        shared=False,
        refused=tuple(numbers.refused),
    )


PROBE = Probe("gemini", asks, read)
