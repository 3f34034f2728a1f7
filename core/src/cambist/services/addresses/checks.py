"""Where money may go: an address of the chain that somebody can have the key of."""

from __future__ import annotations

from cambist.domain.destinations import destination, split
from cambist.plugin import ChainInfo, InvalidAddressError
from cambist.registry import Registry
from cambist.services.errors import InvalidError

ADDRESS_BYTES = 20
"""What is counted from the end of an address's key; what stands before says which network it is."""


def check_to_address(registry: Registry, chain: ChainInfo, text: str, field: str = "toAddress") -> str:
    """Return the normalized address. Raises InvalidError where money sent there would be lost.

    Token contracts of other chains are refused as well: whoever names one has copied the wrong line.
    """
    family = registry.families[chain.family]
    try:
        address = family.normalize_address(text)
    except InvalidAddressError as error:
        raise InvalidError.field(field, f"is no address on {chain.name}: {error}", "INVALID_ADDRESS") from None
    if not any(family.address_key(address)[-ADDRESS_BYTES:]):
        raise InvalidError.field(field, "is the zero address, whose money nobody can move", "INVALID_ADDRESS")
    alike = (other for other in registry.chains.values() if other.family == chain.family)
    if any(address == token.contract for other in alike for token in other.tokens):
        raise InvalidError.field(
            field, "is the contract of a token, which would keep what is sent to it", "TARGET_IS_CONTRACT"
        )
    return address


def check_tag(registry: Registry, chain: ChainInfo, text: str | None, field: str = "toTag") -> str | None:
    """Return the normalized tag, if there is one. Raises InvalidError: TAG_NOT_SUPPORTED, INVALID_TAG."""
    if text is None:
        return None
    family = registry.families[chain.family]
    if not family.tags:
        raise InvalidError.field(field, f"is not possible: addresses of {chain.name} have no tags", "TAG_NOT_SUPPORTED")
    try:
        return family.normalize_tag(text)
    except InvalidAddressError as error:
        raise InvalidError.field(field, f"is no tag on {chain.name}: {error}", "INVALID_TAG") from None


def check_destination(registry: Registry, chain: ChainInfo, text: str, field: str) -> str:
    """Return the normalized text of an address, with its tag behind a ``#`` where it has one. Raises InvalidError."""
    address, tag = split(registry.families[chain.family], text)
    return destination(check_to_address(registry, chain, address, field), check_tag(registry, chain, tag, field))


def refuse_source(to_address: str, wallet: str, field: str = "toAddress") -> None:
    """Refuse the address that the money would come from."""
    if to_address == wallet:
        raise InvalidError.field(field, "is the wallet that it would be sent from", "INVALID_ADDRESS")
