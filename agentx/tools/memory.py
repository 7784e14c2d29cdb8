"""`update_notes`, `update_plan` and `restore_tool_result`: what outlives the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agentx.errors import ToolFailed
from agentx.events import Event, NotesUpdated, PlanUpdated
from agentx.tools.tool import Arguments, Limits, Result, Spec
from agentx.tools.workspace import Workspace
from agentx.tools.write import encoded, replace_file

NOTES_FILE = "NOTES.md"
MOST_ITEMS = 200

NOTES = Spec(
    "update_notes",
    "Write NOTES.md: what must not be forgotten when older parts of the conversation are shortened (decisions, "
    "facts, open problems). Replaces it: give everything that still counts.",
    "Write NOTES.md",
    "check",
    {"content": {"type": "string"}},
    ("content",),
)
PLAN = Spec(
    "update_plan",
    "Set the to-do list of the task: all items, in order. Mark an item done only when it is.",
    "Set the to-dos",
    "check",
    {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "done": {"type": "boolean"}},
            },
        }
    },
    ("items",),
)
RESTORE = Spec(
    "restore_tool_result",
    "Bring back an earlier tool result that was shortened, replaced by a marker, or left out with older parts of "
    "the conversation.",
    "Bring back a result",
    "read",
    {
        "id": {"type": "string", "description": "as the marker names it; `list` names all results"},
        "offset": {"type": "integer", "description": "first character, from 0"},
    },
    ("id",),
)


class UpdateNotes:
    def __init__(self, workspace: Workspace, limits: Limits, tell: Callable[[Event], object]) -> None:
        self.spec = NOTES
        self._workspace = workspace
        self._limits = limits
        self._tell = tell

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        text = str(arguments["content"])
        if not text.strip():
            raise ToolFailed("`content` is empty: the notes stay as they are")
        if len(text) > self._limits.notes_chars:
            most = self._limits.notes_chars
            raise ToolFailed(f"{len(text):,} characters are too many for notes: at most {most:,}")
        replace_file(self._workspace.writable(NOTES_FILE), encoded(text))
        self._tell(NotesUpdated(text=text))
        return Result(f"{NOTES_FILE} is written", True, size=len(text.encode("utf-8")))


class UpdatePlan:
    def __init__(self, tell: Callable[[Event], object]) -> None:
        self.spec = PLAN
        self._tell = tell

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        items = plan_items(arguments["items"])
        self._tell(PlanUpdated(items=items))
        still_open = [str(item["text"]) for item in items if not item["done"]]
        said = f"{len(items) - len(still_open)} of {len(items)} done"
        if still_open:
            said += f"; next: {still_open[0]}"
        return Result(said, True, size=len(said))


class RestoreToolResult:
    def __init__(self, restore: Callable[[str, int], str], restored_seq: Callable[[str], int | None]) -> None:
        self.spec = RESTORE
        self._restore = restore
        self._restored_seq = restored_seq

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        id_ = str(arguments["id"]).strip()
        text = self._restore(id_, max(0, arguments.get("offset", 0)))
        size = len(text.encode("utf-8", "replace"))
        return Result(text, True, size=size, restored_from=self._restored_seq(id_))


def plan_items(given: Sequence[Any]) -> list[dict[str, Any]]:
    """The items as {text, done}; a plain string is an open item. Raises ToolFailed."""
    if len(given) > MOST_ITEMS:
        raise ToolFailed(f"{len(given)} items are too many for a plan: at most {MOST_ITEMS}")
    return [_item(number, item) for number, item in enumerate(given, 1)]


def _item(number: int, item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise ToolFailed(f'item {number} must be {{"text": ..., "done": true or false}}')
    values = cast("Mapping[str, Any]", item)
    text = values.get("text", values.get("content"))  # `content` and `status` are what other harnesses use
    if not isinstance(text, str) or not text.strip():
        raise ToolFailed(f"item {number} has no `text`")
    done = values.get("done", values.get("status") in {"completed", "done"})
    if isinstance(done, str) and done.lower() in {"true", "false"}:
        done = done.lower() == "true"
    if not isinstance(done, bool):
        raise ToolFailed(f"item {number}: `done` must be true or false")
    return {"text": text.strip(), "done": done}
