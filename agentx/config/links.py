"""A provider and a link as values: what the rest of agentx needs of the configuration, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

WORKABLE_WINDOW = 32_768
"""The window, in tokens, that hints propose."""

WireName = Literal["openai", "ollama", "litellm"]


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """A card's own words for a failure: `match` is a regular expression over the error's text (case does not
    matter), `status` narrows it, `means` is an error class. Groups `limit`, `actual` and `output` are tokens.
    `scope` is how far it reaches, where the class alone would not tell."""

    match: str
    means: str
    status: int | None = None
    scope: Literal["model", "key", "account"] | None = None


@dataclass(frozen=True, slots=True)
class SlowModels:
    """Models whose names `match` (a regular expression) think unseen: `first` is how long they may, in seconds."""

    match: str
    first: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How a model is reached: a card, and what the configuration changes of it.

    `name` is what the user calls it, `card` the card it comes from. `base_url` has no trailing slash.
    """

    name: str
    card: str
    wire: WireName
    base_url: str | None = None
    api_key_env: str | None = None
    """Name of the variable that holds the key; None when none is needed."""
    key_optional: bool = False
    """The server may be asked without a key when the variable is not set."""
    auth: Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"] = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    self_hosted: bool = False
    """One's own server: no catalogue look-up, no price."""
    resells: bool = False
    """Models of others stand behind it: what a reply costs is not known."""
    may_truncate: bool = False
    """The server may cut a conversation and answer 200."""
    clamps_output: bool = False
    """The server lowers an output budget that does not fit by itself: `max_tokens` may be left out."""
    output_field: str = "max_tokens"
    stream_usage: bool = True
    """The server knows `stream_options.include_usage`."""
    gives_reason: bool = True
    """The server says why a reply ended (`finish_reason`); where it never does, `[DONE]` is enough."""
    probes: tuple[str, ...] = ()
    """Names of the window probes of `agentx.windows.probes`, in order; the first that finds something wins."""
    catalogue: tuple[str, ...] = ()
    """Provider names in LiteLLM's catalogue under which models of this provider stand."""
    litellm_prefix: str | None = None
    """What goes before the model's name on the `litellm` wire, e.g. `anthropic`."""
    default_model: str | None = None
    """What a chain made from nothing asks for, where a key is all that is known."""
    window_hint: str | None = None
    """How a user sets the window of this very server; `{model}` and `{window}` are filled in."""
    errors: tuple[ErrorPattern, ...] = ()
    slow: tuple[SlowModels, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that only this card knows (for `local`: server, model file, port, arguments)."""

    @property
    def cuts(self) -> bool:
        """It may read only a part of a request and answer 200: one's own server, or a card that says so."""
        return self.may_truncate or self.self_hosted


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One entry of a chain. `window` and `max_tokens` are tokens, as the user set them."""

    provider: Provider
    model: str
    name: str
    window: int | None = None
    force: bool = False
    """The user's window wins even over a lower proven one."""
    max_tokens: int | None = None
    temperature: float | None = None
    api_key_env: str | None = None
    paid: bool = False
    max_cost: float | None = None
    """US dollars that one job may spend on it."""
    timers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Timers of this link's own, in seconds, by the names of `Timers`."""
    window_origin: str | None = field(default=None, compare=False)
    """Where `window` was set, as `file:line:column`; None where a program set it."""

    @property
    def on_consent(self) -> bool:
        """It is only asked within a cap."""
        return self.paid or self.max_cost is not None

    @property
    def free(self) -> bool:
        """It costs nothing: one's own server, with no mark that says otherwise."""
        return self.provider.self_hosted and not self.provider.resells and not self.on_consent

    @property
    def key_variable(self) -> str | None:
        return self.api_key_env or self.provider.api_key_env

    @property
    def window_hint(self) -> str | None:
        """How a user sets the window of this very server; None where nothing can be set."""
        template = self.provider.window_hint
        return template and template.replace("{model}", self.model).replace("{window}", str(WORKABLE_WINDOW))

    @property
    def endpoint(self) -> str:
        """What the link's window and health belong to: address, or the provider where there is none."""
        return endpoint_of(self.provider)

    @property
    def address(self) -> str:
        """Scheme, host and port of the endpoint: what cannot be reached for one model, cannot for another."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else self.endpoint

    @property
    def identity(self) -> str:
        """Exact endpoint and exact model, one string: the key of everything learned about the link."""
        return identity_of(self.provider, self.model)


def endpoint_of(provider: Provider) -> str:
    return provider.base_url or provider.name


def identity_of(provider: Provider, model: str) -> str:
    """See `Link.identity`."""
    return f"{endpoint_of(provider)} {model}"


def link_name(provider: str, model: str) -> str:
    return f"{provider}/{model}"
