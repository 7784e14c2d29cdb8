"""The proxies of the environment, each with a transport that keeps its connections alive as the direct one does.

httpx reads them by itself only for a client without a transport of its own (httpx 0.28), and ours has one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping

import httpx

SCHEMES = ("http", "https", "all")


def proxied(
    proxies: Mapping[str, str], transport: Callable[[str], httpx.AsyncBaseTransport]
) -> dict[str, httpx.AsyncBaseTransport | None]:
    """Mounts for a client: which addresses go through which of *proxies*, and which (None) past them.

    *proxies* is as `urllib.request.getproxies` gives it; *transport* makes one for the address of a proxy.
    """
    direct = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    if "*" in direct:
        return {}
    mounts: dict[str, httpx.AsyncBaseTransport | None] = {}
    for scheme in SCHEMES:
        if url := proxies.get(scheme):
            url = url if "://" in url else f"http://{url}"
            mounts[f"{scheme}://"] = _through(url, transport)
    return mounts | {_pattern(host): None for host in direct}


def _pattern(host: str) -> str:
    if "://" in host:
        return host
    try:
        return f"all://[{host}]" if ipaddress.ip_address(host).version == 6 else f"all://{host}"
    except ValueError:
        return f"all://{host}" if host.lower() == "localhost" else f"all://*{host}"


def _through(url: str, transport: Callable[[str], httpx.AsyncBaseTransport]) -> httpx.AsyncBaseTransport:
    """By the proxy at *url*. A SOCKS proxy needs one more package: without it nothing goes around the proxy."""
    try:
        return transport(url)
    except (ImportError, ValueError) as error:
        return _Unusable(f"the {url.split(':')[0]} proxy of the environment cannot be used: {error}")


class _Unusable(httpx.AsyncBaseTransport):
    def __init__(self, why: str) -> None:
        self.why = why

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(self.why, request=request)
