"""What a tool is: its words and schema for the model, what it may do to the world, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from agentx.wires.messages import Image, Tool

Effect = Literal["read", "check", "act"]
"""`read`: changes nothing, so it can run again after a crash. `check`: whether it was done can be seen from the
content. `act`: anything may have happened."""

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What one call gave. `size` is the bytes of the whole; `whole` is where the whole text lies when `text` is
    only a part of it. `restored_from` is the journal entry that a restored result comes from."""

    text: str
    ok: bool
    images: tuple[Image, ...] = ()
    size: int = 0
    whole: Path | None = None
    restored_from: int | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of all tools. Times are seconds, `*_bytes` and `*_chars` say what they count."""

    timeout: float = 600
    longest_timeout: float = 3600
    grace: float = 5.0
    """From TERM to KILL."""
    flood_bytes: int = 50_000_000
    """A command that prints more is ended."""
    kept_bytes: int = 500_000_000
    """Of spilled output, for the whole job."""
    head_chars: int = 8_000
    tail_chars: int = 16_000
    filter_noise: bool = False
    """Progress bars and repeated lines are not shown."""
    background: int = 8
    """Commands that run in the background at once."""
    read_lines: int = 2_000
    read_chars: int = 100_000
    line_chars: int = 2_000
    image_bytes: int = 3_750_000
    """Providers take 5 MB of base64."""
    text_bytes: int = 20_000_000
    """The largest file that `edit_file` changes and `write_file` writes."""
    notes_chars: int = 32_000
    listed: int = 500
    matches: int = 200


@dataclass(frozen=True, slots=True)
class Spec:
    """How the model sees a tool. `brief` is the description for windows that can hold little.

    `properties` are JSON schemas by argument name; the brief form leaves out their descriptions, and the `rare`
    ones altogether.
    """

    name: str
    description: str
    brief: str
    effect: Effect
    properties: Mapping[str, Mapping[str, Any]]
    required: Sequence[str]
    rare: Sequence[str] = ()

    def tool(self, *, terse: bool) -> Tool:
        """This tool on the wire."""
        properties: dict[str, Mapping[str, Any]] = dict(self.properties)
        if terse:
            properties = {name: bare(schema) for name, schema in properties.items() if name not in self.rare}
        parameters = {"type": "object", "properties": properties, "required": list(self.required)}
        return Tool(self.name, self.brief if terse else self.description, parameters)

    def usage(self) -> str:
        """The arguments in one line, for a model that got them wrong: `read_file(path, offset?, limit?)`."""
        names = [name if name in self.required else f"{name}?" for name in self.properties]
        return f"{self.name}({', '.join(names)})"


def bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """*schema* without its description."""
    return {key: value for key, value in schema.items() if key != "description"}


class Ability(Protocol):
    """A tool that can run. Raises ToolFailed with words for the model."""

    @property
    def spec(self) -> Spec: ...

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        """*arguments* are checked against the schema; *call_id* names the call in the journal."""
        ...
