"""The one kind of transaction: so much of a token, to one recipient, under a sequence. Pure.

The signer reads payloads with this, and believes nobody else. So whatever is not exactly what ``write`` writes, is
refused: two ways to write the same thing are two ways to hide another.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cambist.plugin import UnreadablePayloadError

PAYLOAD_BYTES_MAX = 2_000
WORK = 1
"""Every transfer is one unit of work here, so price and fee are the same number."""

_NUMBER_END = 2**256
_TEXT = Meta(max_length=100)


class Payload(Struct, frozen=True, tag="transfer", array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What a payload says, in the order in which it says it."""

    network: Annotated[str, _TEXT]
    sequence: int
    contract: Annotated[str, _TEXT] | None
    recipient: Annotated[str, _TEXT]
    amount: int
    limit: int
    price: int


def write(payload: Payload) -> bytes:
    """Return the bytes that are signed."""
    return msgspec.json.encode(payload)


def read(raw: bytes) -> Payload:
    """Return what a payload says. Raises UnreadablePayloadError for all that ``write`` does not write."""
    if len(raw) > PAYLOAD_BYTES_MAX:
        raise UnreadablePayloadError(f"{len(raw)} bytes are more than {PAYLOAD_BYTES_MAX}")
    try:
        payload = msgspec.json.decode(raw, type=Payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePayloadError(f"the payload is none: {error}") from error
    numbers = (payload.sequence, payload.amount, payload.limit, payload.price)
    if not all(0 <= number < _NUMBER_END for number in numbers):
        raise UnreadablePayloadError("the payload has a number that is too large or below zero")
    if write(payload) != raw:
        raise UnreadablePayloadError("the payload is not written in the one way")
    return payload


def digest_of(payload: bytes) -> bytes:
    """Return what is signed."""
    return hashlib.sha256(payload).digest()


def tx_id_of(raw: bytes) -> str:
    """Return the id of what is broadcast."""
    return hashlib.sha256(raw).hexdigest()
