"""`python -m agentx.testing`: a fault server by itself, for trying any client against it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from typing import get_args

from agentx.testing.brain import Brain, KeyKeeper, NoteReader
from agentx.testing.faces import Face
from agentx.testing.faults import Schedule, always, healthy, rate_limited
from agentx.testing.keeping import Overflow
from agentx.testing.server import FaultServer, says_hello

BRAINS: dict[str, Brain] = {"hello": says_hello, "notes": NoteReader(), "keys": KeyKeeper()}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m agentx.testing", description=__doc__)
    made.add_argument("--face", choices=get_args(Face), default="openai", help="how it speaks")
    made.add_argument("--model", default="scripted", help="the name of its model")
    made.add_argument("--window", type=int, default=32_768, help="the tokens that it really keeps")
    made.add_argument("--claims", type=int, help="the window that its lists name instead")
    made.add_argument("--overflow", choices=get_args(Overflow), default="refuse", help="what it does beyond that")
    made.add_argument("--brain", choices=tuple(BRAINS), default="hello", help="what answers")
    made.add_argument("--rate-limited", action="store_true", help="answer every chat with 429")
    made.add_argument("--port", type=int, default=0, help="0 takes a free one")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; the address is the first line on stdout."""
    chosen = parser().parse_args(arguments)
    schedule: Schedule = always(rate_limited()) if chosen.rate_limited else healthy
    server = FaultServer(
        BRAINS[chosen.brain],
        face=chosen.face,
        models=[chosen.model],
        window=chosen.window,
        claims="true" if chosen.claims is None else chosen.claims,
        overflow=chosen.overflow,
        schedule=schedule,
        port=chosen.port,
    )
    with server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
