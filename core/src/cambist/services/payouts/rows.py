"""A payout as it is stored, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Purpose, asset_key

COLUMNS = (
    "p.id, p.payout_id, p.kind, p.project_pk, p.merchant_pk, p.mode, p.chain, p.scope, p.token, p.contract,"
    " p.decimals, p.to_address, p.units, p.held_units, p.status, p.payment_pk, p.deposit_pk, p.intent_pk, p.reason,"
    " p.error, p.waits_for, p.tx_id, p.created_at, p.updated_at, p.broadcast_at, p.finished_at,"
    " (SELECT b.batch_id FROM payout_batches b WHERE b.id = p.batch_pk) AS batch_id"
)
"""What ``payout_row`` reads, of a table that goes by ``p``."""

FEE = (
    "(SELECT sum(t.fee_paid) FROM outbound_slots s JOIN outbound_txs t ON t.slot_pk = s.id"
    " WHERE s.intent_pk = p.intent_pk) AS fee_paid"
)
"""What all transactions of a payout have cost, replaced and cancelling ones included, in the native coin."""


class PayoutRow(Struct, frozen=True, kw_only=True):
    """One transfer to somebody. ``held_units`` of its units were taken from held, the others from available.

    Names in ``_pk`` are of the database alone; ``batch_id`` is public. ``fee`` is in the native coin's units.
    """

    pk: int
    payout_id: str
    kind: IntentKind
    project_pk: int
    merchant_pk: int
    mode: str
    chain: str
    scope: int
    token: str
    contract: str | None
    decimals: int
    to_address: str
    units: Units
    held_units: Units
    status: Status
    batch_id: str | None
    payment_pk: int | None
    deposit_pk: int | None
    intent_pk: int | None
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
        return Account(self.merchant_pk, asset_key(self.chain, self.contract), purpose)


def payout_row(row: Row[Any]) -> PayoutRow:
    """Read a row of ``COLUMNS``, and of ``FEE`` where it was asked for."""
    fee = getattr(row, "fee_paid", None)
    return PayoutRow(
        pk=row.id,
        payout_id=row.payout_id,
        kind=IntentKind(row.kind),
        project_pk=row.project_pk,
        merchant_pk=row.merchant_pk,
        mode=row.mode,
        chain=row.chain,
        scope=row.scope,
        token=row.token,
        contract=row.contract,
        decimals=row.decimals,
        to_address=row.to_address,
        units=Units(int(row.units)),
        held_units=Units(int(row.held_units)),
        status=Status(row.status),
        batch_id=row.batch_id,
        payment_pk=row.payment_pk,
        deposit_pk=row.deposit_pk,
        intent_pk=row.intent_pk,
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


async def lock_by_intents(conn: AsyncConnection, intent_pks: Sequence[int]) -> dict[int, PayoutRow]:
    """Return payouts by the primary keys of their intents, locked in id order until the transaction ends."""
    rows = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM payouts p WHERE p.intent_pk = ANY($1::bigint[]) ORDER BY p.id FOR NO KEY UPDATE OF p",  # noqa: S608  constants
        (list(intent_pks),),
    )
    return {row.intent_pk: payout_row(row) for row in rows}
