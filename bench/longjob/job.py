"""A job of many turns with facts planted all over it. The same job for every system, and the same every time.

The user gives a task and speaks again at the beginning of each part; the work is to read logs, each of which names
the next one. A fact is a sentence that gives a name its code. Of what is said twice, the last holds.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

Group = Literal["task", "corrections", "early results", "middle results", "late results", "decisions"]
GROUPS: tuple[Group, ...] = (
    "task",
    "corrections",
    "early results",
    "middle results",
    "late results",
    "decisions",
)

TURNS = 300
TURNS_OF_A_PART, TURNS_OF_A_FACT = 33, 30
IN_THE_TASK, CORRECTED = 6, 3
FIRST = ("north", "south", "inner", "outer", "upper", "lower", "old", "new")
SECOND = ("gate", "crane", "basin", "quay", "beacon", "lock", "ferry", "depot")
# fmt: off
WORDS = (
    "barge", "berth", "buoy", "cargo", "chain", "coast", "crew", "deck", "draft", "fender", "fuel",
    "gangway", "hatch", "hull", "keel", "ladder", "ledger", "mast", "mooring", "pilot", "pump", "radio",
    "rope", "rudder", "sail", "shift", "signal", "stern", "tide", "tow", "valve", "watch", "winch", "yard",
)
# fmt: on
SHORTEST_LOG, LONGEST_LOG = 15, 90
"""Lines. The longest is shown whole by every system's own tool for reading."""
STATEMENT = "The {name} is {code}, as the harbour office has it, and is to be quoted exactly as it stands here."
TASK = """\
Read the logs of the harbour one after the other; each names the next one. At the end of a part write the report \
that the log names, and say that the part is read. You will be asked for the code of everything that has one, \
whether I, a log or a decision of yours states it; of what is stated twice, the last holds.
From the start you know:
{facts}
Begin with {log}."""
EXAM = "Now report the code of everything."


@dataclass(frozen=True, slots=True)
class Fact:
    group: Group
    name: str
    code: str

    @property
    def sentence(self) -> str:
        return STATEMENT.format(name=self.name, code=self.code)


@dataclass(frozen=True, slots=True)
class LongJob:
    """`said` are the user's texts in order, `logs` the files of the workspace, `facts` what must be known."""

    turns: int
    said: tuple[str, ...]
    logs: Mapping[str, str]
    facts: tuple[Fact, ...]

    def lay_out(self, workspace: Path) -> None:
        for name, text in self.logs.items():
            file = workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def code_of(name: str, edition: int = 1) -> str:
    """The code that *name* has; a corrected one is of a later *edition*."""
    number = zlib.crc32(f"{name} {edition}".encode())
    letters = "".join(chr(65 + number // 26**place % 26) for place in range(2))
    return f"{letters}-{number % 100_000:05}"


def long_job(turns: int = TURNS) -> LongJob:
    """A job in which a model that never loses the thread makes *turns* replies (at least 15)."""
    parts = max(2, turns // TURNS_OF_A_PART)
    reads = turns - 2 * parts - 1  # at the end of a part a report is written and told; the last reply is the exam
    names = [" ".join(pair) for pair in product(FIRST, SECOND)]
    random.Random("names").shuffle(names)
    task, stale = _facts("task", names, IN_THE_TASK), _facts("task", names, min(CORRECTED, parts - 1))
    corrections = [Fact("corrections", fact.name, code_of(fact.name, 2)) for fact in stale]
    corrections += _facts("corrections", names, parts - 1 - len(corrections))
    corrections = corrections[::2] + corrections[1::2]
    planted, decided = _places(reads, names)
    ends = [reads * part // parts for part in range(1, parts + 1)]
    logs = {_log(n): _text(n, ends, planted.get(n), decided.get(n)) for n in range(1, reads + 1)}
    begin = TASK.format(facts="\n".join(fact.sentence for fact in (*task, *stale)), log=_log(1))
    later = [
        f"A correction, which holds from now on. {fact.sentence}\nGo on with {_log(end + 1)}."
        for fact, end in zip(corrections, ends, strict=False)
    ]
    facts = (*task, *corrections, *planted.values(), *decided.values())
    return LongJob(turns, (begin, *later, EXAM), logs, facts)


def _facts(group: Group, names: list[str], count: int) -> list[Fact]:
    """So many facts, with *names* that nothing else has."""
    return [Fact(group, name, code_of(name)) for name in (names.pop() for _ in range(count))]


def _places(reads: int, names: list[str]) -> tuple[dict[int, Fact], dict[int, Fact]]:
    """The facts that logs state, and those that are decided after reading one, by the number of the log."""
    planted: dict[int, Fact] = {}
    decided: dict[int, Fact] = {}
    thirds: tuple[Group, ...] = ("early results", "middle results", "late results")
    each = max(1, reads // TURNS_OF_A_FACT)
    for index, group in enumerate(thirds):
        for number, fact in enumerate(_facts(group, names, each)):
            planted[1 + reads * (index * each + number) // (3 * each)] = fact
    for number, fact in enumerate(_facts("decisions", names, each)):
        decided[2 + reads * number // each] = fact
    return planted, decided


def _log(number: int) -> str:
    return f"logs/{number:04}.txt"


def _text(number: int, ends: list[int], fact: Fact | None, decision: Fact | None) -> str:
    """Log *number*: lines that say nothing, a fact anywhere between them, and what comes next."""
    chance = random.Random(number)
    lines = [
        f"{minute:02}:{chance.randrange(60):02} {' '.join(chance.choices(WORDS, k=9))}"
        for minute in range(chance.randint(SHORTEST_LOG, LONGEST_LOG))
    ]
    if fact is not None:
        lines.insert(chance.randrange(len(lines)), fact.sentence)
    if decision is not None:
        lines.append(f"Decide on the code of the {decision.name} now, for good reasons.")
    part = ends.index(number) + 1 if number in ends else None
    lines.append(f"next: {_log(number + 1)}" if part is None else f"next: reports/part-{part}.txt")
    return "\n".join(lines) + "\n"
