"""How `agentx windows` looks: text of at most 100 columns, the same on a terminal and in a pipe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]

COLUMNS = 100
WIDEST_NAME = 46
HEADERS = ("LINK", "WINDOW", "OUTPUT", "THRESHOLD", "RESERVE", "CONFIDENCE")
ROUTE = re.compile(r"\b(?:GET|POST) (/\S*[^\s,;:])")
DATED = ("windows.yaml", "catalogue")
ALWAYS_NOW = ("config", "requested", "assumed")


def overview(rows: Sequence[Row]) -> str:
    """Two lines for each link: its numbers, and below them in words where the window comes from."""
    width = max((len(row["link"]) for row in rows if len(row["link"]) <= WIDEST_NAME), default=0)
    lines = [_columns(width, *HEADERS)]
    for row in rows:
        name = row["link"]
        if len(name) > width:
            lines.append(name)
            name = ""
        threshold = number(row["threshold"]) if row["threshold"] else "too small"
        numbers = number(row["window"]), number(row["output"]), threshold, number(row["reserve"])
        lines.append(_columns(width, name, *numbers, row["confidence"]))
        trained = f"; trained for {number(row['trained'])}" if row["trained"] else ""
        lines += _wrapped("  ", where(row) + trained)
    return "\n".join(lines)


def explained(row: Row) -> str:
    """One link in full: its numbers, and every place where its window may come from."""
    title = row["link"] if row["link"] == f"{row['provider']}/{row['model']}" else f"{row['link']}: {row['model']}"
    threshold = f"{number(row['threshold'])}: compaction starts here" if row["threshold"] else "too small to work"
    facts = [
        ("window", f"{number(row['window'])} {'' if row['shared'] else 'for the prompt alone '}({where(row)})"),
        ("trained", number(row["trained"])),
        ("output", f"at most {number(row['output'])}" if row["output"] else "-"),
        ("threshold", threshold),
        ("reserve", f"{number(row['reserve'])}: kept free for the reply" if row["reserve"] else "-"),
        ("confidence", row["confidence"]),
    ]
    lines = [f"{title} at {row['endpoint']}"]
    lines += [line for key, text in facts for line in _wrapped(f"  {key:<12}", text)]
    if "measured" in row:
        names = ("measured", *[""] * len(row["measured"]["said"]))
        said = zip(names, row["measured"]["said"], strict=False)
        lines += [line for name, text in said for line in _wrapped(f"  {name:<12}", text)]
    lines += ["", "  places where the window may come from, the first goes first (> is used)"]
    lines += [line for one in row["candidates"] for line in _candidate(one)]
    lines += [line for text in row["refused"] for line in _wrapped(f"  {'not taken':<12}", text)]
    return "\n".join(lines)


def warned(row: Row) -> Iterator[str]:
    """What is off with a link, each with its cure below it."""
    for one in row["advice"]:
        yield f"warning: {row['link']}: {one['text']}"
        if one["cure"]:
            yield f"  cure: {one['cure']}"


def where(one: Mapping[str, Any]) -> str:
    """The source in words: "served: `/api/ps` models[].context_length, 4 s ago"."""
    source, detail = one["source"], ROUTE.sub(r"`\1`", one["detail"])
    if source == "windows.yaml" and detail.startswith("shipped "):
        detail = f"the shipped one, line {detail.rpartition(':')[2]}"
    if source in ALWAYS_NOW:
        return f"{source}: {detail}"
    if one["source"] in DATED:
        then = datetime.now(UTC).timestamp() - one["age_seconds"]
        return f"{source}: {detail}, of {datetime.fromtimestamp(then, UTC):%Y-%m-%d}"
    return f"{source}: {detail}, {age(one['age_seconds'])} ago"


def age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _candidate(one: Mapping[str, Any]) -> Iterator[str]:
    start = f"{'>' if one['won'] else ' ':<2}{one['source']:<12} {number(one['window']):>11}  "
    if one["window"] is None:
        yield from _wrapped(start, one["reason"])
        return
    words = where(one).partition(": ")[2]
    read = "" if one["source"] == "assumed" else f" ({words})"
    yield from _wrapped(start, f"{one['reason']}{read}")


def _columns(width: int, name: str, window: str, output: str, threshold: str, reserve: str, sure: str) -> str:
    return f"{name:<{width}}  {window:>9}  {output:>7}  {threshold:>9}  {reserve:>7}  {sure}"


def _wrapped(start: str, text: str) -> Sequence[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
