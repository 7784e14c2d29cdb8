"""The test kit that agentx ships: a scripted model, a fault server on a real socket, a clock.

from agentx.testing.server import FaultServer
from agentx.testing.brain import NoteReader
from agentx.testing.faults import always, rate_limited

with FaultServer(NoteReader(), face="ollama", window=4_096, overflow="drop_oldest") as server:
    ...  # point a client at server.url, then look at server.chats
"""
