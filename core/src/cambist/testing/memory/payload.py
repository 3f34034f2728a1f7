"""The one kind of transaction that is signed on chains in memory: an amount for a recipient, under a sequence. Pure."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from cambist.plugin import Fee, SignatureError, UnreadablePayloadError

from .keys import SIGNATURE_BYTES, signer_of

PAYLOAD_BYTES_MAX = 2_000
_TEXT = Meta(max_length=100)
_AMOUNT_MAX = 2**256


class Payload(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What a payload says, in the order in which it says it."""

    kind: Literal["memory/1"] = "memory/1"
    chain: Annotated[str, _TEXT]
    sequence: int
    contract: Annotated[str, _TEXT] | None
    recipient: Annotated[str, _TEXT]
    amount: int
    limit: int
    price: int
    tip: int | None

    @property
    def fee(self) -> Fee:
        """The most that it may cost."""
        return Fee(limit=self.limit, price=self.price, tip=self.tip)


def write_payload(payload: Payload) -> bytes:
    """Return the bytes that are signed."""
    return msgspec.json.encode(payload)


def read_payload(raw: bytes) -> Payload:
    """Return what a payload says. Raises UnreadablePayloadError for all that ``write_payload`` does not write."""
    if len(raw) > PAYLOAD_BYTES_MAX:
        raise UnreadablePayloadError(f"{len(raw)} bytes are more than {PAYLOAD_BYTES_MAX}")
    try:
        payload = msgspec.json.decode(raw, type=Payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePayloadError(f"the payload is none: {error}") from error
    numbers = (payload.sequence, payload.amount, payload.limit, payload.price, payload.tip or 0)
    if not all(0 <= number < _AMOUNT_MAX for number in numbers):
        raise UnreadablePayloadError("the payload has a number that is too large or below zero")
    if payload.fee.price < (payload.tip or 0):
        raise UnreadablePayloadError("the payload's tip is above its price")
    if write_payload(payload) != raw:
        raise UnreadablePayloadError("the payload is not written in the one way")
    return payload


def digest_of(payload: bytes) -> bytes:
    """Return what is signed."""
    return hashlib.sha256(payload).digest()


def tx_id_of(raw: bytes) -> str:
    """Return the id of what is broadcast."""
    return hashlib.sha256(b"transaction:" + raw).hexdigest()


def open_raw(raw: bytes) -> tuple[Payload, bytes]:
    """Return what broadcast bytes say, and the 20 bytes behind their signer's address.

    Raises UnreadablePayloadError, SignatureError.
    """
    if len(raw) <= SIGNATURE_BYTES:
        raise SignatureError("there is no signature")
    payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
    return read_payload(payload), signer_of(digest_of(payload), signature)
