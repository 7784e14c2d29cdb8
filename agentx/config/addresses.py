"""Addresses as people write them, and whose they are."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit, urlunsplit

EVERYWHERE = frozenset({"", "0.0.0.0", "::"})
"""Addresses to listen on, never ones to connect to."""


def address(text: str, default: str) -> str:
    """*text* as a full address; what it leaves out comes from *default*.

    Reads what Ollama reads in OLLAMA_HOST: `host`, `host:port`, `:port`, with or without scheme. Where a
    scheme is written, its own port counts. A server that listens everywhere is reached over loopback.
    Raises ValueError when *text* is no address.
    """
    usual = urlsplit(default)
    written = text.strip().rstrip("/")
    whole = urlsplit(written if "://" in written else f"{usual.scheme}://{written}")
    if whole.scheme not in ("http", "https") or any(c.isspace() for c in whole.netloc) or "@" in whole.netloc:
        raise ValueError("no address of a server")
    host, port = whole.hostname or "", whole.port
    if host in EVERYWHERE:
        host = "127.0.0.1"
    if port is None and "://" not in written:
        port = usual.port
    shown = f"[{host}]" if ":" in host else host
    return urlunsplit((whole.scheme, f"{shown}:{port}" if port else shown, whole.path, "", ""))


def is_local(url: str) -> bool:
    """Whether *url* is on this machine or in a private network: a server that somebody runs for themselves."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal", ".lan")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host  # a bare name, which only the own network resolves
