"""A chain in memory on which everything that is signed names the public key of who signs it."""

from __future__ import annotations

from typing import ClassVar

from coincurve import PublicKey
from msgspec.structs import asdict

from cambist.plugin import SignatureError, Step, UnreadablePayloadError, UnsignedTx

from .blocks import Transaction
from .chain import MemoryChain
from .family import spell
from .keys import key_id
from .payload import KeyedPayload, Payload, open_raw, read_payload, write_payload


class MemoryKeyedChain(MemoryChain):
    """Has sequences; its node takes nothing that does not name the signer's own key."""

    needs_public_key: ClassVar[bool] = True

    def _unsigned(self, step: Step, sequence: int | None) -> UnsignedTx:
        if step.public_key is None:
            raise ValueError(f"transactions of {self.info.id} need the public key of {step.sender}")
        unsigned = super()._unsigned(step, sequence)
        said = read_payload(unsigned.payload)
        assert isinstance(said, Payload)
        payload = write_payload(KeyedPayload(**asdict(said), public_key=step.public_key.hex()))
        return UnsignedTx(sender=step.sender, sequence=unsigned.sequence, payload=payload, fee=step.fee)

    def _read(self, raw: bytes) -> Transaction:
        payload, _ = open_raw(raw)
        if not isinstance(payload, KeyedPayload):
            raise UnreadablePayloadError("a transaction names a public key here")
        read = super()._read(raw)
        try:
            named = spell(key_id(PublicKey(bytes.fromhex(payload.public_key))))
        except ValueError as error:
            raise SignatureError(f"{payload.public_key} is no public key") from error
        if named != read.sender:
            raise SignatureError(f"it names the key of {named}, and is signed by {read.sender}")
        return read
