"""The words that calls and logs are made of, 32 bytes each, and how addresses are spelled. Pure.

By hand, because what is called here takes addresses and numbers alone. For functions with texts and lists take a codec,
and import it where it is used: the web process needs none of this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sha3 import keccak_256  # type: ignore[import-untyped, unused-ignore]

from cambist.plugin import UnreadablePayloadError

WORD_BYTES = 32
ADDRESS_BYTES = 20
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)

NATIVE = "0x" + "0" * 40
"""What contracts are told in place of a token's address where it is native coin."""


def spell(raw: bytes) -> str:
    """Return the one spelling of an address that the gateway stores: EIP-55, which shows mistakes by its capitals."""
    digits = raw.hex()
    hashed = keccak_256(digits.encode()).hexdigest()
    return "0x" + "".join(one.upper() if by >= "8" else one for one, by in zip(digits, hashed, strict=False))


def parse_address(text: str) -> str | None:
    """Return the one spelling of what an operator has written; None where it is no address."""
    if ADDRESS.fullmatch(text) is None:
        return None
    spelled = spell(bytes.fromhex(text[2:]))
    return spelled if text in {spelled, text.lower()} else None


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
    return spell(word[-ADDRESS_BYTES:])
