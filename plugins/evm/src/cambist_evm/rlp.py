"""Ethereum's encoding of nested lists, both ways. Decoding takes the one canonical form only, within limits. Pure.

Own code, because the ``rlp`` distribution brings pydantic and half a toolkit into the process that signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, Union

Item: TypeAlias = Union[bytes, "list[Item]"]
Encodable: TypeAlias = Union[bytes, int, "Sequence[Encodable]"]

BYTES_MAX: Final = 1 << 17
"""So much the signer takes, and nodes take no larger transactions."""

DEPTH_MAX: Final = 4

_SHORT_MAX: Final = 55
_STRING: Final = 0x80
_LIST: Final = 0xC0
_LONG: Final = 0xB7 - 0x80


class RlpError(ValueError):
    """Bytes are not the canonical encoding of anything."""


def encode(item: Encodable) -> bytes:
    """Return the encoding. Numbers are written as the protocol does it: big-endian, zero being no byte at all."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8, "big")
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _STRING:
            return item
        return _head(len(item), _STRING) + item
    body = b"".join(map(encode, item))
    return _head(len(body), _LIST) + body


def _head(length: int, offset: int) -> bytes:
    if length <= _SHORT_MAX:
        return bytes((offset + length,))
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((offset + _LONG + len(size),)) + size


def decode(data: bytes) -> Item:
    """Return what the bytes encode. Raises RlpError for all that ``encode`` would not have written so."""
    if len(data) > BYTES_MAX:
        raise RlpError(f"{len(data)} bytes are more than {BYTES_MAX}")
    item, end = _item(data, 0, 0)
    if end != len(data):
        raise RlpError(f"{len(data) - end} bytes follow the end")
    return item


def number(item: Item, bits_max: int = 256) -> int:
    """Return the number that an item is. Raises RlpError for lists, leading zeros, and what has too many bits."""
    if not isinstance(item, bytes) or item[:1] == b"\0":
        raise RlpError("a number is needed, without leading zeros")
    value = int.from_bytes(item, "big")
    if value.bit_length() > bits_max:
        raise RlpError(f"a number has more than {bits_max} bits")
    return value


def _item(data: bytes, start: int, depth: int) -> tuple[Item, int]:
    if start >= len(data):
        raise RlpError("it ends too soon")
    first = data[start]
    if first < _STRING:
        return data[start : start + 1], start + 1
    if first < _LIST:
        begin, end = _span(data, start, first - _STRING)
        if end - begin == 1 and data[begin] < _STRING:
            raise RlpError("a byte that stands for itself has a length before it")
        return data[begin:end], end
    begin, end = _span(data, start, first - _LIST)
    if depth == DEPTH_MAX:
        raise RlpError(f"lists are nested more than {DEPTH_MAX} deep")
    items: list[Item] = []
    while begin < end:
        item, begin = _item(data, begin, depth + 1)
        items.append(item)
    if begin != end:
        raise RlpError("an item reaches beyond its list")
    return items, end


def _span(data: bytes, start: int, length: int) -> tuple[int, int]:
    """Return where the content begins and ends; ``length`` is what the first byte says of it."""
    begin = start + 1
    if length > _SHORT_MAX:
        size = data[begin : begin + length - _SHORT_MAX]
        begin += length - _SHORT_MAX
        length = int.from_bytes(size, "big")
        if size[:1] == b"\0" or length <= _SHORT_MAX:
            raise RlpError("a length is written longer than it need be")
    if begin + length > len(data):
        raise RlpError("it ends too soon")
    return begin, begin + length
