"""A process that was stopped for longer than its timers reads first what came meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from agentx.testing.faults import Slow, always
from agentx.testing.server import FaultServer

ASKS = """
import asyncio, sys, httpx
from agentx.config.links import Provider
from agentx.wires.messages import Message, Request, Timers
from agentx.wires.openai import OpenAIWire

async def ask():
    async with httpx.AsyncClient(trust_env=False) as client:
        provider = Provider(name="p", card="p", wire="openai", base_url=sys.argv[1])
        request = Request(model="scripted", messages=[Message(role="user", text="hi")])
        timers = Timers(connect=30, first=5, idle=5, total=60)
        print("asking", flush=True)
        return await OpenAIWire(provider, client, lambda: None).ask(request, timers)

print(asyncio.run(ask()).message.text)
"""


def test_a_frozen_process_moves_its_deadlines() -> None:
    with FaultServer(schedule=always(Slow(2))) as server:
        asking = subprocess.Popen(
            [sys.executable, "-c", ASKS, server.v1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert asking.stdout is not None
        asking.stdout.readline()
        while not server.requests:
            time.sleep(0.01)
        os.kill(asking.pid, signal.SIGSTOP)
        time.sleep(8)
        os.kill(asking.pid, signal.SIGCONT)
        out, err = asking.communicate(timeout=60)
    assert (out, err) == ("Hello.\n", "")
