"""Which family a model is of, whoever serves it: what it wants is the model's, not only the provider's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from agentx.config.links import Provider, identity_of
from agentx.wires.arrange import PLAIN as PLAIN_ORDER
from agentx.wires.arrange import Order
from agentx.wires.cache import CacheStyle
from agentx.wires.schemas import Schemas

Thoughts = Literal["nothing", "text", "details", "blocks"]
"""How a model's reasoning goes back to the endpoint that made it: not at all, as `reasoning_content`, as
OpenRouter's `reasoning_details`, or as the signed blocks of Anthropic."""
Signatures = Literal["nowhere", "google", "litellm"]
"""Where the signature of the thought behind a call stands: Gemini's own compatible route, or LiteLLM's form."""

_CLAUDE = re.compile(r"\bclaude\b", re.IGNORECASE)
_MISTRAL = re.compile(r"mistral|mixtral|codestral|devstral|magistral|pixtral", re.IGNORECASE)
_REASONS = re.compile(r"(?:o[1-9]|gpt-5)(?![a-z0-9])(?!.*\bchat\b)", re.IGNORECASE)
_GEMINI = re.compile(r"\bgemini\b", re.IGNORECASE)
_NO_SYSTEM = re.compile(r"gemma-?[12]\b|codegemma", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one model at one endpoint is spoken to. `issuer` is the identity of that link: what only it can read
    goes back to no other."""

    issuer: str = ""
    order: Order = PLAIN_ORDER
    schemas: Schemas = "whole"
    cache: CacheStyle | None = None
    thoughts: Thoughts = "nothing"
    signatures: Signatures = "nowhere"
    output_field: str = "max_tokens"
    temperature: bool = True
    null_content: bool = False
    """An assistant that only calls has no content, instead of an empty one."""


PLAIN = Dialect()


def dialect_of(provider: Provider, model: str, *, images: bool = True) -> Dialect:
    """The dialect of *model* at *provider*. *images* is false where it is known that it sees none."""
    reasons = _REASONS.match(model.rsplit("/", 1)[-1]) is not None
    mistral = is_at(provider, "mistral", "mistral.ai") or _MISTRAL.search(model) is not None
    return Dialect(
        issuer=identity_of(provider, model),
        order=Order(
            ids="mistral" if mistral else "plain",
            system=_NO_SYSTEM.search(model) is None,
            user_after_tool=not mistral,
            images=images,
        ),
        schemas=_schemas(provider, model),
        cache=cache_style(provider, model),
        thoughts=_thoughts(provider),
        signatures=_signatures(provider, model),
        output_field="max_completion_tokens" if reasons and provider.wire == "openai" else provider.output_field,
        temperature=not reasons,
        null_content=provider.wire == "litellm",
    )


def host_of(provider: Provider) -> str:
    """The host of the provider's address, empty where it has none of its own."""
    try:
        return urlsplit(provider.base_url or "").hostname or ""
    except ValueError:
        return ""


def is_at(provider: Provider, card: str, *domains: str) -> bool:
    """Whether *provider* is the service of *card*, known by its card or by its address."""
    host = host_of(provider)
    return provider.card == card or any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _schemas(provider: Provider, model: str) -> Schemas:
    if _GEMINI.search(model):
        return "gemini"
    return "grammar" if provider.self_hosted else "whole"


def _thoughts(provider: Provider) -> Thoughts:
    """DeepSeek and Moonshot refuse a conversation whose thoughts are missing; most others refuse the field."""
    if provider.wire == "litellm":
        return "blocks"
    if is_at(provider, "deepseek", "deepseek.com") or is_at(provider, "moonshot", "moonshot.ai", "moonshot.cn"):
        return "text"
    return "details" if is_at(provider, "openrouter", "openrouter.ai") else "nothing"


def _signatures(provider: Provider, model: str) -> Signatures:
    if not _GEMINI.search(model):
        return "nowhere"
    if provider.wire == "litellm":
        return "litellm"
    return "google" if is_at(provider, "", "googleapis.com") else "nowhere"


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
