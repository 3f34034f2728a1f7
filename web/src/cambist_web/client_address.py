"""Who asks: the address that requests are counted for, behind the operator's proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

ADDRESSES_CACHED_MAX = 2_000

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read networks such as ``10.0.0.0/8``, or single addresses. Raises ValueError."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


@lru_cache(maxsize=ADDRESSES_CACHED_MAX)
def client_address(peer: str, forwarded_for: str | None, trusted: tuple[Network, ...]) -> str:
    """Return whom to count a request for: the last address that no trusted proxy vouches for.

    ``X-Forwarded-For`` is believed from the right, and only as far as it was written by trusted proxies. An
    IPv6 customer has a /64, so that is what is counted.
    """
    address = peer
    if forwarded_for is not None and trusted:
        for hop in reversed(forwarded_for.split(",")):
            if not _is_trusted(address, trusted):
                break
            address = hop.strip()
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return peer
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(parsed)


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in trusted)
