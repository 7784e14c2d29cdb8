"""A card, what the settings change of it and what the environment says of its address: one Provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentx.config.addresses import address, is_local
from agentx.config.cards import Card
from agentx.config.links import Provider
from agentx.config.problems import did_you_mean
from agentx.config.settings import ProviderOverride
from agentx.errors import Problem

MERGED = ("headers", "options")
"""Tables of a card that an override adds to instead of replacing."""


def make_provider(
    name: str, override: ProviderOverride | None, cards: Mapping[str, Card], environ: Mapping[str, str], where: str
) -> Provider | Problem:
    """The provider *name*, or what keeps it from being one; *where* is where it is spoken of."""
    card_name = (override and override.card) or name
    card = cards.get(card_name)
    if card is None:
        return no_card(name, card_name, override, cards, where)
    own = override.model_dump(exclude_unset=True, exclude={"card"}) if override else {}
    try:
        base_url = own_address(own, card, environ)
    except ValueError:
        what = f"{card.base_url_env} holds no address of a server"
        return Problem(where, what, "write it as `host:port` or `http://host:port/path`, without a password")
    if base_url is None and card.wire == "openai" and card_name != "local":
        hint = f"say where it is: `providers: {{{name}: {{card: {card_name}, base_url: http://HOST:PORT/v1}}}}`"
        return Problem(where, f"the provider `{name}` has no `base_url`", hint)
    # Who names a key wants it sent: that the variable is empty is then an error, not a request without a key.
    named = {"key_optional": False} if own.get("api_key_env") else {}
    values: dict[str, Any] = facts(card) | moved(card, base_url) | named | own | {"base_url": base_url}
    for key in MERGED:
        values[key] = getattr(card, key) | own.get(key, {})
    for key in ("probes", "catalogue"):
        values[key] = tuple(values[key])
    return Provider(name=name, card=card_name, errors=card.patterns(), slow=card.slow_models(), **values)


def no_card(
    name: str, card: str, override: ProviderOverride | None, cards: Mapping[str, Card], where: str
) -> Problem:
    hint = did_you_mean(card, cards)
    if override and not override.card:
        return Problem(where, f"the provider `{name}` needs `card`: there is no card of its own name", hint)
    return Problem(where, f"there is no card `{card}`", hint)


def facts(card: Card) -> dict[str, Any]:
    """Those fields of *card* that a Provider has too."""
    return {
        key: getattr(card, key)
        for key in Card.model_fields
        if key not in ("title", "base_url_env", "errors", "slow")
    }


def own_address(own: Mapping[str, Any], card: Card, environ: Mapping[str, str]) -> str | None:
    """The address in the settings, else in the variable that the card names, else the card's; no trailing slash.

    Raises ValueError when the variable holds no address."""
    if url := own.get("base_url"):
        return str(url).rstrip("/")
    if card.base_url_env and (text := environ.get(card.base_url_env)):
        return address(text, card.base_url or "https:")
    return card.base_url and card.base_url.rstrip("/")


def moved(card: Card, base_url: str | None) -> dict[str, Any]:
    """What is different when a hosted provider's card is pointed at a server of one's own.

    Nothing the card says of the hosted service (its models' windows, its prices) holds there, and such a server
    may need no key and may truncate (`facts: windows`, sections 1 and 8).
    """
    if card.self_hosted or not base_url or base_url == card.base_url or not is_local(base_url):
        return {}
    return {"self_hosted": True, "may_truncate": True, "key_optional": True}
