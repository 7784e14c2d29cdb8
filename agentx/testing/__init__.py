"""The shipped test kit: a model server on a real socket that fails as it is told, scripted models, a clock.

    from agentx.testing import FaultServer, always, faults

    with FaultServer(schedule=always(faults.CutStream(after=3))) as server:
        ...  # point any client at server.v1, then look at server.chats

`agentx.testing.faults` holds the faults, `agentx.testing.brain` what answers where nothing fails.
`python -m agentx.testing` starts such a server by itself; its `--help` lists what can go wrong, by name.
"""

from agentx.testing.brain import Call, Said, Script
from agentx.testing.clock import VirtualClock
from agentx.testing.faults import Fault, Schedule, after, always, at, first
from agentx.testing.server import FaultServer

__all__ = [
    "Call",
    "Fault",
    "FaultServer",
    "Said",
    "Schedule",
    "Script",
    "VirtualClock",
    "after",
    "always",
    "at",
    "first",
]
