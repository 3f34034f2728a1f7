"""What operators change of a chain while the gateway runs: its endpoints, and its tokens.

A plugin takes part by two pure methods. ``ChainPlugin.setup`` tells what its configuration says of one chain, and
``ChainPlugin.changed`` writes a configuration of that chain alone with something else in its place. The gateway
connects that beside what is connected, asks it, and only then lets it take over: a plugin needs nothing that changes a
connection. Where a plugin has neither method, its chains stay as the operator's file says until the next start.
"""

from __future__ import annotations

import ipaddress
import posixpath
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from .types import Token


class NetworkSetup(Struct, frozen=True, kw_only=True):
    """What of one chain can be changed.

    ``endpoints`` are addresses of nodes in the order of preference, each with whatever key it takes in one text, so
    that it can be handed back. ``quorum`` is how many must agree. ``tokens`` are token contracts beside those that the
    plugin knows by itself.
    """

    endpoints: tuple[str, ...]
    quorum: int = 1
    tokens: tuple[Token, ...] = ()


_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def endpoint_key(url: str) -> str:
    """Return the one spelling of a node's address: two addresses of the same spelling name the same node.

    Two witnesses must be two nodes, so what only looks like another one counts as the same: capitals in scheme and
    host, the port that the scheme has anyway, slashes at the end, who signs in. Where a text cannot be read, it stands
    for itself.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return url
    path = posixpath.normpath("/" + quote(unquote(parts.path), safe="/:@!$&'()*+,;=").lstrip("/"))
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return f"{parts.scheme}://{_host_key(parts.hostname or '')}:{port}{path}?{query}"


def _host_key(host: str) -> str:
    host = host.rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host
