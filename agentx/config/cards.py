"""Cards: how each provider is reached, as data. Shipped ones, then the user's own, which replace by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from agentx.config.links import ErrorPattern, SlowModels, WireName
from agentx.config.problems import problems
from agentx.config.resources import shipped
from agentx.config.settings import Address, Auth, Seconds, Table, Variable, Whole
from agentx.config.yamlfile import Document, read_document, reason
from agentx.errors import ConfigError, ErrorClass, Problem

ProbeName = Literal[
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
    "sglang",
    "tgi",
    "litellm",
    "openrouter",
    "anthropic",
    "gemini",
    "codex",
    "cerebras",
    "fireworks",
    "huggingface",
    "vercel",
    "openai_list",
    "koboldcpp",
    "lemonade",
    "docker",
]


NUMBERS = frozenset({"limit", "actual", "output"})
"""Groups of a pattern that are tokens: what the endpoint holds, the prompt, the reply that was asked for."""
ABOUT_SIZES = ("overflow", "output_cap")


def compiled(value: str) -> str:
    """*value*, if it is a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return value


class CardError(Table):
    """A provider's own words for a failure. One that `means: overflow` may say the numbers too: a group
    `(?P<limit>...)` teaches the window, as a refusal in words that agentx knows by itself does."""

    match: str = Field(
        min_length=1,
        description="A regular expression over the error's text and its numbers, `name: 123` on a line for each; "
        "case does not matter. Groups named `limit`, `actual` and `output` are tokens.",
    )
    means: ErrorClass = Field(description="The class of the failure.")
    status: Whole | None = Field(default=None, ge=100, le=599, description="Only with this HTTP status.")
    scope: Literal["model", "key", "account"] | None = Field(
        default=None, description="Whom else it concerns: nobody (`model`), or all models with the same key."
    )

    @field_validator("match")
    @classmethod
    def compiles(cls, value: str) -> str:
        return compiled(value)

    @model_validator(mode="after")
    def counts_tokens(self) -> CardError:
        groups = re.compile(self.match).groupindex.keys()
        if unknown := sorted(groups - NUMBERS):
            raise ValueError(f"a group is named `limit`, `actual` or `output`, not `{unknown[0]}`")
        if groups and self.means not in ABOUT_SIZES:
            raise ValueError("numbers are read only where it means `overflow` or `output_cap`")
        return self


class CardSlow(Table):
    """Models that think for long and show nothing of it."""

    match: str = Field(min_length=1, description="A regular expression over the model's name.")
    first: Seconds = Field(description="Seconds that the first piece of content may take at least.")

    @field_validator("match")
    @classmethod
    def compiles(cls, value: str) -> str:
        return compiled(value)


class Card(Table):
    """One file of `providers/`; its name is the file's name. What the fields mean: `Provider` in links.py."""

    title: str = Field(min_length=1, description="The provider's name as people know it.")
    wire: WireName = Field(description="The protocol that is spoken.")
    base_url: Address | None = Field(default=None, description="What the wire's routes are appended to.")
    base_url_env: Variable | None = Field(
        default=None, description="The variable in which users keep the address."
    )
    api_key_env: Variable | None = Field(default=None, description="The variable that holds the key.")
    key_optional: bool = Field(default=False, description="Ask without a key when the variable is not set.")
    auth: Auth = Field(default="bearer", description="How the key is sent.")
    headers: dict[str, str] = Field(default={}, description="Headers that every request carries.")
    self_hosted: bool = Field(default=False, description="One's own server: no catalogue, no price.")
    resells: bool = Field(
        default=False,
        description="Models of others stand behind it: what a reply costs is not known, nor nothing.",
    )
    may_truncate: bool = Field(
        default=False, description="The server may cut a conversation and still answer 200."
    )
    clamps_output: bool = Field(default=False, description="The server lowers an output budget that does not fit.")
    output_field: str = Field(default="max_tokens", description="The name of the output budget in a request.")
    stream_usage: bool = Field(default=True, description="The server knows `stream_options.include_usage`.")
    gives_reason: bool = Field(
        default=True, description="The server says why a reply ended; false where only `[DONE]` ends it."
    )
    probes: list[ProbeName] = Field(
        default=[], description="Window probes, in order; the first that finds one wins."
    )
    catalogue: list[str] = Field(
        default=[], description="Names in LiteLLM's catalogue under which its models stand."
    )
    litellm_prefix: str | None = Field(
        default=None, description="What goes before the model's name on the litellm wire."
    )
    default_model: str | None = Field(
        default=None, description="The model of a chain that is made without a setting."
    )
    window_hint: str | None = Field(
        default=None, description="How to set the window; {model} and {window} are filled in."
    )
    errors: list[CardError] = Field(
        default=[], description="The provider's own words for failures; the first match wins."
    )
    slow: list[CardSlow] = Field(default=[], description="Models that get more time for their first content.")
    options: dict[str, Any] = Field(default={}, description="Settings that only this card knows.")

    @field_validator("window_hint")
    @classmethod
    def fills(cls, value: str | None) -> str | None:
        try:
            _ = value and value.format(model="m", window=1)
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError("only {model} and {window} are filled in; write other braces twice") from error
        return value

    @model_validator(mode="after")
    def reachable(self) -> Card:
        if self.wire == "litellm" and not self.litellm_prefix:
            raise ValueError("the wire `litellm` needs `litellm_prefix`")
        if self.wire == "ollama" and not self.base_url:
            raise ValueError("the wire `ollama` needs `base_url`")
        return self

    def patterns(self) -> tuple[ErrorPattern, ...]:
        return tuple(
            ErrorPattern(match=e.match, means=e.means, status=e.status, scope=e.scope) for e in self.errors
        )

    def slow_models(self) -> tuple[SlowModels, ...]:
        return tuple(SlowModels(match=s.match, first=s.first) for s in self.slow)


def read_cards(config: Path) -> Mapping[str, Card]:
    """All cards by name: the shipped ones, replaced whole by those in `providers/` of the folder *config*.

    Raises ConfigError with every problem of the user's files.
    """
    own: dict[str, Card] = {}
    wrong: list[Problem] = []
    folder = config / "providers"
    for name, (file, place) in card_files(folder, str(folder)).items():
        try:
            own[name] = card(read_document(file, place))
        except ConfigError as error:
            wrong += error.problems
    if wrong:
        raise ConfigError(wrong)
    return Cards(card_files(shipped("providers"), "providers"), own)


class Cards(Mapping[str, Card]):
    """Cards by name. A shipped one is read when it is asked for: all of them take 40 ms, a command needs a few."""

    def __init__(self, files: Mapping[str, tuple[Traversable, str]], own: Mapping[str, Card]) -> None:
        self._files = files
        self._read = dict(own)

    def __getitem__(self, name: str) -> Card:
        if name not in self._read:
            self._read[name] = card(read_document(*self._files[name]))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._files, *self._read}))

    def __len__(self) -> int:
        return len({*self._files, *self._read})


def card_files(folder: Traversable, shown: str) -> Mapping[str, tuple[Traversable, str]]:
    """The cards in *folder* by name, each with what it is called in errors; none when there is no folder."""
    try:
        found = sorted((f for f in folder.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError([Problem(shown, f"cannot be read: {reason(error)}")]) from error
    return {file.name.removesuffix(".yaml"): (file, f"{shown}/{file.name}") for file in found}


def card(document: Document) -> Card:
    """The card in *document*. Raises ConfigError."""
    try:
        return Card.model_validate(document.data)
    except ValidationError as error:
        found = problems(error, Card, lambda at, key: document.where(at, key=key))
        raise ConfigError(found) from error
