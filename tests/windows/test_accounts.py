"""Two accounts of one hosted provider: the same address and model, another key, another window."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from agentx.config.links import Link, Provider
from agentx.windows.cache import Cache
from agentx.windows.catalogue import Catalogue
from agentx.windows.registry import WindowRegistry
from agentx.windows.tables import Tables

KEYS = {"FREE_KEY": "sk-free-0123456789abcdef", "PAID_KEY": "sk-paid-0123456789abcdef"}
SIZES = {"FREE_KEY": 8_192, "PAID_KEY": 131_072}


def linked(variable: str, *, self_hosted: bool = False) -> Link:
    provider = Provider(
        name="host", card="host", wire="openai", base_url="https://host.example/v1", probes=("openai_list",),
        self_hosted=self_hosted,
    )  # fmt: skip
    return Link(provider=provider, model="m", name=variable, api_key_env=variable)


def by_account(request: httpx.Request) -> httpx.Response:
    variable = next(name for name, key in KEYS.items() if request.headers["authorization"] == f"Bearer {key}")
    listed = json.dumps({"data": [{"id": "m", "context_length": SIZES[variable]}]})
    return httpx.Response(200, stream=httpx.ByteStream(listed.encode()))


def run(
    work: Callable[[WindowRegistry], Awaitable[None]], file: Path, clock: Any, keys: dict[str, str] = KEYS
) -> None:
    async def go() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(by_account)) as client:
            await work(
                WindowRegistry(
                    client=client,
                    environ=keys,
                    cache=Cache(file),
                    tables=Tables(),
                    catalogue=Catalogue(None),
                    now=clock,
                )
            )

    asyncio.run(go())


def test_each_account_has_its_own_window_now_and_in_the_next_process(tmp_path: Path, clock: Any) -> None:
    file, free, paid = tmp_path / "windows.json", linked("FREE_KEY"), linked("PAID_KEY")

    async def asked(registry: WindowRegistry) -> None:
        await registry.refresh([free, paid])
        assert [registry.window(link).size for link in (free, paid)] == [8_192, 131_072]
        registry.learn(paid, 100_000, "refused")
        assert [registry.window(link).size for link in (free, paid)] == [8_192, 100_000]

    async def kept(registry: WindowRegistry) -> None:
        assert [registry.window(link).size for link in (free, paid)] == [8_192, 100_000]

    async def another_account_under_the_same_name(registry: WindowRegistry) -> None:
        assert registry.window(free).size == 100_000

    run(asked, file, clock)
    run(kept, file, clock)
    run(another_account_under_the_same_name, file, clock, {"FREE_KEY": KEYS["PAID_KEY"]})
    text = file.read_text(encoding="utf-8")
    assert not any(key in text or key[3:] in text for key in KEYS.values())


def test_a_server_of_ones_own_has_one_window_whoever_asks(tmp_path: Path, clock: Any) -> None:
    free, paid = linked("FREE_KEY", self_hosted=True), linked("PAID_KEY", self_hosted=True)

    async def work(registry: WindowRegistry) -> None:
        registry.learn(free, 20_000, "refused")
        assert registry.window(paid).size == 20_000

    run(work, tmp_path / "windows.json", clock)
