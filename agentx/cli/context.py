"""`agentx context`: what fills a job's context, when it will be compacted, and what compaction did so far."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from agentx.cli.output import answer, answer_json, columns, local_time, table, wrapped
from agentx.cli.session import Session
from agentx.cli.words import percent, short
from agentx.jobs.gauge import Gauge, gauge
from agentx.jobs.store import Store

WIDEST_BAR, NARROWEST_BAR = 40, 8
LABEL = 11
"""Columns of what stands before each fact."""

WORDS = {
    "system": "system prompt",
    "tools": "tools",
    "task": "task and your words",
    "memory": "memory",
    "summaries": "summaries",
    "results": "tool results",
    "recent": "replies and calls",
}
"""What people call the parts of a view."""

BREAKER = {
    "open": "open: {cause}, until {until} or until the conversation has grown by a quarter",
    "half_open": "half open: {cause} failed {failures}, the next attempt decides",
    "closed": "closed: {cause} failed {failures}",
}


@click.command()
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_obj
def context(session: Session, job: str, *, as_json: bool) -> None:
    """Show the context of JOB: used, window and its source, threshold, what fills it, compactions, breaker."""
    shown = gauge(Store(session.paths().jobs).find(job), time.time())
    if as_json:
        answer_json(shown.to_json())
        return
    answer("\n".join(_lines(shown, min(100, columns()))))


def _lines(shown: Gauge, width: int) -> list[str]:
    who = f"{shown.name} ({shown.id})" if shown.name else shown.id
    until = f" until {local_time(shown.waiting_until)}" if shown.waiting_until else ""
    facts = [("job", f"{who}, {shown.state}{until}")]
    if shown.window is None or shown.threshold is None or shown.reserve is None:
        facts.append(("window", "not known yet: no request was made"))
    else:
        how = "counted by the provider" if shown.counted else "estimated"
        filled = f"{short(shown.used)} of {short(shown.window)} ({percent(shown.used, shown.window)} %), {how}"
        facts += [
            ("link", str(shown.link)),
            ("context", filled),
            ("", _bar(shown.used, shown.window, shown.threshold, width - LABEL)),
            ("window", f"{shown.window:,} ({shown.window_source})"),
            ("threshold", f"{shown.threshold:,}: compaction starts here"),
            ("reserve", f"{shown.reserve:,}: kept free for the reply"),
        ]
    facts += [("breaker", line) for line in _breaker(shown)]
    lines = [line for label, text in facts for line in wrapped(f"{label:<{LABEL}}", text, width)]
    return [*lines, *_fills(shown), *_left_out(shown, width), *_compactions(shown, width)]


def _bar(used: int, window: int, threshold: int, width: int) -> str:
    """The window as a line: what is used, and where compaction starts."""
    width = max(NARROWEST_BAR, min(WIDEST_BAR, width))
    filled, mark = min(width, width * used // window), min(width - 1, width * threshold // window)
    cells = "█" * filled + "░" * (width - filled)
    return f"{cells[:mark]}┃{cells[mark + 1 :]}"


def _breaker(shown: Gauge) -> list[str]:
    causes: Sequence[Mapping[str, Any]] = shown.breaker["causes"] if shown.breaker else []
    lines: list[str] = []
    for one in causes:
        failures = "once" if one["failures"] == 1 else f"{one['failures']} times in a row"
        until = one["until"] and local_time(one["until"])
        lines.append(BREAKER[one["state"]].format(cause=one["cause"], failures=failures, until=until))
    return lines


def _fills(shown: Gauge) -> list[str]:
    if not shown.used:
        return []
    rows = [[WORDS[part], size, f"{percent(size, shown.used):3} %"] for part, size in shown.fills.items()]
    return ["", table(["WHAT FILLS IT", "TOKENS", "SHARE"], rows)]


def _left_out(shown: Gauge, width: int) -> list[str]:
    if not shown.left_out:
        return []
    total = shown.messages + shown.left_out
    text = f"{shown.left_out:,} of {total:,} messages are left out; the journal keeps all of them"
    return wrapped("", text, width)


def _compactions(shown: Gauge, width: int) -> list[str]:
    """Every compaction, those that came to nothing too; `>` marks the checkpoint that is in use."""
    used = {one["generation"] for one in shown.checkpoints if one["in_use"]}
    rows: list[list[object]] = []
    for one in shown.compactions:
        by = ", ".join(str(tier.get("name", tier["tier"])) for tier in one["tiers"] if tier["ok"])
        sizes = f"{short(one['before'])} → {short(one['after'])}"
        mark = ">" if one["seq"] in used else ""
        rows.append([mark, local_time(one["time"]), one["cause"], by or "nothing helped", sizes])
    return ["", table(["", "COMPACTED", "CAUSE", "BY", "TOKENS"], rows, width=width)] if rows else []
