"""The tool calls of a reply: started before they run, ended after, and nothing twice after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agentx.agent.prompts import interrupted_call
from agentx.context.clip import clip, spill
from agentx.events import Replied, ToolEnded, ToolStarted, utc
from agentx.journal import Entry, Journal
from agentx.tools.toolbox import Result, Toolbox
from agentx.wires.messages import Message, ToolCall

DEEPEST = 50
"""Levels of arguments in an event: who reads JSON often stops at some hundred."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A call of the last reply without a result; `started` is when it was started (epoch seconds), if it was."""

    call: ToolCall
    started: float | None


def pending_calls(journal: Journal) -> list[Pending]:
    """The calls of the last committed reply that have no result yet, in order."""
    replies = journal.query(
        "select seq from entries where type = 'reply' and payload is not null order by seq desc limit 1"
    )
    if not replies:
        return []
    (entry,) = journal.read(replies[0][0] - 1, limit=1)
    after = journal.read(entry.seq, types=("tool.started", "tool.ended"))
    ended = {e.event.id for e in after if isinstance(e.event, ToolEnded)}
    started = {e.event.id: e.time for e in after if isinstance(e.event, ToolStarted)}
    return [Pending(call, started.get(call.id)) for call in message_of(entry).tool_calls if call.id not in ended]


@dataclass(frozen=True, slots=True)
class LastWord:
    """A reply without calls: the model says that it is finished."""

    text: str
    finish: str


def last_word(journal: Journal) -> LastWord | None:
    """The last reply, when it called nothing and nothing followed it: the process died, or the job had ended."""
    said = journal.query(  # replies to what was asked beside the turns have no payload
        "select seq from entries where type in ('job.started', 'message', 'nudge', 'reply', 'tool.ended')"
        " and payload is not null order by seq desc limit 1"
    )
    entry = journal.read(said[0][0] - 1, limit=1)[0] if said else None
    if entry is None or not isinstance(entry.event, Replied):
        return None
    message = message_of(entry)
    return None if message.tool_calls else LastWord(message.text, entry.event.finish)


def message_of(entry: Entry) -> Message:
    """The message that *entry* carries."""
    assert entry.payload is not None
    return Message.from_json(entry.payload["message"])


class Calls:
    """Runs calls one after the other; each has its own two entries."""

    def __init__(
        self, journal: Journal, toolbox: Toolbox, output: Path, changed_since: Callable[[float], str]
    ) -> None:
        self.journal = journal
        self.toolbox = toolbox
        self.output = output
        self.changed_since = changed_since

    async def run(self, pending: Pending, limit: int) -> Result:
        """The result of one call, committed; at most *limit* tokens of it stand in the conversation.

        A call that was started by a process that died runs again only when it reads; else the model gets an
        honest result.
        """
        call = pending.call
        if pending.started is not None and self.toolbox.effect(call.name) != "read":
            changed = self.changed_since(pending.started)
            text = interrupted_call(call.name, utc(pending.started), changed)
            result = Result(text, False, size=len(text))
            self._ended(call, result, 0.0, limit)
            return result
        acts = self.toolbox.effect(call.name) != "read"
        self.journal.append(ToolStarted(id=call.id, name=call.name, arguments=arguments_of(call)), durable=acts)
        before = self.toolbox.monotonic()
        result = await self.toolbox.run(call)
        self._ended(call, result, self.toolbox.monotonic() - before, limit, durable=acts)
        return result

    def _ended(self, call: ToolCall, result: Result, seconds: float, limit: int, *, durable: bool = False) -> None:
        clipped = clip(result.text, limit, restore_id=call.id)
        whole = result.whole
        if clipped.clipped and whole is None:
            whole = spill(self.output, result.text)
        message = Message(
            role="tool", text=clipped.text, images=result.images, tool_call_id=call.id, name=call.name
        )
        payload: dict[str, Any] = {"message": message.to_json()}
        if whole is not None:
            payload["whole"] = str(whole)
        self.journal.append(
            ToolEnded(
                id=call.id,
                name=call.name,
                ok=result.ok,
                seconds=round(seconds, 3),
                bytes=result.size,
                clipped=clipped.clipped or result.whole is not None,
                restored_from=result.restored_from,
            ),
            payload,
            durable=durable,
        )


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, for the event; text that is none, or a labyrinth, stands under `text`."""
    try:
        parsed = call.parsed()
    except (ValueError, RecursionError):
        return {"text": call.arguments}
    return {"text": call.arguments} if deeper_than(DEEPEST, parsed) else parsed


def deeper_than(levels: int, value: Any) -> bool:
    """Whether lists and objects stand in each other in more than so many *levels*."""
    if not isinstance(value, dict | list):
        return False
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return levels <= 0 or any(deeper_than(levels - 1, item) for item in inner)
