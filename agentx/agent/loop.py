"""The loop: a reply, its tool calls, again, until the model is finished and it is true."""

from __future__ import annotations

import json
from collections.abc import Callable

from agentx.agent import prompts
from agentx.agent.calls import Calls, LastWord, Pending, arguments_of, last_word, pending_calls
from agentx.agent.ending import Ending, done, unfinished
from agentx.agent.guard import LoopGuard, without_times
from agentx.agent.limits import Limits, Totals, check_limits
from agentx.agent.turn import Turns
from agentx.errors import AgentxError, StateError, StopRequested
from agentx.events import Nudged, PlanUpdated, UserMessage, Warned
from agentx.journal import Journal
from agentx.tools.toolbox import Toolbox
from agentx.wires.messages import Message, Reply, ToolCall

MOST_NUDGES = 3
"""How often in a row a model is sent back for the same reason before the run ends as `unfinished`."""

CHECK_SECONDS = 1_800
LONGEST_CHECK = 4_000
"""Characters of what the user's check said."""


class Agent:
    """Runs one job in this process to its ending. All state that matters is in the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        turns: Turns,
        calls: Calls,
        toolbox: Toolbox,
        limits: Limits,
        totals: Callable[[], Totals],
        until: str | None = None,
    ) -> None:
        self.journal = journal
        self.turns = turns
        self.calls = calls
        self.toolbox = toolbox
        self.limits = limits
        self.totals = totals
        self.until = until
        self.guard = LoopGuard()
        self.generation = 0
        """The newest compaction that a view was made with."""
        self.nudges: dict[str, int] = {}
        self.check_said = ""

    async def run(self) -> Ending:
        """The ending. Raises AgentxError for endings that are errors (limits, chain, context, stop)."""
        for pending in pending_calls(self.journal):
            await self._call(pending)
        said = last_word(self.journal)
        if said is not None and not self.journal.letters() and (ending := await self._finished(said)):
            return ending
        while True:
            self.deliver()
            await self.compact_if_asked()
            check_limits(self.limits, self.totals())
            reply = await self.turns.turn()
            if self.turns.context.state.generation > self.generation:
                self.generation = self.turns.context.state.generation
                self.guard = self.guard.compacted()
            if (ending := await self._after(reply)) is not None:
                return ending

    def deliver(self) -> None:
        """Take what others asked of the job. Raises StopRequested when somebody asked it to stop."""
        self.stop_if_asked()
        for letter in self.journal.letters("message"):
            self.journal.take(letter)
            self.say(letter.text)

    def stop_if_asked(self) -> None:
        for letter in self.journal.letters("stop"):
            self.journal.take(letter)
            raise StopRequested("stopped on request; nothing is lost")

    async def compact_if_asked(self) -> None:
        """Compact, once for all who asked. Each is answered with the entry that tells what came of it."""
        letters = self.journal.letters("compact")
        if not letters:
            return
        try:
            told = await self.turns.compact_now()
        except (StateError, StopRequested):  # the journal's own, or a stop: not of the compaction
            raise
        except AgentxError as error:
            told = self.journal.append(Warned(message=f"not compacted: {error.message}", hint=error.hint)).seq
        for letter in letters:
            self.journal.take(letter, answer=told)

    def say(self, text: str) -> None:
        """A person's words, into the conversation."""
        message = Message(role="user", text=text)
        self.journal.append(UserMessage(text=text), {"message": message.to_json()})

    def nudge(self, reason: str, text: str) -> bool:
        """Send the model back to work; False when that was done often enough in a row for *reason*."""
        made = self.nudges.get(reason, 0)
        if made >= MOST_NUDGES:
            return False
        self.nudges[reason] = made + 1
        self.journal.append(Nudged(text=text), {"message": Message(role="user", text=text).to_json()})
        return True

    async def _after(self, reply: Reply) -> Ending | None:
        calls = reply.message.tool_calls
        if not calls:
            return await self._finished(LastWord(reply.message.text, reply.finish))
        self.nudges.pop("cut", None)
        self.nudges.pop("open items", None)
        for call in calls:
            await self._call(Pending(call, None))
            self.stop_if_asked()  # calls that were not started run after `resume`
        if self.guard.stuck:
            return unfinished(
                f"stuck in a loop: {calls[-1].name} {self.guard.why}",
                hint='look at `agentx logs JOB`; go on with `agentx resume JOB "another way: ..."`',
            )
        if self.guard.should_tell:
            self.nudge("loop", prompts.REPEATING)
        return None

    async def _call(self, pending: Pending) -> None:
        result = await self.calls.run(pending, self.turns.result_limit())
        call: ToolCall = pending.call
        self.guard = self.guard.after(call.name, arguments_of(call), result.text)

    async def _finished(self, said: LastWord) -> Ending | None:
        """The model says that it is finished: is it?"""
        answer = said.text
        if self.journal.letters("message"):
            return None
        if said.finish in ("length", "window"):
            if self.nudge("cut", prompts.CUT):
                return None
            return unfinished("the reply was cut at its length limit again and again", answer=answer)
        if open_items := self._open_items():
            if self.nudge("open items", prompts.open_items(open_items)):
                return None
            return unfinished(f"{len(open_items)} items of the plan are still open", answer=answer)
        if self.until is not None:
            command = json.dumps({"command": self.until, "timeout": CHECK_SECONDS})
            checked = await self.toolbox.run(ToolCall("check", "shell", command))
            if not checked.ok:
                printed = checked.text[-LONGEST_CHECK:]
                if without_times(printed) != self.check_said:  # something changed: the model gets somewhere
                    self.check_said = without_times(printed)
                    self.nudges.pop("check", None)
                if self.nudge("check", prompts.check_failed(self.until, printed)):
                    return None
                return unfinished(f"the check `{self.until}` still fails", answer=answer)
        return done(answer)

    def _open_items(self) -> list[str]:
        entry = self.journal.last("plan")
        if entry is None or not isinstance(entry.event, PlanUpdated):
            return []
        return [str(item["text"]) for item in entry.event.items if not item["done"]]
