"""Which hosts an operator may name as an endpoint, and what an endpoint is called.

Nodes are often private: loopback and networks of one's own are let through. What answers at link-local addresses is no
node, and in clouds it is the service that gives credentials to machines: see ``docs/decisions/0036``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from urllib.parse import urlsplit

URL_CHARS_MAX = 2_000
_PLAIN = re.compile(r"[!-~]+", re.ASCII)


def name_of(url: str) -> str:
    """Return host and port of an address: never user, key, path or query. Empty where there is no host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def problem_of(url: str) -> str | None:
    """Return what is wrong with an address as a text, None where nothing is."""
    if len(url) > URL_CHARS_MAX or _PLAIN.fullmatch(url) is None:
        return f"must be at most {URL_CHARS_MAX} printable ASCII characters without spaces"
    if not name_of(url):
        return "has no host"
    host = urlsplit(url).hostname or ""
    return "is a link-local address, where no node is" if _is_link_local(host) else None


async def resolved_problem(url: str) -> str | None:
    """Return what is wrong with what the host's name stands for now. A name that stands for nothing is no problem.

    Asked of addresses of the web alone: what a plugin means by another scheme, it knows itself.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"}:
        return None
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    if any(_is_link_local(str(one[4][0])) for one in found):
        return "Its host stands for a link-local address, where no node is."
    return None


def _is_link_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local
