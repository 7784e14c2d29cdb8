"""What is off with a window, and what a user can type to mend it: for the very server that answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentx.config.links import WORKABLE_WINDOW, Link
from agentx.windows.candidates import Facts
from agentx.windows.record import Window

BEHIND: Mapping[str, str] = {
    "ollama": "start it with `OLLAMA_CONTEXT_LENGTH={window} ollama serve`; or give the provider `card: ollama`,"
    " whose own route can ask for a window",
    "lmstudio": "`lms load {model} --context-length {window}`",
    "llamacpp": "`llama-server -m MODEL.gguf -c {window} --parallel 1`",
    "vllm": "`vllm serve {model} --max-model-len {window}`",
    "sglang": "`python -m sglang.launch_server --model-path {model} --context-length {window}`",
    "tgi": "`text-generation-launcher --model-id {model} --max-total-tokens {window}`",
}
"""By the probe that recognised a server which the user reaches through a card that is not its own."""


@dataclass(frozen=True, slots=True)
class Advice:
    """`text` says what is off, `cure` what can be done about it; one line each."""

    text: str
    cure: str

    def __str__(self) -> str:
        return f"{self.text}; {self.cure}"


def advice(link: Link, facts: Facts, window: Window, limit: Window | None) -> Iterator[Advice]:
    """What a user should know about *window*; *limit* is what the endpoint proved or made probable, when it
    lowered the window."""
    if limit and limit.confidence == "assumed":
        yield Advice(
            f"{limit.size:,} tokens are a guess, and more is tried again after an hour: {limit.detail}",
            f"{in_config(link, limit.size)}, with the number that it holds",
        )
    if link.window and not link.force:
        yield from _above(link, facts, window, limit)
    yield from _trained(link, facts, window)
    if window.source == "assumed":
        size = min(window.trained or WORKABLE_WINDOW, WORKABLE_WINDOW)
        unloaded = facts.heard is not None and facts.heard.reading.kind == "served"
        why = (
            "the model is not loaded, and nobody says with how much it will be"
            if unloaded
            else ("nobody says how much it holds")
        )
        yield Advice(
            f"{why}; {window.size:,} tokens are assumed",
            f"{in_config(link, size)}, with the number that it holds; or measure it:"
            f" `agentx windows {link.provider.name}/{link.model} --probe`",
        )


def raised(link: Link, probe: str | None, size: int = WORKABLE_WINDOW) -> str | None:
    """How the server of *link* is given *size* tokens; None where nothing can be set. *probe* recognised it."""
    if link.provider.wire == "ollama":
        return f"{in_config(link, size)}, or start the server with `OLLAMA_CONTEXT_LENGTH={size} ollama serve`"
    template = link.provider.window_hint
    if probe is not None and probe in BEHIND and probe != link.provider.card and link.provider.card != "local":
        template = BEHIND[probe]
    return template and template.replace("{model}", link.model).replace("{window}", str(size))


def in_config(link: Link, size: int) -> str:
    """The line of agentx.yaml that gives *link* a window of *size*."""
    return f"write `window: {size}` under `- model: {link.provider.name}/{link.model}` in agentx.yaml"


def _above(link: Link, facts: Facts, window: Window, limit: Window | None) -> Iterator[Advice]:
    """The user's window is more than what the server holds or proved."""
    wanted = link.window or 0
    if limit and limit.size < wanted:
        showed = "proved" if limit.confidence == "proven" else "seems to hold"
        text = f"`window: {wanted}` is more than the endpoint {showed} ({limit.size:,}: {limit.detail})"
        cure = f"{in_config(link, limit.size)}; `force: true` beside it if the server was changed since"
        yield Advice(f"{text}: {limit.size:,} is used", cure)
    elif window.source == "served" and window.size < wanted:
        text = f"`window: {wanted}` is more than the server holds now ({window.size:,}; {window.detail})"
        if link.provider.wire == "ollama":
            cure = (
                "it has no memory for more: take a smaller model, or"
                " `OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve`"
            )
        else:
            how = raised(link, _probe(facts), wanted)
            cure = f"{how}; or {in_config(link, window.size)}" if how else in_config(link, window.size)
        yield Advice(f"{text}: {window.size:,} is used", cure)


def _trained(link: Link, facts: Facts, window: Window) -> Iterator[Advice]:
    """The window is more than the model was trained for, or far less."""
    trained = window.trained
    if not trained or not link.provider.self_hosted:
        return
    asks = link.provider.wire == "ollama"
    if asks and link.window and link.window > trained:
        yield Advice(
            f"`window: {link.window}` is more than the model was trained for: {trained:,} is asked for",
            in_config(link, trained),
        )
    useful = min(trained, WORKABLE_WINDOW)
    if link.window or window.source == "assumed" or window.size >= useful:
        return
    if how := raised(link, _probe(facts), useful):
        held = "the server holds" if window.source in ("served", "learned") else "it will hold"
        yield Advice(f"{held} {window.size:,} of the {trained:,} tokens that the model was trained for", how)


def _probe(facts: Facts) -> str | None:
    known = facts.heard or facts.cached
    return known.probe if known else None
