"""The filter that a receipt carries of its logs' addresses and topics: a second word on what the logs should be.

Who drops a log, or writes another recipient into one, has to write another filter, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from cambist_chainkit.eip55 import ADDRESS_BYTES, keccak

from .wire import RpcLog

UNTOLD: Final = frozenset({"", "0x", "0x" + "0" * 512, "0x" + "f" * 512})
"""How networks without the filter fill the field."""
NO_LOGS: Final = UNTOLD - {"0x" + "f" * 512}
"""How the field is filled where there are no logs."""

WORD_BYTES: Final = 32
_BLOOM_BYTES: Final = 256
_BLOOM_CHARS: Final = 2 + 2 * _BLOOM_BYTES
_WORD_CHARS: Final = 2 + 2 * WORD_BYTES
_BITS_KEPT: Final = 1 << 10
_PAIRS: Final = Struct(">3H")
_BIT: Final = [1 << number for number in range(2048)]


@lru_cache(maxsize=_BITS_KEPT)
def bits_of(item: str) -> int:
    """Return the bits of an address or topic as nodes spell it: in lower case. Raises ValueError where it is none."""
    content = bytes.fromhex(item[2:])
    if item != f"0x{content.hex()}" or len(content) not in {ADDRESS_BYTES, WORD_BYTES}:
        raise ValueError("neither an address nor a topic")
    return _bits(content)


def bloom_of(logs: Sequence[RpcLog]) -> int:
    """Return the filter of these logs. Raises ValueError where an address or a topic is none."""
    bits = 0
    for log in logs:
        bits |= bits_of(log.address)
        topics = log.topics
        if topics:
            bits |= bits_of(topics[0])
            # Most come once, and what is kept for a moment among so much that is freed costs more than it saves.
            for topic in topics[1:]:
                content = bytes.fromhex(topic[2:])
                if len(content) != WORD_BYTES or len(topic) != _WORD_CHARS:
                    raise ValueError("no topic")
                bits |= _bits(content)
    return bits


def _bits(content: bytes) -> int:
    first, second, third = _PAIRS.unpack_from(keccak(content))
    bits: int = _BIT[first & 2047] | _BIT[second & 2047] | _BIT[third & 2047]
    return bits


def told_bloom(text: str) -> int:
    """Return a filter as it was told. Raises ValueError where it is none."""
    content = bytes.fromhex(text.removeprefix("0x"))
    if len(text) != _BLOOM_CHARS or len(content) != _BLOOM_BYTES:
        raise ValueError("no filter")
    return int.from_bytes(content, "big")
