"""Cerebras: the plain list has ids only; `?format=openrouter` has `context_length` and `max_output_length`.

The windows of the free tier are smaller than those of paid accounts (8K to 65K where paid ones have 128K), so no
catalogue knows them: what the list does not say, a refusal does (facts: windows, section 2).
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.openai_list import read_list
from agentx.windows.probes.reading import Answers, Ask, Probe, Reading, address


def asks(link: Link) -> tuple[Ask, ...]:
    return (Ask(f"{address(link, 'https://api.cerebras.ai/v1')}/models?format=openrouter"),)


def read(link: Link, answers: Answers) -> Reading | None:
    return read_list(link, answers, asks(link)[0])


PROBE = Probe("cerebras", asks, read)
