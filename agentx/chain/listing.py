"""Asks a provider for its list of models: the cheapest question there is, which spends no tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx

from agentx.config.links import Provider
from agentx.errors import RequestFailed
from agentx.wires.key import headers_for, key_for
from agentx.wires.transport import origin, root_cause

ADDRESSES = {
    # litellm_prefix: (address where none is set, route)
    "anthropic": ("https://api.anthropic.com", "/v1/models?limit=1000"),
    "gemini": ("https://generativelanguage.googleapis.com", "/v1beta/models?pageSize=1000"),
}
LISTS = ("data", "models", "all_models_loaded")
NAMES = ("id", "name", "model", "key", "model_name")


@dataclass(frozen=True, slots=True)
class Listed:
    """What a provider says it has. `models` is empty where the list has a shape that is not known.

    `owners` is what stands under `owned_by`: many servers write their own name there.
    """

    models: tuple[str, ...]
    seconds: float
    owners: frozenset[str] = frozenset()

    def has(self, model: str) -> bool:
        return _plain(model) in map(_plain, self.models)


async def list_models(
    provider: Provider,
    client: httpx.AsyncClient,
    key: Callable[[], str | None],
    *,
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> Listed | None:
    """The models of *provider*; None where there is no such list. Raises RequestFailed."""
    url = list_url(provider)
    if url is None:
        return None
    headers = dict(headers_for(provider, key_for(provider, key)))
    del headers["content-type"]
    if provider.litellm_prefix == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    start = clock()
    answer = await _get(client, url, headers, timeout_seconds)
    owners = {name for entry in _entries(answer) if isinstance(name := entry.get("owned_by"), str)}
    return Listed(names_in(answer), clock() - start, frozenset(owners))


def list_url(provider: Provider) -> str | None:
    """Where the list of models is; None where nobody says."""
    if provider.wire == "litellm":
        base, route = ADDRESSES.get(provider.litellm_prefix or "", (None, ""))
        base = (provider.base_url or base) if route else None
        return None if base is None else base.removesuffix("/v1") + route
    if provider.base_url is None:
        return None
    return provider.base_url + ("/api/tags" if provider.wire == "ollama" else "/models")


def names_in(answer: Any, *, state: str | None = None) -> tuple[str, ...]:
    """The names in a list of models, by whatever field servers have for it.

    With *state* only those whose `state` it is.
    """
    names: list[str] = []
    for one in _entries(answer):
        name = next((one[key] for key in NAMES if isinstance(one.get(key), str)), None)
        if name and (state is None or one.get("state") == state):
            names.append(name)
    return tuple(names)


def _entries(answer: Any) -> list[Mapping[str, Any]]:
    """The list in *answer*, or *answer* itself: Together sends a bare array."""
    entries = answer
    if isinstance(answer, Mapping):
        data = cast("Mapping[str, Any]", answer)
        entries = next((data[key] for key in LISTS if data.get(key)), ())
    found = cast("list[Any]", entries) if isinstance(entries, list) else []
    return [cast("Mapping[str, Any]", entry) for entry in found if isinstance(entry, Mapping)]


async def _get(client: httpx.AsyncClient, url: str, headers: Mapping[str, str], timeout_seconds: float) -> Any:
    try:
        answer = await client.get(url, headers=headers, timeout=timeout_seconds)
    except httpx.TimeoutException as error:
        what = f"no answer within {timeout_seconds:g} s"
        raise RequestFailed(what, phase="connect", timed_out=True) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RequestFailed(f"cannot connect to {origin(url)}: {root_cause(error)}", phase="connect") from error
    if not answer.is_success:
        raise RequestFailed(
            f"answered {answer.status_code}",
            phase="status",
            status=answer.status_code,
            headers={name.lower(): value for name, value in answer.headers.items()},
            body=answer.text[: 64 * 1024],
        )
    try:
        return answer.json()
    except ValueError as error:
        raise RequestFailed(
            f"{url}: no list of models", phase="body", status=answer.status_code, error_class="invalid_reply"
        ) from error


def _plain(model: str) -> str:
    return model.removeprefix("models/").removesuffix(":latest").lower()
