"""A watch for tests: a plain set of keys, which is all that the contract asks for."""

from __future__ import annotations

from cambist.plugin import AddressFamily


def watching(family: AddressFamily, *addresses: str) -> frozenset[bytes]:
    """Return a Watch of these normalized addresses."""
    return frozenset(family.address_key(address) for address in addresses)
