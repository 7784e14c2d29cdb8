"""The one place that prints: answers to stdout, the story to stderr, tables as plain aligned text."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO

UNBOUNDED = 10_000
CONTROL = dict.fromkeys([*range(32), 127, *range(128, 160)]) | {ord("\n"): "\n", ord("\t"): "\t"}


def clean(text: str) -> str:
    """*text* without control characters: what models and tools say must not move the reader's cursor."""
    return text.translate(CONTROL)


def answer(text: str) -> None:
    """Print *text* on stdout, as a line."""
    sys.stdout.write(clean(text).rstrip("\n") + "\n")
    sys.stdout.flush()


def answer_json(value: Any) -> None:
    """Print *value* on stdout as one JSON document on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """Print *text* on stderr, as a line."""
    sys.stderr.write(clean(text).rstrip("\n") + "\n")
    sys.stderr.flush()


def mute(stream: TextIO) -> None:
    """Let *stream* lead nowhere: who listened is gone, or the disk behind it is full."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


@contextmanager
def heard_or_not(stream: TextIO) -> Generator[None]:
    """For what must go on whether or not somebody listens: a *stream* that fails once is mute from then on."""
    try:
        yield
    except OSError:
        mute(stream)


def columns() -> int:
    """How wide the reader's screen is: `COLUMNS` where it is set, else the terminal; unbounded in a pipe."""
    return shutil.get_terminal_size((UNBOUNDED, 24)).columns


def wrapped(start: str, text: str, width: int) -> list[str]:
    """*start* and *text* in lines of at most *width* columns, the later ones below the text; no word is broken."""
    return textwrap.wrap(
        text,
        max(width, len(start) + 8),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Plain aligned columns; numbers stand right. An empty table is its header.

    Rows that do not fit into *width* columns (the reader's screen) are each shown as lines of their own.
    """
    cells = [[clean(str(cell)).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headers), *cells]) for i in range(len(headers))]
    numeric = [
        bool(rows) and all(isinstance(row[i], int | float) or row[i] == "" for row in rows)
        for i in range(len(headers))
    ]

    def shown(row: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [shown(row) for row in [list(headers), *cells]]
    width = columns() if width is None else width
    if rows and max(map(len, lines)) > width:
        lines = [line for row in cells for line in _stacked(headers, row, width)]
    return "\n".join(lines)


def _stacked(headers: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """A row as its first named cell, and below it what the others say, each with its header."""
    named = next(place for place, header in enumerate(headers) if header)
    title = " ".join(cell for cell in row[: named + 1] if cell)
    rest = zip(headers[named + 1 :], row[named + 1 :], strict=True)
    lines = [title, ""]
    for said in [f"{header.lower()} {cell.strip()}" for header, cell in rest if cell.strip()]:
        joined = f"{lines[-1]} · {said}" if lines[-1] else f"  {said}"
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines[-1:] = [*([lines[-1]] if lines[-1] else []), *wrapped("  ", said, width)]
    return [line for line in lines if line]


def local_time(iso: str) -> str:
    """A UTC time of an event as the reader's clock shows it: `03:10`, with its day unless that is today."""
    there = datetime.fromisoformat(iso).astimezone()
    today = there.date() == datetime.now().astimezone().date()
    return there.strftime("%H:%M" if today else "%a %d %b %H:%M")
