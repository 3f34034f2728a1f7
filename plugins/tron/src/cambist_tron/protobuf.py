"""Protocol Buffers as a signer needs them: one way to write a message, and no other way is read.

The format allows the same message in many spellings: fields in another order, twice, written although they hold their
default, numbers padded with zeros, fields that nobody knows. A node hashes the bytes that it gets, so a payload that
reads alike and is spelled otherwise would be another transaction. Here each message is a mapping from field number to
number or bytes, written in ascending order and without defaults, which is also how nodes and wallets write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from cambist.plugin import UnreadablePayloadError

Message: TypeAlias = Mapping[int, int | bytes]
Kind: TypeAlias = Literal["number", "bytes"]

NUMBER_MAX: Final = 2**63 - 1

_VARINT: Final = 0
_LENGTH_DELIMITED: Final = 2
_VARINT_BYTES_MAX: Final = 9  # of what fits a positive int64
_MORE: Final = 0x80

_FIXED: Final = {1: 8, 5: 4}
_ANY_VARINT_BYTES_MAX: Final = 10
_UINT64_MAX: Final = 2**64 - 1


def encode(message: Message) -> bytes:
    """Return the message's one spelling."""
    parts: list[bytes] = []
    for field, value in sorted(message.items()):
        if not value:
            continue
        if isinstance(value, bytes):
            parts += [_varint(field << 3 | _LENGTH_DELIMITED), _varint(len(value)), value]
        else:
            parts += [_varint(field << 3 | _VARINT), _varint(value)]
    return b"".join(parts)


def decode(data: bytes, kinds: Mapping[int, Kind]) -> dict[int, int | bytes]:
    """Return the message. Raises UnreadablePayloadError for all that ``encode`` does not write of such fields."""
    message: dict[int, int | bytes] = {}
    at = last = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        field, wire = key >> 3, key & 7
        expected = kinds.get(field)
        if expected is None:
            raise UnreadablePayloadError(f"the payload has a field {field} that nothing here writes")
        if wire != (_VARINT if expected == "number" else _LENGTH_DELIMITED):
            raise UnreadablePayloadError(f"the payload's field {field} is of another kind")
        if field <= last:
            raise UnreadablePayloadError(f"the payload's field {field} comes twice, or out of order")
        number, at = _read_varint(data, at)
        value: int | bytes = number
        if wire == _LENGTH_DELIMITED:
            value, at = data[at : at + number], at + number
            if at > len(data):
                raise UnreadablePayloadError("the payload ends within a field")
        if not value:
            raise UnreadablePayloadError(f"the payload's field {field} is written although it is empty")
        message[field] = value
        last = field
    return message


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield every field of a message in whatever spelling it came, by number, as a node would read it.

    Raises ValueError for what is no message, or holds a group, which nobody writes any more.
    """
    at = 0
    while at < len(data):
        key, at = _read_any_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            number, at = _read_any_varint(data, at)
            yield key >> 3, number
            continue
        if wire == _LENGTH_DELIMITED:
            size, at = _read_any_varint(data, at)
        else:
            size = _FIXED[wire] if wire in _FIXED else len(data)
        if at + size > len(data):
            raise ValueError("the message ends within a field")
        yield key >> 3, data[at : at + size]
        at += size


def _read_any_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for index, group in enumerate(data[at : at + _ANY_VARINT_BYTES_MAX]):
        number |= (group & 0x7F) << (7 * index)
        if not group & _MORE:
            return number & _UINT64_MAX, at + index + 1
    raise ValueError("the message has a number that does not end")


def number_in(message: Message, field: int) -> int:
    """Return a field that holds a number; absent, it is 0."""
    value = message.get(field, 0)
    return value if isinstance(value, int) else 0


def bytes_in(message: Message, field: int) -> bytes:
    """Return a field that holds bytes; absent, it is empty."""
    value = message.get(field, b"")
    return value if isinstance(value, bytes) else b""


def _varint(number: int) -> bytes:
    if not 0 <= number <= NUMBER_MAX:
        raise ValueError(f"{number} does not fit the 63 bits of a field")
    groups = bytearray()
    while number >= _MORE:
        groups.append(number & 0x7F | _MORE)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for index, group in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        number |= (group & 0x7F) << (7 * index)
        if not group & _MORE:
            if index and not group:
                raise UnreadablePayloadError("the payload has a number that is padded with zeros")
            return number, at + index + 1
    raise UnreadablePayloadError("the payload has a number that does not end, or is too large")
