"""A model server that fails as it is told, by itself, for trying any client against it.

    python -m agentx.testing --fault cut-stream             # every chat fails
    python -m agentx.testing --fault status-429 --times 2   # the first two do

The address is the first line on stdout; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from typing import get_args

from agentx.testing.brain import Brain, KeyKeeper, NoteReader
from agentx.testing.faces import Face
from agentx.testing.faults import Refused, Schedule, TlsCut, Unreachable, Unresolvable, always, first, healthy
from agentx.testing.keeping import Overflow
from agentx.testing.named import NAMED
from agentx.testing.server import FaultServer, says_hello

BRAINS: dict[str, Brain] = {"hello": says_hello, "notes": NoteReader(), "keys": KeyKeeper()}


def parser() -> argparse.ArgumentParser:
    faults = "\n".join(f"  {name:<18} {named.says}" for name, named in NAMED.items())
    made = argparse.ArgumentParser(
        prog="python -m agentx.testing",
        description=__doc__,
        epilog=f"faults:\n{faults}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--face", choices=get_args(Face), default="openai", help="how it speaks (%(default)s)")
    made.add_argument("--model", default="scripted", help="the name of its model (%(default)s)")
    made.add_argument("--window", type=int, default=32_768, help="the tokens that it really keeps (%(default)s)")
    made.add_argument("--claims", type=int, help="the window that its lists name instead")
    made.add_argument("--overflow", choices=get_args(Overflow), default="refuse", help="what it does beyond that")
    made.add_argument(
        "--brain",
        choices=tuple(BRAINS),
        default="hello",
        help="`hello` says hello, `notes` reads the demo's notes, `keys` repeats two planted keys (%(default)s)",
    )
    made.add_argument("--fault", choices=NAMED, metavar="NAME", help="how chats fail; the names stand below")
    made.add_argument("--times", type=int, metavar="N", help="only the first N chats fail")
    made.add_argument("--port", type=int, default=0, help="0 takes a free one")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; the address is the first line on stdout."""
    chosen = parser().parse_args(arguments)
    unreachable: Unreachable | None = None
    schedule: Schedule = healthy
    if chosen.fault is not None:
        fault = NAMED[chosen.fault].fault
        if isinstance(fault, Refused | Unresolvable | TlsCut):
            unreachable = fault
        else:
            schedule = always(fault) if chosen.times is None else first(chosen.times, fault)
    try:
        server = FaultServer(
            BRAINS[chosen.brain],
            face=chosen.face,
            models=[chosen.model],
            window=chosen.window,
            claims="true" if chosen.claims is None else chosen.claims,
            overflow=chosen.overflow,
            schedule=schedule,
            unreachable=unreachable,
            port=chosen.port,
        )
    except OSError as error:
        sys.stderr.write(f"error: port {chosen.port}: {error.strerror}\n\nhint: `--port 0` takes a free one\n")
        return 1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind deaf to Ctrl-C
    with server:
        try:
            sys.stdout.write(server.url + "\n")
            sys.stdout.flush()
            threading.Event().wait()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
