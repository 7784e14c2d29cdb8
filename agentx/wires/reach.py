"""Is anybody there? A connection that is closed again at once: nothing is asked and nothing is spent."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

REACH_SECONDS = 5.0


async def reachable(url: str | None, *, seconds: float = REACH_SECONDS) -> bool | None:
    """Whether a connection to *url* stands within *seconds*, with TLS where it is `https`.

    None when only a request can tell: the address is not known, or a proxy stands in between. A certificate is not
    judged here either; whether it is good is for the request to find out.
    """
    place = _place(url)
    if place is None:
        return None
    host, port, secure = place
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=_any_certificate() if secure else None)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(seconds):
            await writer.wait_closed()
    return True


def _place(url: str | None) -> tuple[str, int, bool] | None:
    from urllib.request import getproxies, proxy_bypass  # 15 ms that only who is offline needs

    try:
        parts = urlsplit(url or "")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or (parts.scheme in getproxies() and not proxy_bypass(host)):
        return None
    secure = parts.scheme == "https"
    return host, port or (443 if secure else 80), secure


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
