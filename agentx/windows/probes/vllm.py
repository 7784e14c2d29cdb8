"""vLLM and what is built on it: `/v1/models` `max_model_len`; a LoRA adapter's is null, its parent's counts."""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, by_id, lists, rows


def asks(link: Link) -> tuple[Ask, ...]:
    return (lists(link),)


def read(link: Link, answers: Answers) -> Reading | None:
    entries = rows(answers.any(asks(link)[0]), "data")
    # SGLang's list looks the same and promises more than the server takes: it has a probe of its own.
    if not any("max_model_len" in one and one.get("owned_by") != "sglang" for one in entries):
        return None
    numbers = Numbers()
    served = model_length(entries, link.model, numbers)
    return Reading(
        kind="served", detail="GET /v1/models max_model_len", served=served, refused=tuple(numbers.refused)
    )


def model_length(entries: list[Table], model: str, numbers: Numbers) -> int | None:
    """`max_model_len` of *model*, or of the model that it adapts."""
    seen: set[str] = set()
    while (entry := by_id(entries, model)) is not None and model not in seen:
        seen.add(model)
        if length := numbers.take("GET /v1/models max_model_len", entry.get("max_model_len")):
            return length
        parent = entry.get("parent")
        if not isinstance(parent, str):
            return None
        model = parent
    return None


PROBE = Probe("vllm", asks, read, owners=("vllm",))
