"""A compaction that somebody asked for, and that fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentx.agent.limits import Limits
from agentx.agent.loop import Agent
from agentx.errors import AgentxError, ChainExhausted, ContextOverflow, StopRequested
from agentx.events import JobStarted
from agentx.journal import Journal


class Failing:
    """Turns whose compaction ends in *error*."""

    def __init__(self, error: AgentxError) -> None:
        self.error = error

    async def compact_now(self) -> int:
        raise self.error


def agent_on(journal: Journal, error: AgentxError) -> Agent:
    edges: dict[str, Any] = {"turns": Failing(error), "calls": None, "toolbox": None, "totals": None}
    return Agent(journal=journal, limits=Limits(), **edges)


def begun(folder: Path) -> Journal:
    journal = Journal(folder / "journal.db")
    journal.append(JobStarted(task="t", chain=["box/m"], workspace="/w", limits={}, version="0"))
    return journal


@pytest.mark.parametrize("error", [ChainExhausted("nobody answers"), ContextOverflow("no room")])
def test_a_compaction_that_fails_is_an_answer_and_a_warning_and_the_job_goes_on(
    tmp_path: Path, error: AgentxError
) -> None:
    journal = begun(tmp_path)
    letter = journal.post("compact")
    asyncio.run(agent_on(journal, error).compact_if_asked())
    warned = journal.last("warning")
    assert warned is not None
    assert (journal.answer(letter), journal.letters("compact")) == (warned, [])
    journal.close()


def test_a_request_to_stop_ends_a_compaction_that_is_done_after_resume(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    letter = journal.post("compact")
    with pytest.raises(StopRequested):
        asyncio.run(agent_on(journal, StopRequested("stopped")).compact_if_asked())
    assert journal.letters("compact") == [letter]
    journal.close()
