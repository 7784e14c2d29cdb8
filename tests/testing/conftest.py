"""One HTTP client for the whole room: making one costs more than most tests here."""

from __future__ import annotations

from collections.abc import Generator

import httpx
import pytest


@pytest.fixture(scope="session")
def client() -> Generator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=5.0) as made:
        yield made
