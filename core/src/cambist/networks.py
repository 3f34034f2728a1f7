"""Networks as people write them, and as addresses are compared with them."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

IPV4_MAPPED_BITS = 96
"""So many come before the IPv4 address in an IPv6 one that stands for it, such as ``::ffff:192.0.2.7``."""


def plain(network: Network) -> Network:
    """Return the IPv4 network that an IPv6 one stands for, or itself: whoever asks is compared by the plain address."""
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= IPV4_MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return ipaddress.ip_network((mapped, network.prefixlen - IPV4_MAPPED_BITS))
    return network
