"""The best reply that any link gives: what failed, how long to rest, who is next. Usable alone, without an agent:

    import asyncio
    from agentx.chain import Chain, Link, Message, Request, link_to, open_wires

    async def prepare(link: Link, reason: str) -> Request:
        return Request(model=link.model, messages=[Message(role="user", text="Say hello.")])

    async def main() -> None:
        links = [link_to("openrouter/qwen/qwen3-coder"), link_to("ollama/qwen3:14b")]
        async with open_wires() as wires:
            answer = await Chain(links, wires=wires).ask(prepare)
            print(answer.link.name, answer.reply.message.text)

    asyncio.run(main())

`prepare` is called for the very link that is about to be asked, again for each link. `link_to` knows what
agentx.yaml and the cards know; `link_at` makes a link from an address and reads nothing. Rests are kept in memory;
`Health(file, environ=os.environ)` shares them with other processes. `tell` hears of failures, switches and waits.

Importing this loads nothing; a name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentx.chain.health import Health
    from agentx.chain.library import link_at, open_wires
    from agentx.chain.walk import Answer, Chain
    from agentx.config.links import Link, Provider
    from agentx.windows.settings import link_to
    from agentx.wires.messages import Message, Reply, Request, Timers, Tool, ToolCall, Wire

__all__ = [
    "Answer",
    "Chain",
    "Health",
    "Link",
    "Message",
    "Provider",
    "Reply",
    "Request",
    "Timers",
    "Tool",
    "ToolCall",
    "Wire",
    "link_at",
    "link_to",
    "open_wires",
]

ROOMS = {
    "agentx.chain.health": ("Health",),
    "agentx.chain.library": ("link_at", "open_wires"),
    "agentx.chain.walk": ("Answer", "Chain"),
    "agentx.config.links": ("Link", "Provider"),
    "agentx.windows.settings": ("link_to",),
    "agentx.wires.messages": ("Message", "Reply", "Request", "Timers", "Tool", "ToolCall", "Wire"),
}


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            return getattr(importlib.import_module(room), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
