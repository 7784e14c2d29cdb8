"""`agentx context`: what a job's context holds, when it will be compacted, and what compaction did so far."""

from __future__ import annotations

from typing import Any

import click

from agentx.cli.output import answer, answer_json, table
from agentx.cli.session import Session
from agentx.cli.words import short
from agentx.events import Compacted, LinkSelected
from agentx.jobs.status import status
from agentx.jobs.store import Store
from agentx.journal import Journal

BAR = 24

WORDS = {
    "job.started": "the task",
    "reply": "replies and calls",
    "tool.ended": "tool results",
    "message": "said by people",
    "nudge": "said by agentx",
}
"""What people call the entries that carry a message."""


@click.command()
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def context(session: Session, job: str, *, as_json: bool) -> None:
    """Show the context of JOB: used, window and its source, threshold, reserve, compactions, breaker."""
    found = Store(session.paths().jobs).find(job)
    used = status(found, 0).used
    journal = found.journal(read_only=True)
    try:
        facts = _facts(journal, used)
    finally:
        journal.close()
    if as_json:
        answer_json(facts)
        return
    answer("\n".join(_lines(facts)))


def _facts(journal: Journal, used: int) -> dict[str, Any]:
    selected = journal.last("link.selected")
    link = selected.event if selected and isinstance(selected.event, LinkSelected) else None
    breaker = journal.last("breaker")
    compactions = [entry.event for entry in journal.read(types=("compaction",))]
    kinds = journal.query(
        "select type, count(*), sum(length(json_extract(payload, '$.message.text'))"
        " + length(coalesce(json_extract(payload, '$.message.tool_calls'), ''))) from entries"
        " where json_extract(payload, '$.message') is not null group by type"
    )
    return {
        "link": link.link if link else None,
        "window": link.window if link else None,
        "window_source": link.window_source if link else None,
        "threshold": link.threshold if link else None,
        "reserve": link.reserve if link else None,
        "used": used,
        "journal": [{"type": kind, "messages": count, "characters": size or 0} for kind, count, size in kinds],
        "compactions": [event.fields() for event in compactions if isinstance(event, Compacted)],
        "breaker": breaker.event.fields() if breaker else None,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    if facts["window"] is None:
        return ["no request was made yet"]
    window, used = int(facts["window"]), int(facts["used"])
    filled = min(BAR, BAR * used // window)
    bar = "█" * filled + "░" * (BAR - filled)
    lines = [
        f"link       {facts['link']}",
        f"context    {bar}  {short(used)} of {short(window)} ({100 * used // window} %)",
        f"window     {window:,} ({facts['window_source']})",
        f"threshold  {facts['threshold']:,}: compaction starts here",
        f"reserve    {facts['reserve']:,}: kept free for the reply",
    ]
    if breaker := facts["breaker"]:
        lines.append(f"breaker    {breaker['state']} ({breaker['cause']})")
    rows: list[list[object]] = []
    for one in facts["compactions"]:
        steps = ", ".join(str(tier["tier"]) for tier in one["tiers"] if tier["ok"])
        rows.append([one["cause"], one["before"], one["after"], steps])
    if rows:
        lines += ["", table(["COMPACTION", "BEFORE", "AFTER", "TIERS"], rows)]
    held = [[WORDS.get(row["type"], row["type"]), row["messages"], row["characters"]] for row in facts["journal"]]
    lines += ["", table(["WHAT", "MESSAGES", "CHARACTERS"], held)]
    lines.append("the system prompt and the tools come on top; what compaction shortened is counted whole")
    return lines
