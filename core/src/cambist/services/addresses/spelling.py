"""How a text would be spelt as an address, where nobody knows of which family it is one."""

from __future__ import annotations

import structlog

from cambist.plugin import AddressFamily, InvalidAddressError

log = structlog.get_logger(__name__)


def spelt(family: AddressFamily, text: str) -> str | None:
    """Return a text as the family spells an address; None for what is none of its own.

    A plugin that fails over it says nothing: another family may know the text.
    """
    try:
        return family.normalize_address(text)
    except InvalidAddressError:
        return None
    except Exception as error:  # noqa: BLE001  a plugin may raise anything
        log.warning("address_not_read", family=family.name, error=type(error).__name__)
        return None
