"""A transaction put together again from what a node says of it: only what makes the same id was signed."""

from __future__ import annotations

import re
from typing import Final

from cambist.plugin import (
    Fee,
    FoundTx,
    InconsistentChainError,
    SignatureError,
    UnreadablePayloadError,
    UnsignedTx,
)
from cambist_chainkit.eip55 import parse_address

from .endpoint import Endpoint
from .family import EvmFamily
from .payload import TxFields, write_payload
from .quantities import quantity
from .wire import RpcSigned

_ID: Final = re.compile(r"(0x)?[0-9a-f]{64}", re.ASCII)
_LEGACY, _DYNAMIC_FEE = 0, 2
_V_OFFSET: Final = 35
_FAMILY: Final = EvmFamily()


def tx_id_of(text: str) -> str | None:
    """Return the spelling that nodes use, None for what is no id."""
    lowered = text.strip().lower()
    if _ID.fullmatch(lowered) is None:
        return None
    return lowered if lowered.startswith("0x") else f"0x{lowered}"


async def tx_found(endpoint: Endpoint, tx_id: str) -> FoundTx | None:
    """Return the transaction, None where the endpoint knows none, or one of a kind that is never sent from here."""
    (told,) = await endpoint.all([("eth_getTransactionByHash", (tx_id,))], RpcSigned)
    sender = None if told is None else parse_address(told.sender)
    if told is None or sender is None:
        return None
    try:
        fields, signature = _signed(told)
        payload = write_payload(fields)
        fee = Fee(limit=fields.gas, price=fields.price, tip=fields.tip)
        unsigned = UnsignedTx(sender=sender, sequence=fields.sequence, payload=payload, fee=fee)
        sealed = _FAMILY.seal(unsigned, signature)
    except (InconsistentChainError, SignatureError, UnreadablePayloadError, ValueError, OverflowError):
        return None
    if sealed.tx_id != tx_id:
        return None
    return FoundTx(tx=sealed, sender=sender, sequence=fields.sequence, payload=payload, fee=fee)


def _signed(told: RpcSigned) -> tuple[TxFields, bytes]:
    """Return what was signed, and the signature. Raises ValueError for another kind of transaction."""
    kind, v = quantity(told.type), quantity(told.v)
    if kind not in {_LEGACY, _DYNAMIC_FEE} or told.to is None or told.access_list:
        raise ValueError("it is of a kind that is never sent from here")
    is_legacy = kind == _LEGACY
    if is_legacy and v < _V_OFFSET:
        raise ValueError("it is for every chain there is")
    price = told.gas_price if is_legacy else told.max_fee_per_gas
    fields = TxFields(
        chain_id=(v - _V_OFFSET) // 2 if is_legacy else quantity(told.chain_id or ""),
        sequence=quantity(told.nonce),
        gas=quantity(told.gas),
        price=quantity(price or ""),
        tip=None if is_legacy else quantity(told.max_priority_fee_per_gas or ""),
        to=bytes.fromhex(told.to.removeprefix("0x")),
        value=quantity(told.value),
        data=bytes.fromhex(told.input.removeprefix("0x")),
    )
    parity = (v - _V_OFFSET) % 2 if is_legacy else v
    return fields, quantity(told.r).to_bytes(32, "big") + quantity(told.s).to_bytes(32, "big") + bytes((parity,))
