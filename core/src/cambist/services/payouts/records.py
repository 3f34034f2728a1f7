"""A payout as it is stored, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Kind, Status
from cambist.plugin import Units
from cambist.services.ledger import Account, Purpose, asset_key

COLUMNS = (
    "p.id, p.payout_id, p.kind, p.project_id, p.merchant_id, p.mode, p.chain, p.scope, p.token, p.contract,"
    " p.decimals, p.target, p.units, p.held_units, p.status, p.payment_id, p.deposit_id, p.intent_id, p.reason,"
    " p.error, p.waits_for, p.tx_id, p.created_at, p.updated_at, p.broadcast_at, p.finished_at,"
    " (SELECT b.batch_id FROM payout_batches b WHERE b.id = p.batch_id) AS batch_id"
)
"""What ``payout_row`` reads, of a table that goes by ``p``."""

FEE = (
    "(SELECT sum(t.fee_paid) FROM outbound_slots s JOIN outbound_txs t ON t.slot_id = s.id"
    " WHERE s.intent_id = p.intent_id) AS fee_paid"
)
"""What all transactions of a payout have cost, replaced and cancelling ones included, in the native coin."""


class PayoutRow(Struct, frozen=True, kw_only=True):
    """One transfer to somebody. ``held_units`` of its units were taken from held, the others from available.

    Names in ``_row`` are of the database alone; ``batch_id`` is public. ``fee`` is in the native coin's units.
    """

    row: int
    payout_id: str
    kind: Kind
    project_row: int
    merchant_row: int
    mode: str
    chain: str
    scope: int
    token: str
    contract: str | None
    decimals: int
    target: str
    units: Units
    held_units: Units
    status: Status
    batch_id: str | None
    payment_row: int | None
    deposit_row: int | None
    intent_row: int | None
    reason: str | None
    error: str | None
    waits_for: str | None
    tx_id: str | None
    created_at: datetime
    updated_at: datetime
    broadcast_at: datetime | None
    finished_at: datetime | None
    fee: Units | None = None

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what is sent."""
        return Account(self.merchant_row, asset_key(self.chain, self.contract), purpose)


def payout_row(row: Row[Any]) -> PayoutRow:
    """Read a row of ``COLUMNS``, and of ``FEE`` where it was asked for."""
    fee = getattr(row, "fee_paid", None)
    return PayoutRow(
        row=row.id,
        payout_id=row.payout_id,
        kind=Kind(row.kind),
        project_row=row.project_id,
        merchant_row=row.merchant_id,
        mode=row.mode,
        chain=row.chain,
        scope=row.scope,
        token=row.token,
        contract=row.contract,
        decimals=row.decimals,
        target=row.target,
        units=Units(int(row.units)),
        held_units=Units(int(row.held_units)),
        status=Status(row.status),
        batch_id=row.batch_id,
        payment_row=row.payment_id,
        deposit_row=row.deposit_id,
        intent_row=row.intent_id,
        reason=row.reason,
        error=row.error,
        waits_for=row.waits_for,
        tx_id=row.tx_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        broadcast_at=row.broadcast_at,
        finished_at=row.finished_at,
        fee=None if fee is None else Units(int(fee)),
    )


async def lock_by_intents(conn: AsyncConnection, intent_rows: Sequence[int]) -> dict[int, PayoutRow]:
    """Return payouts by the rows of their intents, locked in id order until the transaction ends."""
    rows = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM payouts p WHERE p.intent_id = ANY($1::bigint[]) ORDER BY p.id FOR NO KEY UPDATE OF p",  # noqa: S608  constants
        (list(intent_rows),),
    )
    return {row.intent_id: payout_row(row) for row in rows}
