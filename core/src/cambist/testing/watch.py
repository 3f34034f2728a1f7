"""Watches for tests: a plain set of keys, which is all that the contract asks for, or every key there can be."""

from __future__ import annotations

from cambist.plugin import AddressFamily


def watching(family: AddressFamily, *addresses: str) -> frozenset[bytes]:
    """Return a Watch of these normalized addresses."""
    return frozenset(family.address_key(address) for address in addresses)


class EveryAddress:
    """A watch for all addresses of 20 bytes."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and len(key) == 20

    def __len__(self) -> int:
        return 2**160
