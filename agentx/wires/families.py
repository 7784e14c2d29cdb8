"""Which family a model is of, whoever serves it: what it wants is the model's, not only the provider's."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from agentx.config.links import Provider
from agentx.wires.cache import CacheStyle

_CLAUDE = re.compile(r"\bclaude\b", re.IGNORECASE)


def host_of(provider: Provider) -> str:
    """The host of the provider's address, empty where it has none of its own."""
    try:
        return urlsplit(provider.base_url or "").hostname or ""
    except ValueError:
        return ""


def is_at(provider: Provider, card: str, domain: str) -> bool:
    """Whether *provider* is the service of *card*, known by its card or by its address."""
    host = host_of(provider)
    return provider.card == card or host == domain or host.endswith(f".{domain}")


def cache_style(provider: Provider, model: str) -> CacheStyle | None:
    """How a request for *model* says what is to be cached; None where nothing is to be said.

    Only Claude wants to be told: Anthropic's own API, and as documented Bedrock, Vertex, OpenRouter and LiteLLM's
    proxy pass it on. The others cache by themselves, or take no such field.
    """
    claude = _CLAUDE.search(model) is not None
    if provider.wire == "litellm":
        return "message" if claude or provider.litellm_prefix == "anthropic" else None
    if not claude or provider.wire != "openai":
        return None
    if is_at(provider, "openrouter", "openrouter.ai"):
        return "part"
    return "message" if provider.card == "litellm-proxy" else None
