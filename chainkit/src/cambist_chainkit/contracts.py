"""What token contracts tell of themselves, compared with the registry, and the calls of one that are made. Pure."""

from __future__ import annotations

import re
from typing import Final

from cambist.plugin import Token, UnreadableTokenError

DECIMALS: Final = "313ce567"
"""The selector of decimals()."""
SYMBOL: Final = "95d89b41"
"""The selector of symbol()."""

TRANSFER: Final = bytes.fromhex("a9059cbb")
"""The selector of transfer(address,uint256)."""
APPROVE: Final = bytes.fromhex("095ea7b3")
"""The selector of approve(address,uint256)."""
ALLOWANCE: Final = bytes.fromhex("dd62ed3e")
"""The selector of allowance(address,address)."""

DECIMALS_MAX: Final = 36

_WORD: Final = 32
_PADDING: Final = bytes(12)  # before the 20 bytes of an address
_CALL_BYTES: Final = len(TRANSFER) + 2 * _WORD
_WORDS: Final = re.compile(r"([0-9a-f]{64})?(?:[0-9a-f]{64})*", re.ASCII)
_TEXT_MAX: Final = 256
_SHOWN_MAX: Final = 32


def token_problem(token: Token, decimals: bytes, symbol: bytes, symbols: frozenset[str]) -> str | None:
    """Return what is wrong with a token, given what its contract answered and what it may call itself."""
    if len(decimals) < _WORD:
        return "is no token contract: it does not tell its decimals"
    said = int.from_bytes(decimals[:_WORD], "big")
    if said != token.decimals:
        return f"has {said} decimals, and is registered with {token.decimals}: every amount would be wrong"
    name = read_text(symbol)
    if name not in symbols:
        return f"calls itself {name[:_SHOWN_MAX]!r}: make sure that it is the right contract"
    return None


def token_told(contract: str, decimals: bytes, symbol: bytes) -> Token:
    """Return the token that a contract says it is. Raises UnreadableTokenError for answers that make no sense.

    A contract that answers every question with the same word says nothing of itself.
    """
    if len(decimals) != _WORD or int.from_bytes(decimals, "big") > DECIMALS_MAX:
        raise UnreadableTokenError(f"{contract} is no token contract: it does not tell its decimals")
    name = read_text(symbol)
    if not 0 < len(name) <= _SHOWN_MAX or "\ufffd" in name:
        raise UnreadableTokenError(f"{contract} does not tell its symbol, or a very long one")
    return Token(symbol=name, contract=contract, decimals=int.from_bytes(decimals, "big"), label=name)


def read_text(raw: bytes) -> str:
    """Return the text that a contract answered: an ABI string, or 32 bytes as old tokens do it."""
    if len(raw) == _WORD:
        return raw.rstrip(b"\0").decode("utf-8", "replace")
    length = int.from_bytes(raw[_WORD : 2 * _WORD], "big") if len(raw) >= 2 * _WORD else 0
    return raw[2 * _WORD : 2 * _WORD + min(length, _TEXT_MAX)].decode("utf-8", "replace")


def first_word(digits: str) -> int | None:
    """Return the first of some words of 32 bytes in lower-case hex as a number, None of none. Raises ValueError."""
    found = _WORDS.fullmatch(digits)
    if found is None:
        raise ValueError("no words of 32 bytes")
    return int(found[1], 16) if found[1] else None


def bytes_of(digits: str) -> bytes:
    """Return what hex digits stand for; nothing where they are none."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""


def transfer_data(recipient: bytes, amount: int) -> bytes:
    """Return the call of a token's ``transfer`` to an address of 20 bytes."""
    return TRANSFER + _PADDING + recipient + amount.to_bytes(_WORD, "big")


def approve_data(spender: bytes, amount: int) -> bytes:
    """Return the call of a token's ``approve`` for an address of 20 bytes."""
    return APPROVE + _PADDING + spender + amount.to_bytes(_WORD, "big")


def allowance_data(owner: bytes, spender: bytes) -> bytes:
    """Return the call that asks a token how much of the owner's the spender may take."""
    return ALLOWANCE + _PADDING + owner + _PADDING + spender


def read_transfer(data: bytes) -> tuple[bytes, int] | None:
    """Return recipient and amount of a call of ``transfer``, None for any other data, even one byte longer.

    Some of TRON's wallets write the byte 41 into the recipient's padding, and contracts overlook it. We never do.
    """
    return _read(TRANSFER, data)


def read_approve(data: bytes) -> tuple[bytes, int] | None:
    """Return spender and amount of a call of ``approve``, None for any other data, even one byte longer."""
    return _read(APPROVE, data)


def _read(selector: bytes, data: bytes) -> tuple[bytes, int] | None:
    if len(data) != _CALL_BYTES or data[:4] != selector or data[4 : 4 + len(_PADDING)] != _PADDING:
        return None
    return data[4 + len(_PADDING) : 4 + _WORD], int.from_bytes(data[4 + _WORD :], "big")
