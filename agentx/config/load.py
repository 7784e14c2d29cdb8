"""The configuration: all layers as one, each value with its origin, and the links and chains made of it.

Highest first: `-c KEY=VALUE`, `AGENTX_...`, the project's file, the user's file, defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from agentx.config.cards import Card, read_cards
from agentx.config.environment import read_environment
from agentx.config.layers import Layer, Merged, merged
from agentx.config.links import Link, Provider, link_name
from agentx.config.paths import Paths
from agentx.config.policy import BUILT_IN
from agentx.config.problems import did_you_mean, problems
from agentx.config.project import Layers, consent, refusals
from agentx.config.providers import make_provider
from agentx.config.settings import ChainLink, ProviderOverride, Settings, Table
from agentx.config.yamlfile import Document, parse_value, read_document, reason
from agentx.errors import ConfigError, Problem, UsageError

FILE = "agentx.yaml"
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What was set, by whom, and what can be made of it.

    `origins` has a place for each value, lists by index: `("limits", "cost")` -> `agentx.yaml:7:5`,
    `AGENTX_LIMITS__COST`, `-c limits.cost` or `default`. `files` are those that were read, the user's first.
    """

    settings: Settings
    origins: Mapping[tuple[str, ...], str]
    cards: Mapping[str, Card]
    environ: Mapping[str, str] = field(repr=False)
    """Keys stand in it: it is never printed."""
    warnings: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    project_file: Path | None = None
    own: Settings | None = None
    """The settings without the project's file, where there is one."""

    def provider_names(self) -> list[str]:
        """Every provider that a model may be written with: the user's own and the cards."""
        return sorted({*self.settings.providers, *self.cards})

    def provider(self, name: str) -> Provider:
        """The provider *name*. Raises ConfigError when it is set up wrongly, UsageError when there is none."""
        override = self.settings.providers.get(name)
        if override is None and name not in self.cards:
            raise UsageError(f"there is no provider `{name}`", hint=did_you_mean(name, self.provider_names()))
        found = make_provider(name, override, self.cards, self.environ, self.where("providers", name))
        if isinstance(found, Problem):
            raise ConfigError([found]) if override else UsageError(found.what, hint=found.hint)
        return found

    def at(self, card: str, base_url: str) -> Provider:
        """The provider of *card* as it stands, but at *base_url*. Raises ConfigError."""
        override = ProviderOverride.model_validate({"card": card, "base_url": base_url})
        found = make_provider(card, override, self.cards, self.environ, self.where("providers", card))
        if isinstance(found, Problem):
            raise ConfigError([found])
        return found

    def link(self, entry: str | ChainLink) -> Link:
        """The link that *entry* means: `provider/model`, or an entry of a chain. Raises as `provider` does."""
        one = entry if isinstance(entry, ChainLink) else None
        text = one.model if one else str(entry).strip()
        name, slash, model = text.partition("/")
        if not (name and slash and model):
            hint = "for example `ollama/qwen3:14b`; `agentx config show` lists what is set"
            raise UsageError(f"`{text}` is no model: write it as `provider/model`", hint=hint)
        provider = self.provider(name)
        if one is None:
            return self.within_consent(Link(provider=provider, model=model, name=link_name(name, model)), text)
        values = one.model_dump(exclude={"model", "name", "timers"})
        values["timers"] = one.timers.model_dump(exclude_none=True)
        link = Link(provider=provider, model=model, name=one.name or link_name(name, model), **values)
        own = any(one == mine for chain in (self.own or self.settings).chains.values() for mine in chain)
        return link if own else self.within_consent(link, text)

    def within_consent(self, link: Link, model: str) -> Link:
        """*link* with what the user's own chains allow *model* to cost: who names it elsewhere gets no more."""
        allowed = consent(self.own or self.settings, model)
        if allowed is None:
            return link
        caps = [cap for cap in (link.max_cost, allowed.max_cost) if cap is not None]
        return replace(link, paid=True, max_cost=min(caps) if caps else None)

    def chain(self, name: str | None = None) -> tuple[Link, ...]:
        """The links of the chain *name*, which may also list models and chains: `ollama/qwen3:14b,overnight`.

        Without a name: the default chain, or the only one; empty when nothing is configured. Links of one name
        get numbers. Raises UsageError for what is not there, ConfigError for what a file says wrongly.
        """
        if name is None and (name := self.default_chain()) is None:
            return ()
        parts = [name] if name in self.settings.chains else [part.strip() for part in name.split(",")]
        links = [link for part in parts if part for link in self.links_of(part)]
        if not links:
            raise UsageError("the chain is empty", hint="name a chain or models: `--chain provider/model,...`")
        return numbered(links)

    def default_chain(self) -> str | None:
        chains, default = self.settings.chains, self.settings.default_chain
        if default is None and len(chains) > 1:
            first = next(iter(chains))
            what = "several chains are set and none is the default"
            raise ConfigError(
                [Problem(self.where("chains"), what, f"`default_chain: {first}`, or `--chain {first}`")]
            )
        if default is not None and default not in chains and "/" not in default:
            what = f"default_chain: there is no chain `{default}`"
            raise ConfigError([Problem(self.where("default_chain"), what, did_you_mean(default, chains))])
        return default if default is not None else next(iter(chains), None)

    def links_of(self, part: str) -> Sequence[Link]:
        if part in self.settings.chains:
            return [self.configured_link(part, index) for index in range(len(self.settings.chains[part]))]
        if "/" in part:
            return [self.link(part)]
        hint = did_you_mean(part, self.settings.chains) or "a model is written `provider/model`"
        raise UsageError(f"there is no chain `{part}`", hint=hint)

    def configured_link(self, chain: str, index: int) -> Link:
        """As `link`, but what is wrong is said with the place where it was set. Raises ConfigError."""
        try:
            link = self.link(self.settings.chains[chain][index])
            return replace(link, window_origin=self.origins.get(("chains", chain, str(index), "window")))
        except UsageError as error:
            place = self.where("chains", chain, str(index), "model")
            raise ConfigError([Problem(place, error.message, error.hint)]) from error

    def where(self, *at: str) -> str:
        """Where the value at *at* was set, else what is nearest around it."""
        for end in range(len(at), 0, -1):
            if place := self.origins.get(at[:end]):
                return place
        return at[0]

    def problems(self) -> list[Problem]:
        """What is wrong although every file can be read: providers, chains and models that are not there."""
        found: list[Problem] = []
        checks = [lambda name=name: self.provider(name) for name in self.settings.providers]
        for name, links in self.settings.chains.items():
            checks += [lambda name=name, i=i: self.configured_link(name, i).provider for i in range(len(links))]
        for check in checks:
            try:
                check()
            except ConfigError as error:
                found += error.problems
        if summarises := self.settings.compaction.summary_model:
            try:
                self.link(summarises)
            except UsageError as error:
                place = self.where("compaction", "summary_model")
                found.append(Problem(place, error.message, error.hint))
            except ConfigError as error:
                found += error.problems
        try:
            self.default_chain()
        except ConfigError as error:
            found += error.problems
        return list(dict.fromkeys(found))


def numbered(links: Sequence[Link]) -> tuple[Link, ...]:
    """*links* with names that differ: the second of one name gets `#2`."""
    seen: set[str] = set()
    result: list[Link] = []
    for link in links:
        name, number = link.name, 1
        while name in seen:
            number += 1
            name = f"{link.name}#{number}"
        seen.add(name)
        result.append(replace(link, name=name))
    return tuple(result)


def load(paths: Paths, workspace: Path, environ: Mapping[str, str], overrides: Sequence[str] = ()) -> Config:
    """The configuration as seen from *workspace*.

    Raises ConfigError with all problems of files, variables and overrides; UsageError for an override that is
    no `KEY=VALUE`.
    """
    user = read_document(paths.user_file) if exists(paths.user_file) else None
    found = project_file(workspace, paths.user_file)
    project = read_document(found, shown_name(found, workspace)) if found else None
    environment = read_environment(environ)
    below = [layer_of(user)] if user else []
    above = [environment.layer, *map(override_layer, overrides)]
    whole = merged([*below, *above])
    settings = validated(whole)
    own = settings if isinstance(settings, Settings) else None
    if project:
        layer = layer_of(project)
        said, without = validated(merged([layer])), settings
        whole = merged([*below, layer, *above])
        settings = validated(whole)
        if isinstance(said, Settings) and isinstance(without, Settings) and isinstance(settings, Settings):
            refused = refusals(Layers(said, settings, without), layer.where, str(paths.user_file))
            settings = refused or settings
        elif not isinstance(said, Settings):  # what cannot be read cannot be held against what it may set
            settings = list(dict.fromkeys([*(() if isinstance(settings, Settings) else settings), *said]))
    unnamed = policy_problems(whole)
    if unnamed or not isinstance(settings, Settings):
        raise ConfigError([*(() if isinstance(settings, Settings) else settings), *unnamed])
    return Config(
        settings=settings,
        origins=origins(settings, whole),
        cards=read_cards(paths.config),
        environ=environ,
        warnings=environment.warnings,
        files=tuple(file for file, read in ((paths.user_file, user), (found, project)) if file and read),
        project_file=found,
        own=own,
    )


def exists(file: Path) -> bool:
    """Whether something of that name is there. Raises ConfigError when it cannot be known."""
    try:
        return file.exists()
    except OSError as error:
        raise ConfigError([Problem(str(file), f"cannot be read: {reason(error)}")]) from error


def project_file(workspace: Path, user_file: Path) -> Path | None:
    """The nearest `agentx.yaml` upward from *workspace*, unless it is the user's own."""
    start = Path(os.path.abspath(workspace))  # noqa: PTH100 -- `resolve` would leave the path that the user sees
    for folder in (start, *start.parents):
        file = folder / FILE
        if exists(file):
            return None if exists(user_file) and file.samefile(user_file) else file
    return None


def shown_name(file: Path, workspace: Path) -> str:
    """The project's file in messages: short when it lies in the workspace itself."""
    return FILE if file.parent == Path(os.path.abspath(workspace)) else str(file)  # noqa: PTH100 -- as above


def layer_of(document: Document) -> Layer:
    return Layer(without_empty_tables(document.data), lambda at, key: document.where(at, key=key))


def without_empty_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """*data* without keys that hold nothing, such as a table whose every line is commented out."""
    return {key: value for key, value in data.items() if value is not None or key not in Settings.model_fields}


def override_layer(text: str) -> Layer:
    """The one value of a `-c KEY=VALUE`. Raises UsageError, or ConfigError when the value is not YAML."""
    key, equals, value = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        hint = "for example `-c limits.cost=5`"
        raise UsageError(f"`-c {text}`: write it as KEY=VALUE, the key with dots", hint=hint)
    origin = f"-c {key.strip()}"
    data: Any = parse_value(value, origin)
    for part in reversed(path):
        data = {part: data}
    return Layer(data, lambda _at, _key: origin)


def validated(whole: Merged) -> Settings | list[Problem]:
    """The settings in *whole*, or what is wrong with them."""
    try:
        return Settings.model_validate(whole.data)
    except ValidationError as error:
        return problems(error, Settings, whole.where)


def policy_problems(whole: Merged) -> list[Problem]:
    """What is wrong with the names of policies: one that is not there, or one that agentx has given already."""
    compaction = whole.data.get("compaction")
    table = cast("dict[str, Any]", compaction) if isinstance(compaction, dict) else {}
    name, own = table.get("policy", BUILT_IN[0]), table.get("policies")
    names = list(cast("dict[str, Any]", own)) if isinstance(own, dict) else []
    found = [
        Problem(
            whole.where(("compaction", "policies", taken), True),
            f"agentx has a policy `{taken}`: name it otherwise",
        )
        for taken in names
        if taken in BUILT_IN
    ]
    if isinstance(name, str) and name not in (*BUILT_IN, *names):
        place, hint = whole.where(("compaction", "policy")), did_you_mean(name, [*BUILT_IN, *names])
        found.append(Problem(place, f"there is no policy `{name}`", hint))
    return found


def origins(settings: Settings, whole: Merged) -> dict[tuple[str, ...], str]:
    """Where each value was set; every default is one too."""
    result = {tuple(map(str, at)): place[False] for at, place in whole.places.items()}
    for name in Settings.model_fields:
        result.setdefault((name,), DEFAULT)
        value = getattr(settings, name)
        for inner in type(value).model_fields if isinstance(value, Table) else ():
            result.setdefault((name, inner), DEFAULT)
    return result
