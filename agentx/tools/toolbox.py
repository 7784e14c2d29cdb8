"""All tools of a job behind one door: what the model calls either gives a result or says what is wrong."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from agentx.errors import StateError, StopRequested, ToolFailed, UsageError
from agentx.events import Event
from agentx.tools.arguments import checked, parsed
from agentx.tools.capture import Store
from agentx.tools.cleaning import Redactor, clean
from agentx.tools.find import LIST, SEARCH, ListFiles, Ripgrep, Search
from agentx.tools.memory import NOTES, PLAN, RESTORE, RestoreToolResult, UpdateNotes, UpdatePlan
from agentx.tools.read import SPEC as READ
from agentx.tools.read import ReadFile
from agentx.tools.shell import OUTPUT, SHELL, Commands, Shell, ShellOutput, one_line
from agentx.tools.tool import Ability, Effect, Limits, Result
from agentx.tools.workspace import Workspace
from agentx.tools.write import EDIT, WRITE, EditFile, WriteFile
from agentx.wires.messages import Tool, ToolCall

DEFAULT_LIMITS = Limits()
TOOL_NAMES = tuple(spec.name for spec in (READ, WRITE, EDIT, LIST, SEARCH, SHELL, OUTPUT, NOTES, PLAN, RESTORE))
"""Every tool, in the order in which a model sees them."""


def unknown_seq(_: str) -> None:
    """Where results do not come from a journal."""


class Toolbox:
    """The tools of one job in *workspace*; whole outputs are kept in *output*.

    *secrets* gives the values that no tool may see and no result may hold. *restore* gives the text of an earlier
    result, by its id, from a character on; *restored_seq* gives the journal entry that it comes from. *tell* is
    told what the model notes and plans. *rg* is ripgrep.
    Close it when the job ends: background commands end then.
    """

    def __init__(
        self,
        workspace: Path,
        output: Path,
        *,
        environ: Mapping[str, str],
        secrets: Callable[[], Sequence[str]],
        restore: Callable[[str, int], str],
        restored_seq: Callable[[str], int | None] = unknown_seq,
        tell: Callable[[Event], object],
        rg: Path | None,
        monotonic: Callable[[], float] = time.monotonic,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.monotonic = monotonic
        self._secrets = secrets
        place = Workspace(workspace)
        ripgrep = Ripgrep(rg, place)
        store = Store(output, limits.kept_bytes)
        owner = hashlib.sha256(os.fsencode(output.absolute())).hexdigest()[:16]
        self._commands = Commands(place.root, store, limits, environ, secrets, monotonic, owner)
        abilities: tuple[Ability, ...] = (
            ReadFile(place, limits),
            WriteFile(place, limits),
            EditFile(place, limits),
            ListFiles(place, ripgrep, limits),
            Search(place, ripgrep, limits),
            Shell(self._commands),
            ShellOutput(self._commands),
            UpdateNotes(place, limits, tell),
            UpdatePlan(tell),
            RestoreToolResult(restore, restored_seq),
        )
        self._abilities = {ability.spec.name: ability for ability in abilities}

    def tools(self, only: Sequence[str] | None = None, terse: bool = False) -> tuple[Tool, ...]:
        """The tools as the model sees them, always in the same order. Raises UsageError for an unknown name."""
        for name in only or ():
            if name not in self._abilities:
                raise UsageError(f"no such tool: `{name}`", hint=self._closest(name))
        wanted = (
            self._abilities
            if only is None
            else {name: self._abilities[name] for name in self._abilities if name in only}
        )
        return tuple(ability.spec.tool(terse=terse) for ability in wanted.values())

    def effect(self, name: str) -> Effect:
        """What a call of *name* may do; a tool that does not exist does nothing."""
        ability = self._ability(name)
        return "read" if ability is None else ability.spec.effect

    async def run(self, call: ToolCall) -> Result:
        """The result of *call*; whatever goes wrong in a tool is a result too.

        Raises only what ends the job: StateError, StopRequested, and cancellation (a command is ended first).
        """
        ability = self._ability(call.name)
        if ability is None:
            text = f"there is no tool `{call.name}`; {self._closest(call.name)}"
            return self._safe(Result(text, False, size=len(text)), read_only=True)
        try:
            result = await ability.run(checked(ability.spec, parsed(call.arguments)), call.id)
        except ToolFailed as error:
            text = error.message if error.hint is None else f"{error.message}\n{error.hint}"
            result = failure(text)
        except (StateError, StopRequested):
            raise
        except OSError as error:
            where = "" if error.filename is None else f"`{error.filename}`: "
            result = failure(f"{where}{error.strerror or error}")
        except Exception as error:  # noqa: BLE001  a broken tool must not end the night: the model reads it
            result = failure(f"{call.name} failed: {type(error).__name__}: {one_line(str(error))}")
        return self._safe(result, read_only=ability.spec.effect == "read")

    async def close(self) -> None:
        """End what runs in the background."""
        await self._commands.close()

    def background(self) -> str:
        """One line for each command that runs in the background; empty when none does."""
        redactor = Redactor(self._secrets())
        now = self.monotonic()
        return "\n".join(
            f"{job.id}: {redactor.redacted(clean(one_line(job.command)))} (for {now - job.started:.0f} s)"
            for job in self._commands.running()
        )

    async def end_left_over(self) -> list[str]:
        """End the commands that an earlier run of the job left behind when it was killed; their programs."""
        return await self._commands.end_left_over()

    def _ability(self, name: str) -> Ability | None:
        return self._abilities.get(name) or self._abilities.get(name.strip().lower().replace("-", "_"))

    def _closest(self, name: str) -> str:
        close = get_close_matches(name.lower(), list(self._abilities), n=1, cutoff=0.5)
        if close:
            return f"did you mean `{close[0]}`?"
        return f"there are: {', '.join(self._abilities)}"

    def _safe(self, result: Result, *, read_only: bool) -> Result:
        text = Redactor(self._secrets()).redacted(clean(result.text))
        return replace(result, text=text, read_only=read_only)


def failure(text: str) -> Result:
    return Result(text, False, size=len(text.encode("utf-8", "replace")))
