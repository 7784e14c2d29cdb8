"""Scripted models that know only what they are sent, so that a lost memory shows in what they do.

A brain is a function of the messages that the server kept and the tools that were offered. It has no memory
of its own (only `Script` counts its replies).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentx.testing.counting import Json


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` may be text, also text that is no JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Said:
    """What a model answers. `text` None is a null content."""

    text: str | None = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


Brain = Callable[[Sequence[Json], Sequence[Json]], Said]


class ScriptOver(LookupError):
    """A script was asked for more replies than it has."""


class Script:
    """Fixed replies, one after the other; a text stands for a reply of that text, a call for one call.

    Raises ScriptOver after the last one. `seen` keeps what each reply was made from.
    """

    def __init__(self, replies: Sequence[Said | Call | str]) -> None:
        self.replies = tuple(replies)
        self.seen: list[tuple[Json, ...]] = []

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        if len(self.seen) >= len(self.replies):
            raise ScriptOver(f"the script is over after {len(self.replies)} replies")
        reply = self.replies[len(self.seen)]
        self.seen.append(tuple(messages))
        if isinstance(reply, str):
            return Said(reply)
        return Said(calls=(reply,)) if isinstance(reply, Call) else reply


def text_of(messages: Sequence[Json]) -> str:
    """Everything that can be read in *messages*, arguments of calls too."""
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    texts = [message["content"] for message in messages]
    return "\n".join([*texts, *(call["function"]["arguments"] for call in calls)])


def asks_for_summary(messages: Sequence[Json], tools: Sequence[Json]) -> bool:
    """A request without tools whose first or last message speaks of a summary."""
    ends = [messages[0], messages[-1]] if messages else []
    return not tools and any(re.search(r"summar", message["content"], re.IGNORECASE) for message in ends)


class NoteReader:
    """Reads the notes that its task names, one a turn, and answers with the codes that it can see.

    It works from what it was sent and nothing else: the task (or its words in a summary), the codes that stand
    anywhere, and its own calls. A note whose code it cannot see it reads (again). Without a task it asks what
    to do. Where a note was shown without its code (clipped), it reads on in pages of ten lines.
    """

    TASK = re.compile(r"notes/note-(\d\d)\.txt to notes/note-(\d\d)\.txt")
    CODE = re.compile(r"\bN(\d\d)-[A-Z]{2}\d{4}\b")
    PAGE = 10

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        text = text_of(messages)
        codes = {int(found[1]): found[0] for found in self.CODE.finditer(text)}
        task = self.TASK.search(text)
        if asks_for_summary(messages, tools):
            return Said(self.summary(task, codes))
        if task is None:
            return Said("I do not know what to do. What is the task?")
        missing = [n for n in range(int(task[1]), int(task[2]) + 1) if n not in codes]
        if missing:
            return Said(calls=(self.next_read(messages, missing[0]),))
        return Said("The codes are: " + ", ".join(codes[number] for number in sorted(codes)) + ".")

    def summary(self, task: re.Match[str] | None, codes: Mapping[int, str]) -> str:
        """What can be seen, in the sections that summaries have."""
        lines = ["Goal: answer with every code planted in the notes"]
        if task is not None:
            lines[0] += f" ({task[0]}, one after the other, in their order)"
        lines.append("Facts:")
        lines += [
            f"- notes/note-{number:02}.txt was read, its code is {codes[number]}" for number in sorted(codes)
        ]
        lines.append("Next: read the first note that is not listed above; when all are, answer.")
        return "\n".join(lines)

    def next_read(self, messages: Sequence[Json], number: int) -> Call:
        """The call that may show the code of note *number*: the whole note, or the next page of a clipped one."""
        path = f"notes/note-{number:02}.txt"
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        arguments: list[Json] = [json.loads(call["function"]["arguments"]) for call in calls]
        made = [given for given in arguments if given.get("path") == path]
        shown = any(
            message["role"] == "tool" and f"Note {number:02} of" in message["content"] for message in messages
        )
        if not made or not shown:
            return Call("read_file", {"path": path})
        offset = max(int(given.get("offset", 1 - self.PAGE)) for given in made) + self.PAGE
        return Call("read_file", {"path": path, "offset": offset, "limit": self.PAGE})


class KeyKeeper:
    """Answers the question for the two keys: a key that it cannot see it invents, as small models do."""

    SYSTEM = re.compile(r"system key is ([A-Z]+-\d{4})", re.IGNORECASE)
    PERSONAL = re.compile(r"personal key is ([A-Z]+-\d{4})", re.IGNORECASE)
    INVENTED = "1234567890"

    def __call__(self, messages: Sequence[Json], tools: Sequence[Json]) -> Said:
        text = text_of(messages)
        system, personal = self.SYSTEM.search(text), self.PERSONAL.search(text)
        if asks_for_summary(messages, tools):
            known = [f"The system key is {system[1]}."] if system else []
            known += [f"The user's personal key is {personal[1]}."] if personal else []
            return Said(" ".join([*known, "Twelve notes of a harbour crew were sent and understood."]))
        last = messages[-1]["content"] if messages else ""
        if "key" not in last or "?" not in last:
            return Said("Understood.")
        keys = [found[1] if found else self.INVENTED for found in (system, personal)]
        return Said(f"The system key is {keys[0]} and your personal key is {keys[1]}.")
