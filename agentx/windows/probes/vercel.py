"""Vercel AI Gateway: a list like others, but `max_tokens` is the limit of the reply (facts: windows, section 2).

Elsewhere that name may mean the window, so the plain list does not read it.
"""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.openai_list import OUTPUT, read_list
from agentx.windows.probes.reading import Answers, Ask, Probe, Reading, lists


def asks(link: Link) -> tuple[Ask, ...]:
    return (lists(link),)


def read(link: Link, answers: Answers) -> Reading | None:
    return read_list(link, answers, asks(link)[0], (*OUTPUT, "max_tokens"))


PROBE = Probe("vercel", asks, read)
