"""The key of a link: read at each request, never kept, and put where the provider wants it."""

from __future__ import annotations

from collections.abc import Callable

from agentx import __version__
from agentx.config.links import Provider
from agentx.errors import RequestFailed

Key = Callable[[], str | None]


def no_key() -> None:
    return None


def key_for(provider: Provider, key: Key) -> str | None:
    """The key to send, or None where none is needed. Raises RequestFailed (`auth`) when one is missing."""
    value = (key() or "").strip()
    variable = provider.api_key_env
    if value:
        if not (value.isascii() and value.isprintable()):
            what = f"{provider.name}: the key in `{variable}` has characters that no header can carry"
            raise RequestFailed(what, phase="connect", error_class="auth", hint=f"set `{variable}` again")
        return value
    if variable is None or provider.key_optional:
        return None
    raise RequestFailed(
        f"{provider.name}: no key, `{variable}` is not set",
        phase="connect",
        error_class="auth",
        hint=f"export {variable}=...",
    )


def headers_for(provider: Provider, key: str | None) -> dict[str, str]:
    """The headers of a request with a JSON body; those of the configuration win."""
    headers = {"content-type": "application/json", "user-agent": f"agentx/{__version__}"}
    if key is not None:
        if provider.auth == "bearer":
            headers["authorization"] = f"Bearer {key}"
        else:
            headers[provider.auth] = key
    return headers | {name.lower(): value for name, value in provider.headers.items()}
