"""One link to one server: the smallest configuration that a job runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentx.testing.server import FaultServer


@pytest.fixture(name="chain_of_one")
def chain_of_one_fixture() -> Callable[..., dict[str, Any]]:
    def chain_of_one(server: FaultServer, *, key: str | None = None, **more: Any) -> dict[str, Any]:
        box = {"card": "openai-compatible", "base_url": f"{server.url}/v1"}
        return {
            "default_chain": "c",
            "chains": {"c": [{"model": "box/m"}]},
            "providers": {"box": box | ({"api_key_env": key} if key else {})},
            **more,
        }

    return chain_of_one
