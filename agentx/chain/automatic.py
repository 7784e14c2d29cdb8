"""A chain made from nothing: keys in the environment, then local servers that answer, then the embedded model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import httpx

from agentx.chain.listing import Listed, list_models, names_in
from agentx.config.links import Link, Provider, link_name
from agentx.errors import NoUsableModel, RequestFailed

if TYPE_CHECKING:  # pydantic is not needed by a library user who brings his own links
    from agentx.config.load import Config

HOSTED = ("anthropic", "openai", "gemini", "openrouter", "mistral", "deepseek", "groq")
LOCAL = (
    "ollama", "lmstudio", "llamacpp", "vllm", "koboldcpp", "lemonade", "docker-model-runner", "sglang", "jan",
)  # fmt: skip
"""Looked for at their cards' addresses. Not LocalAI, mlx_lm, llamafile, TGI: they are found where llama.cpp is
looked for, at 8080; nor text-generation-webui, whose 5000 belongs to macOS itself."""
SHARED_PORTS = frozenset({"llamacpp", "vllm"})
"""8080 and 8000 are the usual ports of many servers: there the list of models must name the one of the card."""
OWNERS = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "koboldcpp": "koboldcpp",
    "lemonade": "lemonade",
    "docker": "docker-model-runner",
    "organization_owner": "lmstudio",
}
"""`owned_by` in a list of models to the card of the server that writes it (facts: windows, section 10, trap 3)."""
UNKNOWN = "openai-compatible"
EMBEDDED = "local"
TIMEOUT_SECONDS = 0.5
NO_CHAT = re.compile(
    r"embed|rerank|whisper|\bbge\b|\be5\b|minilm|\bclip\b|\btts\b|stable-diffusion", re.IGNORECASE
)
"""Models that cannot hold a conversation, by their names."""

HINT = """\
three quick ways to have a model:
  `export ANTHROPIC_API_KEY=...` (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, ...)
  `ollama serve` and `ollama pull qwen3:14b`
  `agentx local pull` (a small one of your own, no account needed)"""


async def automatic_links(
    config: Config,
    client: httpx.AsyncClient,
    environ: Mapping[str, str],
    installed_local: Callable[[], bool] | None = None,
) -> tuple[Link, ...]:
    """Links for everything that is there, preferred first. Takes half a second at most.

    Raises NoUsableModel, whose hint has the three quickest ways to have one.
    """
    links = [link for name in HOSTED if (link := _hosted(config, name, environ)) is not None]
    found = await asyncio.gather(*(_served(config, provider, client, environ) for provider in _servers(config)))
    links += [link for link in found if link is not None]
    if EMBEDDED in config.cards and installed_local is not None and installed_local():
        provider = config.provider(EMBEDDED)
        if provider.default_model:
            links.append(config.link(link_name(EMBEDDED, provider.default_model)))
    if not links:
        raise _nothing(config, environ)
    return tuple(links)


def _nothing(config: Config, environ: Mapping[str, str]) -> NoUsableModel:
    """What to type where there is no model; a key whose card names no model is not passed over in silence."""
    keys = {name: card.api_key_env for name, card in config.cards.items() if not card.self_hosted}
    found = [(name, key) for name, key in keys.items() if key and environ.get(key, "").strip()]
    if not found:
        what = "no model: nothing is configured, no key is set and no local server answers"
        return NoUsableModel(what, hint=HINT)
    set_keys = ", ".join(f"`{key}`" for _, key in found)
    what = f"no model: {set_keys} is there, but not which model to ask, and no local server answers"
    hint = "\n".join(f"`--chain {name}/MODEL`" for name, _ in found)
    return NoUsableModel(what, hint=hint)


def _hosted(config: Config, name: str, environ: Mapping[str, str]) -> Link | None:
    if name not in config.cards:
        return None
    provider = config.provider(name)
    variable, model = provider.api_key_env, provider.default_model
    if variable is None or model is None or not environ.get(variable, "").strip():
        return None
    return config.link(link_name(name, model))


def _servers(config: Config) -> list[Provider]:
    """The user's own servers first, then the usual ones; each address once."""
    own = [name for name in config.settings.providers if name not in LOCAL]
    providers = [config.provider(name) for name in (*own, *LOCAL) if name in own or name in config.cards]
    served = [one for one in providers if one.self_hosted and one.base_url is not None]
    return list({one.base_url: one for one in reversed(served)}.values())[::-1]


async def _served(
    config: Config, provider: Provider, client: httpx.AsyncClient, environ: Mapping[str, str]
) -> Link | None:
    """A link to the model that *provider* has loaded, else to the first it lists; None when nobody answers."""

    def key() -> str | None:
        return environ.get(provider.api_key_env) if provider.api_key_env else None

    loaded, listed = await asyncio.gather(
        _loaded(provider, client),
        _listed(provider, client, key),
    )
    names = (*loaded, *(listed.models if listed else ()))
    model = next((name for name in names if not NO_CHAT.search(name)), None)
    if model is None:
        return None
    if listed and provider.name in SHARED_PORTS and provider.name not in config.settings.providers:
        provider = _really(config, provider, listed.owners)
    return Link(provider=provider, model=model, name=link_name(provider.name, model))


def _really(config: Config, provider: Provider, owners: frozenset[str]) -> Provider:
    """The provider that answers at the address of *provider*: by its own name in its list, else one of no kind."""
    cards = [OWNERS[owner] for owner in sorted(owners) if OWNERS.get(owner) in config.cards]
    card = provider.card if provider.card in cards or UNKNOWN not in config.cards else (*cards, UNKNOWN)[0]
    return provider if card == provider.card else config.at(card, str(provider.base_url))


async def _listed(provider: Provider, client: httpx.AsyncClient, key: Callable[[], str | None]) -> Listed | None:
    try:
        return await list_models(provider, client, key, timeout_seconds=TIMEOUT_SECONDS)
    except RequestFailed:
        return None


async def _loaded(provider: Provider, client: httpx.AsyncClient) -> tuple[str, ...]:
    """What is in memory now, at servers that list more than that."""
    base = (provider.base_url or "").removesuffix("/v1")
    route = {"ollama": "/api/ps", "lmstudio": "/api/v0/models", "lemonade": "/v1/health"}.get(provider.card)
    if route is None:
        return ()
    try:
        answer = (await client.get(base + route, timeout=TIMEOUT_SECONDS)).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return ()
    return names_in(answer, state="loaded" if provider.card == "lmstudio" else None)
