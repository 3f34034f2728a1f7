"""Writes what trackers are told: what all hear of a stage alike is written once, and each one's own put into it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, field

from cambist.db.structs import AnyRow
from cambist.domain.money import format_units
from cambist.domain.webhooks import TRACKER_EVENTS
from cambist.services.webhooks.outbox import moment

EVENTS = {event.rpartition(".")[2]: event for event in TRACKER_EVENTS}
"""The event that tells of a stage."""


class Transaction(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a tracker is told of a transfer: ``data`` of its events. ``confirmations`` are those of the stage."""

    resource: str = "transaction"
    transaction_id: str
    chain: str
    tx_hash: str
    direction: str
    address: str
    label: str
    sender: str | None = field(name="from")
    recipient: str = field(name="to")
    token: str
    contract_address: str | None
    amount: str
    block_number: int
    block_hash: str
    block_time: str
    confirmations: int
    required_confirmations: int
    status: str
    timestamp: str


class _Body(Struct, frozen=True, rename="camel"):
    event: str
    webhook_id: str
    data: Transaction


_encode = msgspec.json.Encoder().encode

# Stands for what is each tracker's own. No text in PostgreSQL has this character, and within a JSON string there is
# neither a bare quote nor a bare backslash: its encoding is found where it was put, and nowhere else.
_OWN = "\0"
_GAP = _encode(_OWN)


def pieces(chain: str, movement: AnyRow, stage: str, head: int, at: datetime) -> Sequence[bytes]:
    """Write what everybody is told of a stage, in the pieces between what is each tracker's own: see ``body``."""
    data = Transaction(
        transaction_id=_OWN,
        chain=chain,
        tx_hash=movement.tx_id,
        direction=_OWN,
        address=_OWN,
        label=_OWN,
        sender=movement.sender,
        recipient=movement.recipient,
        token=movement.token,
        contract_address=movement.contract,
        amount=format_units(int(movement.units), movement.decimals),
        block_number=movement.height,
        block_hash=movement.block_hash,
        block_time=moment(movement.mined_at),
        confirmations=0 if stage == "orphaned" else max(0, head - movement.height),
        required_confirmations=movement.required_confirmations,
        status=stage,
        timestamp=moment(at),
    )
    return _encode(_Body(EVENTS[stage], _OWN, data)).split(_GAP)


def body(  # noqa: PLR0913, PLR0917  in the order in which it is written
    alike: Sequence[bytes], webhook_id: str, transaction_id: str, direction: str, address: str, label: str | None
) -> bytes:
    """Write what one tracker is told, from what all are told alike. An address that has no label shows none."""
    opening, to_transaction, to_direction, to_address, to_label, closing = alike
    return b"".join(
        (
            opening,
            _encode(webhook_id),
            to_transaction,
            _encode(transaction_id),
            to_direction,
            _encode(direction),
            to_address,
            _encode(address),
            b"" if label is None else to_label + _encode(label),
            closing,
        )
    )
