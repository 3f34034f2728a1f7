"""What token contracts tell of themselves, compared with the registry. Pure."""

from __future__ import annotations

from typing import Final

from cambist.plugin import Token

DECIMALS: Final = "313ce567"
"""The selector of decimals()."""
SYMBOL: Final = "95d89b41"
"""The selector of symbol()."""

_WORD: Final = 32
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


def read_text(raw: bytes) -> str:
    """Return the text that a contract answered: an ABI string, or 32 bytes as old tokens do it."""
    if len(raw) == _WORD:
        return raw.rstrip(b"\0").decode("utf-8", "replace")
    length = int.from_bytes(raw[_WORD : 2 * _WORD], "big") if len(raw) >= 2 * _WORD else 0
    return raw[2 * _WORD : 2 * _WORD + min(length, _TEXT_MAX)].decode("utf-8", "replace")


def bytes_of(digits: str) -> bytes:
    """Return what hex digits stand for; nothing where they are none."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""
