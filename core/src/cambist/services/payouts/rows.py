"""A payout as it is stored, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Text, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import OutboundSlot, OutboundTx, Payout
from cambist.db.structs import AnyRow, columns_of, one_of, to_struct
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.services.accounting.ledger import Account, Purpose, asset_key


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


# As text, since a subquery of Core's finds its outer table in SELECT, but not in RETURNING.
_BATCH_ID = literal_column("(SELECT b.batch_id FROM payout_batches b WHERE b.id = payouts.batch_pk)", Text)
COLUMNS = columns_of(PayoutRow, Payout, batch_id=_BATCH_ID)

FEE = (
    select(func.sum(OutboundTx.fee_paid))
    .join(OutboundSlot, OutboundSlot.id == OutboundTx.slot_pk)
    .where(OutboundSlot.intent_pk == Payout.intent_pk)
    .correlate(Payout)
    .scalar_subquery()
    .label("fee")
)
"""What all transactions of a payout have cost, replaced and cancelling ones included, in the native coin."""


def payout_row(row: AnyRow) -> PayoutRow:
    """Read a row of ``COLUMNS``, and of ``FEE`` where it was asked for."""
    return to_struct(PayoutRow, row)


async def lock_by_intents(conn: AsyncConnection, intent_pks: Sequence[int]) -> dict[int, PayoutRow]:
    """Return payouts by the primary keys of their intents, locked in id order until the transaction ends."""
    rows = await conn.execute(
        select(*COLUMNS)
        .where(one_of(Payout.intent_pk, intent_pks))
        .order_by(Payout.id)
        .with_for_update(key_share=True, of=Payout)
    )
    return {row.intent_pk: payout_row(row) for row in rows}
