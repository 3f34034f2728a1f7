"""What is signed on chains in memory: transactions under a sequence, and those that are valid until a time. Pure."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cambist.plugin import Action, Fee, SignatureError, Staking, Units, UnreadablePayloadError

from .keys import SIGNATURE_BYTES, signer_of

PAYLOAD_BYTES_MAX = 2_000
_TEXT = Meta(max_length=100)
TAG = Meta(pattern=r"\A(0|[1-9][0-9]{0,9})\Z")
_AMOUNT_MAX = 2**256
_DATED_KIND = "memory/2"


class Payload(Struct, frozen=True, tag="memory/1", array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What a payload says on a chain whose transactions have sequences, in the order in which it says it."""

    chain: Annotated[str, _TEXT]
    sequence: int
    contract: Annotated[str, _TEXT] | None
    recipient: Annotated[str, _TEXT]
    amount: int
    limit: int
    price: int
    tip: int | None
    tag: Annotated[str, TAG] | None = None

    @property
    def fee(self) -> Fee:
        """The most that it may cost."""
        return Fee(limit=self.limit, price=self.price, tip=self.tip)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.sequence, self.amount, self.limit, self.price, self.tip or 0


class KeyedPayload(Payload, frozen=True, tag="memory/3", kw_only=True):
    """What a payload says on a chain whose transactions have sequences and name the public key of who signs them."""

    public_key: Annotated[str, Meta(pattern=r"\A0[23][0-9a-f]{64}\Z")]


class DatedPayload(Struct, frozen=True, tag=_DATED_KIND, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What a payload says on a chain whose transactions expire. ``serial`` is there to tell it from all others."""

    chain: Annotated[str, _TEXT]
    valid_until: int
    serial: int
    action: Action
    contract: Annotated[str, _TEXT] | None
    recipient: Annotated[str, _TEXT]
    amount: int
    limit: int
    price: int
    extra: int
    tag: Annotated[str, TAG] | None = None

    @property
    def fee(self) -> Fee:
        """The most that it may cost, if nothing is covered."""
        return Fee(limit=self.limit, price=self.price, extra=Units(self.extra))

    @property
    def staking(self) -> Staking | None:
        """What it does with the signer's stake."""
        if self.action == "transfer":
            return None
        borrower = self.recipient if self.action in {"lend", "reclaim"} else None
        return Staking(action=self.action, amount=Units(self.amount), borrower=borrower)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.valid_until, self.serial, self.amount, self.limit, self.price, self.extra


def write_payload(payload: Payload | DatedPayload) -> bytes:
    """Return the bytes that are signed."""
    return msgspec.json.encode(payload)


def read_payload(raw: bytes) -> Payload | DatedPayload:
    """Return what a payload says. Raises UnreadablePayloadError for all that ``write_payload`` does not write."""
    if len(raw) > PAYLOAD_BYTES_MAX:
        raise UnreadablePayloadError(f"{len(raw)} bytes are more than {PAYLOAD_BYTES_MAX}")
    try:
        payload = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePayloadError(f"the payload is none: {error}") from error
    if not all(0 <= number < _AMOUNT_MAX for number in payload.numbers):
        raise UnreadablePayloadError("the payload has a number that is too large or below zero")
    if payload.fee.price < (payload.fee.tip or 0):
        raise UnreadablePayloadError("the payload's tip is above its price")
    if isinstance(payload, DatedPayload) and payload.action in {"approve", "call"}:
        raise UnreadablePayloadError("no contracts are called here")
    if isinstance(payload, DatedPayload) and payload.staking is not None and payload.contract is not None:
        raise UnreadablePayloadError("only the native coin is staked")
    if isinstance(payload, DatedPayload) and payload.staking is not None and payload.tag is not None:
        raise UnreadablePayloadError("a stake is for nobody at an address")
    if write_payload(payload) != raw:
        raise UnreadablePayloadError("the payload is not written in the one way")
    return payload


def digest_of(payload: bytes) -> bytes:
    """Return what is signed."""
    return hashlib.sha256(payload).digest()


def dated_id(payload: bytes) -> str:
    """Return the id of a transaction that expires, whatever its signature."""
    return hashlib.sha256(b"dated transaction:" + payload).hexdigest()


def tx_id_of(raw: bytes) -> str:
    """Return the id of what is broadcast."""
    if raw.startswith(_DATED_START):
        return dated_id(raw[:-SIGNATURE_BYTES])
    return hashlib.sha256(b"transaction:" + raw).hexdigest()


def open_raw(raw: bytes) -> tuple[Payload | DatedPayload, bytes]:
    """Return what broadcast bytes say, and the 20 bytes behind their signer's address.

    Raises UnreadablePayloadError, SignatureError.
    """
    if len(raw) <= SIGNATURE_BYTES:
        raise SignatureError("there is no signature")
    payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
    return read_payload(payload), signer_of(digest_of(payload), signature)


_DECODER: msgspec.json.Decoder[Payload | KeyedPayload | DatedPayload] = msgspec.json.Decoder(
    Payload | KeyedPayload | DatedPayload
)
_DATED_START = f'["{_DATED_KIND}",'.encode()
