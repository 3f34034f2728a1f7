"""The words that calls and logs are made of, 32 bytes each. Pure.

By hand, because what is called here takes addresses and numbers alone. For functions with texts and lists take a codec,
and import it where it is used: the web process needs none of this.
"""

from __future__ import annotations

from collections.abc import Sequence

from cambist.plugin import UnreadablePayloadError
from cambist_chainkit.eip55 import spell

WORD_BYTES = 32
ADDRESS_BYTES = 20

NATIVE = "0x" + "0" * 40
"""What contracts are told in place of a token's address where it is native coin."""


def address_of(contract: str | None) -> str:
    """Return what stands for a token in a call."""
    return NATIVE if contract is None else contract


def contract_of(address: str) -> str | None:
    """Return the contract of the token that an address stands for in a call."""
    return None if address == NATIVE else address


def number_word(number: int) -> bytes:
    """Return a number as a word."""
    return number.to_bytes(WORD_BYTES, "big")


def address_word(address: str) -> bytes:
    """Return an address as a word."""
    return bytes.fromhex(address[2:]).rjust(WORD_BYTES, b"\0")


def words_of(data: bytes, count: int) -> Sequence[bytes]:
    """Return exactly so many words. Raises UnreadablePayloadError."""
    if len(data) != count * WORD_BYTES:
        raise UnreadablePayloadError(f"{len(data)} bytes are not {count} words")
    return [data[at : at + WORD_BYTES] for at in range(0, len(data), WORD_BYTES)]


def read_number(word: bytes) -> int:
    """Return the number that a word is. Every word is one."""
    return int.from_bytes(word, "big")


def read_address(word: bytes) -> str:
    """Return the address in a word, whose other bytes are zero. Raises UnreadablePayloadError."""
    if any(word[:-ADDRESS_BYTES]):
        raise UnreadablePayloadError("a word has more in it than an address")
    return spell(word[-ADDRESS_BYTES:].hex())
