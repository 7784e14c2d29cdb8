"""Any OpenAI-style list of models: the field names that servers use for their window, in order of trust.

From a census of some thirty servers (facts: windows, section 2). `max_tokens` is not among them: it is the limit
of the output in some lists and the window in others.
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, by_id, dig, lists, rows

WINDOW = (
    "meta.n_ctx",
    "max_model_len",
    "capabilities.limits.max_context_window_tokens",
    "context_window",
    "max_context_length",
    "context_length",
    "context_size",
    "contextLength",
    "limits.max_context_length",
    "metadata.context_length",
)
PROMPT = ("capabilities.limits.max_prompt_tokens", "max_input_tokens", "inputTokenLimit")
OUTPUT = (
    "capabilities.limits.max_output_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_output_length",
    "outputTokenLimit",
    "limits.max_completion_tokens",
    "top_provider.max_completion_tokens",
)


def asks(link: Link) -> tuple[Ask, ...]:
    return (lists(link),)


def read(link: Link, answers: Answers) -> Reading | None:
    entry = by_id(rows(answers.any(asks(link)[0]), "data", "models"), link.model, "id", "name")
    if entry is None:
        return None
    numbers, where = Numbers(), asks(link)[0].shown

    def first(names: tuple[str, ...]) -> tuple[int | None, str]:
        for name in names:
            if value := numbers.take(f"{where} {name}", dig(entry, name)):
                return value, name
        return None, ""

    # LM Studio's own lists put this beside the maximum; it means something only when the model is loaded.
    loaded = entry.get("loaded_context_length") if entry.get("state") == "loaded" else None
    served, name = numbers.take(f"{where} loaded_context_length", loaded), "loaded_context_length"
    if served is None and "state" not in entry:
        served, name = first(WINDOW)
    prompt, prompt_name = first(PROMPT)
    output, _ = first(OUTPUT)
    return Reading(
        # A gateway's limit of the prompt comes from its configuration or a catalogue, not from a server.
        kind="served" if link.provider.self_hosted and served else "listed",
        detail=f"{where} {name or prompt_name or 'has no window'}",
        served=served,
        trained=numbers.take(f"{where} meta.n_ctx_train", dig(entry, "meta.n_ctx_train")),
        prompt=prompt,
        output=output,
        refused=tuple(numbers.refused),
    )


PROBE = Probe("openai_list", asks, read)
