"""What a project's file may set: it chooses chains and narrows limits, and nothing else.

A cloned repository must not be able to send a key anywhere, to lift a limit, or to name a program to run.
Whatever is not listed here is refused, new settings too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.config.problems import Where, dotted
from agentx.config.settings import ChainLink, Settings
from agentx.config.yamlfile import Location
from agentx.errors import Problem

CHOICES = frozenset({"default_chain", "compaction"})
NARROWED = frozenset({"limits", "shell", "timers"})
WAITING = frozenset({"max_wait", "on_exhausted"})
LINK = frozenset({"model", "name", "window", "force", "max_tokens", "temperature", "paid", "max_cost"})


@dataclass(frozen=True, slots=True)
class Layers:
    """The settings that the project's file holds, those that count, and those that would count without it."""

    project: Settings
    whole: Settings
    without: Settings


def refusals(layers: Layers, where: Where, user_file: str) -> list[Problem]:
    """Everything in the project's file that only the user may say.

    A number that the command line or a variable overrides anyway widens nothing and is left alone.
    """
    return [*forbidden(layers.project, where, user_file), *widened(layers, where, user_file)]


def forbidden(project: Settings, where: Where, user_file: str) -> Iterator[Problem]:
    for at in forbidden_places(project):
        what = (
            f"a project's file may not set `{dotted(at)}`: a cloned folder could send keys or run programs by it"
        )
        yield Problem(where(at, True), what, f"set it in your own file, {user_file}")


def forbidden_places(project: Settings) -> Iterator[Location]:
    for key in sorted(project.model_fields_set - CHOICES - NARROWED - WAITING - {"chains", "tools"}):
        yield (key,)
    yield from (("tools", key) for key in sorted(project.tools.model_fields_set - {"only"}))
    for name, links in project.chains.items():
        for index, link in enumerate(links):
            yield from (("chains", name, index, key) for key in not_in_a_link(link))


def not_in_a_link(link: ChainLink) -> Sequence[str]:
    return sorted(link.model_fields_set - LINK)


def numbers(project: Settings) -> Iterator[Location]:
    """Where *project* sets a number that it may only lower."""
    for key in sorted(project.model_fields_set & NARROWED):
        yield from ((key, name) for name in sorted(getattr(project, key).model_fields_set))
    if "max_wait" in project.model_fields_set:
        yield ("max_wait",)


def widened(layers: Layers, where: Where, user_file: str) -> Iterator[Problem]:
    for at in numbers(layers.project):
        mine, most = value_at(layers.whole, at), value_at(layers.without, at)
        if isinstance(mine, bool):
            continue  # what is shown of a command's output is no limit
        if most is not None and (mine is None or mine > most):
            what = f"a project's file may only lower `{dotted(at)}`: {said(mine)} is more than your {said(most)}"
            yield Problem(where(at, False), what, f"raise it in your own file, {user_file}")
    if layers.whole.on_exhausted == "wait" and layers.without.on_exhausted == "fail":
        what = "a project's file may not let a job wait: your own `on_exhausted` is `fail`"
        yield Problem(where(("on_exhausted",), False), what, f"allow it in your own file, {user_file}")
    yield from loosened(layers, where, user_file)
    mine, most = layers.whole.tools.only, layers.without.tools.only
    if most is not None and (mine is None or not set(mine) <= set(most)):
        names = "all tools" if mine is None else ", ".join(f"`{name}`" for name in mine if name not in most)
        what = f"a project's file may only leave tools out: your own settings do not offer {names}"
        yield Problem(where(("tools", "only"), False), what, f"offer more in your own file, {user_file}")


def loosened(layers: Layers, where: Where, user_file: str) -> Iterator[Problem]:
    """Where the project's file would let a link cost more than the user does."""
    for name, links in layers.project.chains.items():
        for index, link in enumerate(links):
            user = consent(layers.without, link.model)
            if user is None:
                continue
            if user.max_cost is not None and link.max_cost is not None and link.max_cost > user.max_cost:
                at = ("chains", name, index, "max_cost")
                what = (
                    f"a project's file may only lower `{dotted(at)}`:"
                    f" {said(link.max_cost)} is more than your {said(user.max_cost)}"
                )
                yield Problem(where(at, False), what, f"raise it in your own file, {user_file}")
            if "paid" in link.model_fields_set and not link.paid:
                at = ("chains", name, index, "paid")
                what = f"a project's file may not unset `{dotted(at)}`: your own settings say that it is paid"
                yield Problem(where(at, False), what, f"change it in your own file, {user_file}")


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user allows a model to cost in one job; None is left to `limits.cost`."""

    max_cost: float | None


def consent(own: Settings, model: str) -> Consent | None:
    """What holds for *model* wherever the user's *own* chains do not name it: the most that they allow it there.
    None where they ask for no consent."""
    entries = [link for links in own.chains.values() for link in links if link.model == model]
    if not entries or not all(link.paid or link.max_cost is not None for link in entries):
        return None
    caps = [link.max_cost for link in entries if link.max_cost is not None]
    return Consent(max(caps) if len(caps) == len(entries) else None)


def value_at(settings: Settings, at: Location) -> Any:
    value: Any = settings
    for key in at:
        value = getattr(value, str(key))
    return value


def said(value: Any) -> str:
    return "no limit" if value is None else f"{value:g}"
