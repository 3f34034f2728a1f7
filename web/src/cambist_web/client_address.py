"""Who asks: the address that a request comes from, behind the operator's proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from cambist.networks import Network, plain

ADDRESSES_CACHED_MAX = 2_000
HOP_CHARS_MAX = 64
"""The longest address, with brackets, zone and port, is shorter. Whatever is longer is none, and is not kept."""
HOPS_MAX = 32
FORWARDED_CHARS_MAX = HOPS_MAX * HOP_CHARS_MAX
"""How much of ``X-Forwarded-For`` is looked at, from the right: more than any chain of proxies writes."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read networks such as ``10.0.0.0/8``, or single addresses, as hosts are compared with them. Raises ValueError."""
    return tuple(plain(ipaddress.ip_network(text, strict=False)) for text in texts)


def client_host(peer: str, forwarded_for: Sequence[str], trusted: tuple[Network, ...]) -> str:
    """Return the last address that no trusted proxy vouches for.

    ``forwarded_for`` are all lines of the header ``X-Forwarded-For``, in their order: a proxy may add a line of its
    own instead of lengthening the one that is there. They are believed from the right, and only as far as trusted
    proxies wrote them. What is no address ends the search: whom the proxy that wrote it was asked by is not known,
    so that its own address is returned.
    """
    last = _parsed(peer)
    if last is None:
        return peer
    for hop in _hops(forwarded_for) if trusted else ():
        if not any(last in network for network in trusted):
            break
        before = _parsed(hop)
        if before is None:
            break
        last = before
    return str(last)


def counted_as(host: str) -> str:
    """Return whom to count the requests of a host for: an IPv6 customer has a whole /64."""
    parsed = _parsed(host)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return host


def _hops(lines: Sequence[str]) -> Sequence[str]:
    """Return what stands between commas, the rightmost first: what a cut may have hit is left out."""
    parts: list[str] = []
    room = FORWARDED_CHARS_MAX
    for line in reversed(lines):
        kept = line[-room:] if room else ""
        hops = kept.split(",")
        parts += reversed(hops if len(kept) == len(line) else hops[1:])
        room -= len(kept)
        if not room or len(parts) >= HOPS_MAX:
            break
    return parts[:HOPS_MAX]


def _parsed(text: str) -> Address | None:
    return _parse(text) if len(text) <= HOP_CHARS_MAX else None


@lru_cache(maxsize=ADDRESSES_CACHED_MAX)
def _parse(text: str) -> Address | None:
    """Read an address, with a port behind it or without: some proxies write one."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A socket for both kinds of addresses writes an IPv4 peer like this.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
