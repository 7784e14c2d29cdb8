"""Asking servers for their windows: one file for each kind of server, found here by name.

What a server is, is decided by what it answers, not by what the user called it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentx.config.links import Link
from agentx.windows.probes import (
    anthropic,
    cerebras,
    codex,
    fireworks,
    gemini,
    huggingface,
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
from agentx.windows.probes.reading import Answers, Ask, Probe, Reading

__all__ = ["PROBES", "SELF_HOSTED", "Answers", "Ask", "Probe", "Reading", "probes_for", "read_all"]

PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        ollama, lmstudio, llamacpp, sglang, vllm, tgi, litellm, openrouter, anthropic, gemini, codex, cerebras,
        fireworks, huggingface, vercel, openai_list,
    )
}  # fmt: skip

SELF_HOSTED = ("ollama", "lmstudio", "llamacpp", "sglang", "vllm", "tgi", "litellm")
"""Tried at every self-hosted address, whatever its card says."""


def probes_for(link: Link) -> tuple[Probe, ...]:
    """The probes of *link* in order of trust: the card's, at a self-hosted address all servers', the plain list.

    A name that is not known is left out: a card of a newer agentx may have it.
    """
    named = link.provider.probes
    names = [name for name in named if name != "openai_list"]
    if link.provider.self_hosted:
        names += SELF_HOSTED
    if "openai_list" in named or link.provider.self_hosted:
        names.append("openai_list")
    return tuple(PROBES[name] for name in dict.fromkeys(names) if name in PROBES)


def read_all(link: Link, answers: Answers) -> tuple[Probe, Reading] | None:
    """The first probe that finds a window, and its reading with what others know besides.

    Where none finds one, the first that knows its server (a model that is not loaded), else None.
    """
    readings = [(probe, reading) for probe in probes_for(link) if (reading := probe.read(link, answers))]
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
