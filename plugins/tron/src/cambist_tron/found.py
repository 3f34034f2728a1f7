"""A transaction as it was signed, read back by its id: only the bytes that make the id were signed."""

from __future__ import annotations

import re
from typing import Final

from cambist.plugin import Fee, FoundTx, SignatureError, Units, UnreadablePayloadError, UnsignedTx

from .addresses import spell
from .endpoint import Endpoint
from .family import TronFamily, fee_max
from .payload import SIGNATURE_BYTES, read_payload
from .wire import SignedTron

_ID: Final = re.compile(r"(0x)?[0-9a-f]{64}", re.ASCII)
_V_OFFSET: Final = 27
_FAMILY: Final = TronFamily()


def tx_id_of(text: str) -> str | None:
    """Return the spelling that nodes use, None for what is no id."""
    lowered = text.strip().lower()
    return lowered.removeprefix("0x") if _ID.fullmatch(lowered) is not None else None


async def tx_found(endpoint: Endpoint, tx_id: str) -> FoundTx | None:
    """Return the transaction, None where the endpoint knows none, or one of a kind that is never sent from here."""
    told = await endpoint.post("wallet/gettransactionbyid", {"value": tx_id}, SignedTron)
    try:
        payload = bytes.fromhex(told.raw_data_hex)
        fields = read_payload(payload)
        signature = _signature(told)
        fee = Fee(limit=0, price=0, extra=Units(fee_max(fields, payload)))
        unsigned = UnsignedTx(
            sender=spell(fields.owner),
            sequence=None,
            payload=payload,
            fee=fee,
            valid_until=fields.expiration_ms // 1000,
        )
        sealed = _FAMILY.seal(unsigned, signature)
    except (SignatureError, UnreadablePayloadError, ValueError):
        return None
    if sealed.tx_id != tx_id:
        return None
    return FoundTx(
        tx=sealed, sender=unsigned.sender, sequence=None, payload=payload, fee=fee, valid_until=unsigned.valid_until
    )


def _signature(told: SignedTron) -> bytes:
    """Return the one signature, with the parity as signers write it. Raises ValueError."""
    (text,) = told.signature
    signature = bytes.fromhex(text)
    if len(signature) != SIGNATURE_BYTES:
        raise ValueError("a signature is of another length")
    parity = signature[-1]
    return signature[:-1] + bytes((parity - _V_OFFSET if parity >= _V_OFFSET else parity,))
