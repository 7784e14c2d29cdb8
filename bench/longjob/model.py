"""A model that does the long job, and knows nothing but what it is sent. The same for every system.

What to do next it takes from the newest message, or else from the record of what came before. Asked for a summary
it extracts: it copies the sentences that state a code, the newest where there are too many, and no more than
`SUMMARY_TOKENS` of them, and says what is next.
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
NEXT = re.compile(r"(next:|Begin with|Go on with) ((?:logs|reports)/[\w-]+\.txt)")
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
    if EXAM in newest["content"]:
        return Said("\n".join(f"{name}: {code}" for name, code in known(text_of(messages)).items()))
    path = _next(newest["content"]) or _next(text_of(messages))
    return Said(_thought(newest["content"]), (_call(path, tools),)) if path else Said(LOST)


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
    last = [*NEXT.finditer(text)][-1:]
    ahead = [f"next: {found[2]}" for found in last if not _written(found[2], text[found.end() :])]
    return "\n".join(["Goal: read the logs and know every code.", "Facts:", *reversed(told), *ahead])


def _written(path: str, after: str) -> bool:
    """Whether *path* is a report that was written in what came *after* it was named as the next one."""
    return path.startswith("reports/") and path in after


def _next(text: str) -> str | None:
    """The path that *text* names as the next one. What a log or a record says is newer than words of the user that
    were kept beside it."""
    found = [*NEXT.finditer(text)]
    told = [one for one in found if one[1] == "next:"] or found
    return told[-1][2] if told else None


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
