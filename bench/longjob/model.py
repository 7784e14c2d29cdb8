"""A model that does the long job, and knows nothing but what it is sent. The same for every system.

What to do next it takes from the newest message. Asked for a summary it extracts: it copies the sentences that
state a code, the newest where there are too many, and no more than `SUMMARY_TOKENS` of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentx.testing.brain import Call, Said, text_of
from agentx.testing.counting import Json, count_text
from longjob.job import EXAM, STATEMENT, code_of

SUMMARY_TOKENS = 1_000
STATED = re.compile(r"The ([a-z]+ [a-z]+) is ([A-Z]{2}-\d{5})(?:, [a-z ]+\.)?")
NEXT = re.compile(rf"(?:next:|Begin with|Go on with) ((?:logs|reports)/[\w-]+\.txt)|{re.escape(EXAM)}")
TO_DECIDE = re.compile(r"Decide on the code of the ([a-z]+ [a-z]+) now")
REPORT = "All logs of this part were read in their order, and nothing stands in the way of the next one.\n" * 12
LOST = "I do not know what to do."


def known(text: str) -> dict[str, str]:
    """The code of everything that *text* states, by its name: the last one."""
    return {found[1]: found[2] for found in STATED.finditer(text)}


def model(messages: Sequence[Json], tools: Sequence[Json]) -> Said:
    """The reply to a request with these *messages* and *tools*."""
    if not tools:
        return Said(summary(text_of(messages)))
    newest = messages[-1]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    if newest["role"] == "tool" and calls and calls[-1]["function"]["name"] == "write_file":
        return Said("This part is read, and its report is written.")
    pointers = [*NEXT.finditer(newest["content"])] or [*NEXT.finditer(text_of(messages))]
    if not pointers:
        return Said(LOST)
    path = pointers[-1][1]
    if path is None:
        codes = known(text_of(messages))
        return Said("\n".join(f"{name}: {code}" for name, code in codes.items()))
    return Said(_thought(newest["content"]), (_call(path, tools),))


def summary(text: str) -> str:
    """What is worth telling of *text*, the newest as far as there is room, in the order in which it was said."""
    newest = {found[1]: found for found in STATED.finditer(text)}
    room = SUMMARY_TOKENS
    told: list[str] = []
    for found in sorted(newest.values(), key=lambda found: found.start(), reverse=True):
        line = f"- {found[0]}"
        room -= count_text(line)
        if room < 0:
            break
        told.append(line)
    return "\n".join(["Goal: read the logs and know every code.", "Facts:", *reversed(told)])


def _thought(newest: str) -> str:
    """What is said beside a call: a decision, where one is due."""
    decision = TO_DECIDE.search(newest)
    if decision is None:
        return "I read on."
    return f"Decision: {STATEMENT.format(name=decision[1], code=code_of(decision[1]))}"


def _call(path: str, tools: Sequence[Json]) -> Call:
    """The call for *path* by the tools that there are: some want absolute paths, in `file_path`."""
    writes = path.startswith("reports/")
    name = "write_file" if writes else "read_file"
    offered: Mapping[str, Any] = next(tool["function"] for tool in tools if tool["function"]["name"] == name)
    absolute = "file_path" in offered["parameters"]["properties"]
    arguments = {"file_path": f"/{path}"} if absolute else {"path": path}
    return Call(name, arguments | ({"content": REPORT} if writes else {}))
