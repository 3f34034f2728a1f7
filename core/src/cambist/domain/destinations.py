"""Where money goes, as one text: an address, and behind a ``#`` its tag, where it has one.

It is how lists of addresses have it, so that the same address with another tag is another entry.
"""

from __future__ import annotations

from cambist.plugin import AddressFamily

MARK = "#"


def destination(address: str, tag: str | None) -> str:
    """Return the text of a normalized address and tag."""
    return address if tag is None else f"{address}{MARK}{tag}"


def split(family: AddressFamily, text: str) -> tuple[str, str | None]:
    """Return address and tag of a text. Where a family has no tags, all of it is the address."""
    if not family.tags or MARK not in text:
        return text, None
    address, _, tag = text.partition(MARK)
    return address, tag


def normalized(family: AddressFamily, text: str) -> str:
    """Return the one spelling of a destination. Raises InvalidAddressError."""
    address, tag = split(family, text)
    return destination(family.normalize_address(address), None if tag is None else family.normalize_tag(tag))
