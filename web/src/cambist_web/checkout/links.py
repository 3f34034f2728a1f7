"""How addresses and transactions are written on the pages, and where they lead."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import structlog

from cambist.plugin import AddressFamily, ChainInfo, Token, Units
from cambist.registry import Registry

log = structlog.get_logger(__name__)

ADDRESS_HEAD_CHARS = 6
ADDRESS_TAIL_CHARS = 6
TX_SHORT_CHARS = 20

_URI = re.compile(r"[!-~]{1,512}", re.ASCII)
"""What fits into a code that cameras read."""


def address_parts(address: str) -> tuple[str, str, str]:
    """Return head, middle and tail of an address: its ends are what people compare. A short one is all head."""
    if len(address) <= ADDRESS_HEAD_CHARS + ADDRESS_TAIL_CHARS:
        return address, "", ""
    return (
        address[:ADDRESS_HEAD_CHARS],
        address[ADDRESS_HEAD_CHARS:-ADDRESS_TAIL_CHARS],
        address[-ADDRESS_TAIL_CHARS:],
    )


def tx_short(tx_id: str) -> str:
    return tx_id if len(tx_id) <= TX_SHORT_CHARS else f"{tx_id[:10]}…{tx_id[-8:]}"


def explorer_url(mode: str, chain: ChainInfo | None, tx_id: str) -> str | None:
    """Return where a transaction of a chain is shown; None where nothing shows it, as with a simulated one."""
    if chain is None or mode != "live" or not chain.explorer_tx_url:
        return None
    if not chain.explorer_tx_url.startswith(("https://", "http://")):
        return None
    return chain.explorer_tx_url.replace("{tx_id}", quote(tx_id, safe=""))


def named(network: str, standard: str | None) -> str:
    """Return a network with what wallets and exchanges call it, such as Ethereum (ERC-20)."""
    return network if standard is None else f"{network} ({standard})"


def uri_of(registry: Registry, info: ChainInfo, address: str) -> str:
    """Return what the code of an address says: the address alone where its plugin fails, which hides no other chain."""
    return _made(lambda: registry.families[info.family].address_uri(info, address), info, address)


def payment_uri_of(family: AddressFamily, info: ChainInfo, address: str, token: Token, amount: Units) -> str:
    """Return what the code of a payment says: the address alone where its plugin fails, for that is paid as well."""
    return _made(lambda: family.payment_uri(info, address, token, amount), info, address)


def _made(make: Callable[[], object], info: ChainInfo, address: str) -> str:
    try:
        uri = make()
    except Exception:  # a plugin may raise anything
        log.exception("address_uri_not_made", chain=info.id)
        return address
    if not isinstance(uri, str) or _URI.fullmatch(uri) is None:
        log.error("address_uri_not_made", chain=info.id, made=repr(uri)[:200])
        return address
    return uri
