"""Any OpenAI-style list of models: the field names that servers use for their window, in order of trust.

From a census of some thirty servers (facts: windows, section 2). `max_tokens` is not among them: it is the limit
of the output in some lists and the window in others.
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
    by_id,
    dig,
    lists,
    rows,
)
from agentx.windows.record import undated

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
    return read_list(link, answers, asks(link)[0])


def read_list(link: Link, answers: Answers, ask: Ask, output: tuple[str, ...] = OUTPUT) -> Reading | None:
    """What the list that *ask* asks for says of the link's model; *output* are the names of the reply's limit."""
    entry = _entry(link, rows(answers.any(ask), "data", "models"))
    if entry is None:
        return None
    numbers, where = Numbers(), ask.shown

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
    reply, _ = first(output)
    return Reading(
        # A gateway's limit of the prompt comes from its configuration or a catalogue, not from a server.
        kind="served" if link.provider.self_hosted and served else "listed",
        detail=f"{where} {', '.join(filter(None, (name, prompt_name))) or 'has no window'}",
        served=served,
        trained=numbers.take(f"{where} meta.n_ctx_train", dig(entry, "meta.n_ctx_train")),
        prompt=prompt,
        output=reply,
        # Copilot's limits are maxima each by itself (copilot-cli#4638): where the window has room for both, a
        # reply takes nothing from the prompt.
        shared=not (served and prompt and reply and prompt + reply <= served),
        refused=tuple(numbers.refused),
    )


def _entry(link: Link, entries: list[Table]) -> Table | None:
    """The model's entry; at a hosted provider a dated snapshot that is not listed is read under its plain name."""
    found = by_id(entries, link.model, "id", "name")
    plain = undated(link.model)
    if found is None and plain != link.model and not link.provider.self_hosted:
        found = by_id(entries, plain, "id", "name")
    return found


PROBE = Probe("openai_list", asks, read)
