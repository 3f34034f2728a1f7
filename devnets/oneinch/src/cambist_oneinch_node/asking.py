"""Reads what is asked of the API, in 1inch's names, and refuses in its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NoReturn

from msgspec import Struct

from cambist_chainkit.eip55 import ADDRESS, spell

FEE_PERCENT_MAX: Final = 3
SLIPPAGE_PERCENT_MAX: Final = 50
V6_0: Final = "v6.0"
V6_1: Final = "v6.1"

_TUNING: Final = frozenset(
    "protocols gasPrice complexityLevel parts mainRouteParts gasLimit connectorTokens excludedProtocols".split()
)
"""Taken and of no effect: there is one exchange to ask."""

_QUOTE: Final = _TUNING | {
    *("src", "dst", "amount", "fee"),
    *("includeTokensInfo", "includeProtocols", "includeGas"),
}
_SWAP: Final = _QUOTE | {
    *("from", "origin", "slippage", "receiver", "referrer"),
    *("permit", "usePermit2", "allowPartialFill", "disableEstimate"),
}
_NOT_HERE: Final = frozenset({"usePermit2", "allowPartialFill", "usePatching"})
_FLAGS: Final = _NOT_HERE | {
    *("includeTokensInfo", "includeProtocols", "includeGas", "disableEstimate", "compatibility"),
}
_KNOWN: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (V6_0, "quote"): _QUOTE,
    (V6_0, "swap"): _SWAP,
    (V6_1, "quote"): _QUOTE,
    (V6_1, "swap"): _SWAP | {"compatibility", "usePatching"},
}
_DIGITS: Final = re.compile(r"[0-9]{1,78}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,18})?", re.ASCII)


class RefusedError(Exception):
    """An answer 400, as 1inch words it. ``meta`` are the numbers that it is about."""

    def __init__(self, description: str, **meta: str) -> None:
        super().__init__(description)
        self.meta = meta


class Asked(Struct, frozen=True, kw_only=True):
    """A swap that is asked about. Addresses are normalized; ``fee`` and ``slippage`` are shares of one."""

    src: str
    dst: str
    amount: int
    fee: Fraction
    sender: str = ""
    receiver: str = ""
    referrer: str | None = None
    slippage: Fraction = Fraction(0)
    estimates: bool = False

    @property
    def fee_units(self) -> int:
        """What the referrer gets of what is sold."""
        return int(self.amount * self.fee)


def read_quote(version: str, query: Mapping[str, str]) -> Asked:
    """Return what a quote is asked for. Raises RefusedError."""
    return _read(version, "quote", query)


def read_swap(version: str, query: Mapping[str, str]) -> Asked:
    """Return what a swap is asked for. Raises RefusedError."""
    asked = _read(version, "swap", query)
    if "permit" in query or any(flag(query, name) for name in _NOT_HERE):
        _refuse("permits, partial fills and patching are not supported here")
    sender = address(query, "from")
    address(query, "origin")
    referrer = address(query, "referrer") if "referrer" in query else None
    if asked.fee and referrer is None:
        _refuse("referrer must be an Ethereum address where there is a fee")
    return Asked(
        src=asked.src,
        dst=asked.dst,
        amount=asked.amount,
        fee=asked.fee,
        sender=sender,
        receiver=address(query, "receiver") if "receiver" in query else sender,
        referrer=referrer,
        slippage=_percent(query, "slippage", SLIPPAGE_PERCENT_MAX, required=True),
        estimates=not flag(query, "disableEstimate"),
    )


def address(query: Mapping[str, str], name: str) -> str:
    """Return an address in any letter case, normalized. Raises RefusedError."""
    text = query.get(name, "")
    if ADDRESS.fullmatch(text) is None:
        _refuse(f"{name} must be an Ethereum address")
    return spell(text[2:].lower())


def number(query: Mapping[str, str], name: str) -> int:
    """Return a number of units. Raises RefusedError."""
    text = query.get(name, "")
    if _DIGITS.fullmatch(text) is None or int(text) >= 1 << 256:
        _refuse(f"{name} must be a number string")
    return int(text)


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether something is asked for. Raises RefusedError."""
    text = query.get(name, "false")
    if text not in {"true", "false"}:
        _refuse(f"{name} must be a boolean value")
    return text == "true"


def _read(version: str, path: str, query: Mapping[str, str]) -> Asked:
    if strange := set(query) - _KNOWN[version, path]:
        _refuse(f"property {min(strange)} should not exist")
    for name in _FLAGS:
        flag(query, name)
    src, dst = address(query, "src"), address(query, "dst")
    if src == dst:
        _refuse("src and dst tokens should be different")
    amount = number(query, "amount")
    if not amount:
        _refuse("amount must be greater than 0")
    return Asked(src=src, dst=dst, amount=amount, fee=_percent(query, "fee", FEE_PERCENT_MAX))


def _percent(query: Mapping[str, str], name: str, most: int, *, required: bool = False) -> Fraction:
    text = query.get(name, "" if required else "0")
    if _DECIMAL.fullmatch(text) is None or Fraction(text) > most:
        _refuse(f"{name} must be a number from 0 to {most}")
    return Fraction(text) / 100


def _refuse(description: str) -> NoReturn:
    raise RefusedError(description)
