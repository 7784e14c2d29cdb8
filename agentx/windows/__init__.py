"""How many tokens a model holds right now, and how we know. Usable alone, without jobs, chains or tools:

    import asyncio
    import httpx
    from agentx.windows import link_to, open_registry

    async def main() -> None:
        async with httpx.AsyncClient() as client:
            registry = open_registry(client=client)
            link = link_to("ollama/qwen3:14b")
            await registry.refresh([link])
            window = registry.window(link)
            print(window.size, window.source, window.detail)

    asyncio.run(main())

Importing this loads nothing; a name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentx.windows.record import Window
    from agentx.windows.registry import WindowRegistry, open_registry
    from agentx.windows.settings import link_to

__all__ = ["Window", "WindowRegistry", "link_to", "open_registry"]

ROOMS = {
    "Window": "record",
    "WindowRegistry": "registry",
    "link_to": "settings",
    "open_registry": "registry",
}


def __getattr__(name: str) -> Any:
    if name not in ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{ROOMS[name]}"), name)
