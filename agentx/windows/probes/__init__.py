"""Asking servers for their windows: one file for each kind of server, found here by name.

What a server is, is decided by what it answers, not by what the user called it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentx.config.links import Link
from agentx.windows.probes import (
    anthropic,
    cerebras,
    codex,
    docker,
    fireworks,
    gemini,
    huggingface,
    koboldcpp,
    lemonade,
    litellm,
    llamacpp,
    lmstudio,
    ollama,
    openai_list,
    openrouter,
    sglang,
    tgi,
    vercel,
    vllm,
)
from agentx.windows.probes.reading import Answers, Ask, Probe, Reading, by_id, lists, rows

__all__ = ["PROBES", "SELF_HOSTED", "Answers", "Ask", "Probe", "Reading", "probes_for", "questions", "read_all"]

PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        ollama, lmstudio, llamacpp, sglang, vllm, tgi, litellm, koboldcpp, lemonade, docker, openrouter,
        anthropic, gemini, codex, cerebras, fireworks, huggingface, vercel, openai_list,
    )
}  # fmt: skip

SELF_HOSTED = (
    "ollama", "lmstudio", "koboldcpp", "lemonade", "docker", "llamacpp", "sglang", "vllm", "tgi", "litellm",
)  # fmt: skip
"""What may stand at a self-hosted address, whatever its card says. Who imitates comes before whom he imitates,
but for Ollama, which only answers for its own `/api/ps`."""
LIST = "openai_list"


def probes_for(link: Link) -> tuple[Probe, ...]:
    """The probes of *link* in order of trust: the card's, at a self-hosted address all servers', the plain list.

    A name that is not known is left out: a card of a newer agentx may have it.
    """
    named = link.provider.probes
    names = [name for name in named if name != LIST]
    if link.provider.self_hosted:
        names += SELF_HOSTED
    if LIST in named or link.provider.self_hosted:
        names.append(LIST)
    return tuple(PROBES[name] for name in dict.fromkeys(names) if name in PROBES)


def questions(
    link: Link, answers: Answers, asked: Iterable[Ask], guess: str | None = None, *, sure: bool = False
) -> tuple[Ask, ...]:
    """What to ask next, when *asked* was asked and *answers* came; nothing when that is enough.

    A hosted provider is asked what its card says. One's own server is first asked for its list of models, which
    names its kind, and what the *guess* (what it was last time, or its card) wants to know; then only as what it
    turned out to be; and as everything when nobody recognises it. When the guess is *sure*, the list is not asked
    for as long as the server is what it was.
    """
    done = set(asked)
    return tuple(dict.fromkeys(ask for ask in _wanted(link, answers, done, guess, sure) if ask not in done))


def read_all(link: Link, answers: Answers) -> tuple[Probe, Reading] | None:
    """The first probe that finds a window, and its reading with what others know besides.

    Where none finds one, the first that knows its server (a model that is not loaded), else None.
    """
    probes = sorted(probes_for(link), key=lambda probe: probe is not _kind(link, answers))
    readings = [(probe, reading) for probe in probes if (reading := probe.read(link, answers))]
    if not readings:
        return None
    probe, best = next(((one, reading) for one, reading in readings if reading.found), readings[0])
    others = [reading for _, reading in readings]
    return probe, replace(
        best,
        trained=best.trained or next((one.trained for one in others if one.trained), None),
        output=best.output or next((one.output for one in others if one.output), None),
        refused=tuple(dict.fromkeys(line for one in others for line in one.refused)),
    )


def _wanted(link: Link, answers: Answers, done: set[Ask], guess: str | None, sure: bool) -> list[Ask]:
    probes = probes_for(link)
    if not link.provider.self_hosted:
        return _all_of(link, answers, probes, done)
    listed = lists(link)
    guessed = [probe for name, probe in PROBES.items() if name == guess != LIST]
    if sure and guessed:
        wanted = _all_of(link, answers, guessed, done)
        if any(ask not in done for ask in wanted) or guessed[0].read(link, answers):
            return wanted
    if listed not in done:
        return [listed, *(ask for probe in guessed for ask in probe.asks(link))]
    kind = _kind(link, answers)
    likely = [kind] if kind else guessed
    wanted = _all_of(link, answers, likely, done)
    if any(ask not in done for ask in wanted) or any(probe.read(link, answers) for probe in likely):
        return wanted
    return _all_of(link, answers, probes, done)


def _all_of(link: Link, answers: Answers, probes: Iterable[Probe], done: set[Ask]) -> list[Ask]:
    """The questions of *probes*; once they are *done*, those that follow from the answers too."""
    found: list[Ask] = []
    for probe in probes:
        asks = probe.asks(link)
        found += asks
        if done.issuperset(asks):
            found += probe.more(link, answers)
    return found


def _kind(link: Link, answers: Answers) -> Probe | None:
    """The kind of server that owns the model, else all models, in its own list; None where that does not tell."""
    if not link.provider.self_hosted:
        return None
    entries = rows(answers.any(lists(link)), "data")
    entry = by_id(entries, link.model)
    owners = {name for one in ([entry] if entry else entries) if isinstance(name := one.get("owned_by"), str)}
    return next((one for one in PROBES.values() if owners and owners <= set(one.owners)), None)
