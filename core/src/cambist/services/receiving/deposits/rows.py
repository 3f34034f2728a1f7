"""A deposit as it is stored: where its parts lie, and whose they are; locks for whoever decides about its money."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import Row, case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit, Payout, RefundPart
from cambist.plugin import Head, Units
from cambist.services.accounting.ledger import PLATFORM, Account, Purpose, asset_key

_CUSTODY = {
    "payment": Purpose.CUSTODY_DEPOSITS,
    "account": Purpose.CUSTODY_DEPOSITS,
    "wallet": Purpose.CUSTODY_WALLET,
    "gas": Purpose.CUSTODY_GAS,
}


class DepositRow(Struct, frozen=True, kw_only=True):
    """A deposit as it is stored, with its asset's name in the ledger. ``purpose`` is that of its address.

    ``sent_before_units`` of it went back to somebody in lives that a reorg has ended. Nobody has taken them out of
    what this life holds, yet they are nobody's to be sent once more. What another merchant got in that place, or in
    another token, is not of it.
    """

    id: int
    deposit_id: str
    merchant_pk: int
    purpose: str
    payment_pk: int | None
    account_pk: int | None
    chain: str
    token: str
    decimals: int
    matches: bool
    asset: str
    units: Units
    available_units: Units
    returned_units: Units
    released_units: Units
    resolution: str | None
    status: str
    incarnation: int
    height: int
    mined_at: datetime
    tx_id: str
    sent_before_units: Units

    @property
    def held_units(self) -> Units:
        """Return what of it is still held; nothing where it is not confirmed."""
        return Units(self.units - self.available_units - self.returned_units if self.status == "confirmed" else 0)

    @property
    def unsent_units(self) -> Units:
        """Return what of that was not sent back before: an order, an account or its sender may have it."""
        return Units(max(0, self.held_units - self.sent_before_units))

    @property
    def set_aside_units(self) -> Units:
        """Return what of it does not count for its order. What was sent back before can only be released."""
        aside = self.returned_units + max(self.released_units, self.sent_before_units)
        return Units(min(self.units, aside))

    @property
    def counts_for_account(self) -> bool:
        """Whether it came to an account and is what the account takes, or was accepted for it."""
        return self.account_pk is not None and (self.matches or self.resolution == "accepted")

    @property
    def custody(self) -> Account:
        """Return the account that says where on the chain it lies."""
        return self.account(_CUSTODY[self.purpose])

    @property
    def owed(self) -> Account:
        """Return the account that says whose it is before anything else is decided."""
        return self.account(Purpose.FLOAT if self.purpose == "gas" else Purpose.HELD)

    def account(self, purpose: Purpose) -> Account:
        return Account(self.merchant_pk, self.asset, purpose)

    @property
    def reference(self) -> str:
        """The life of the deposit that a posting is about: one that comes back is credited again, once."""
        return f"{self.deposit_id}:{self.incarnation}"


_SENT_BEFORE = (
    "CASE WHEN d.incarnation > 1 THEN (SELECT coalesce(sum(part.units), 0) FROM refund_parts part"
    " JOIN payouts sent ON sent.id = part.payout_pk WHERE part.deposit_pk = d.id AND part.incarnation < d.incarnation"
    " AND sent.merchant_pk = d.merchant_pk AND sent.contract IS NOT DISTINCT FROM d.contract) ELSE 0 END"
)
COLUMNS = (
    "d.id, d.deposit_id, d.merchant_pk, d.payment_pk, d.account_pk, d.chain, d.token, d.decimals, d.matches,"  # noqa: S608  constants
    " d.contract, d.units, d.available_units, d.returned_units, d.released_units, d.resolution, d.status,"
    " d.incarnation, d.height, d.mined_at, d.tx_id,"
    f" {_SENT_BEFORE} AS sent_before_units,"
    " (SELECT purpose FROM addresses WHERE addresses.id = d.address_pk) AS purpose"
)
"""What ``deposit_row`` reads, of a table that goes by ``d``. In a deposit's first life no refund is looked for."""

_PAYMENT_SET_ASIDE = (
    "CASE WHEN {payment}.refunded_units > 0 THEN (SELECT coalesce(sum("  # noqa: S608  constants
    f"least(d.units, d.returned_units + greatest(d.released_units, {_SENT_BEFORE}))), 0) FROM deposits d"
    " WHERE d.payment_pk = {payment}.id AND d.matches AND d.status <> 'orphaned') ELSE 0 END"
)


def set_aside_of(payment: str) -> str:
    """Return SQL for what a payment received and does not count, ``set_aside_units`` of its deposits.

    ``payment`` is what the table goes by. Deposits of which nothing was sent back are not looked at: what of an open
    payment's is set aside was.
    """
    return _PAYMENT_SET_ASIDE.replace("{payment}", payment)


_sent_before = (
    select(func.coalesce(func.sum(RefundPart.units), 0))
    .join(Payout, Payout.id == RefundPart.payout_pk)
    .where(RefundPart.deposit_pk == Deposit.id, RefundPart.incarnation < Deposit.incarnation)
    .where(Payout.merchant_pk == Deposit.merchant_pk, Payout.contract.is_not_distinct_from(Deposit.contract))
)
SENT_BEFORE_UNITS = case((Deposit.incarnation > 1, _sent_before.correlate(Deposit).scalar_subquery()), else_=0)
"""The same ``sent_before_units``, of a deposit that Core selects."""
SENT_BEFORE = SENT_BEFORE_UNITS > 0


def deposit_row(row: Row[Any]) -> DepositRow:
    return DepositRow(
        id=row.id,
        deposit_id=row.deposit_id,
        merchant_pk=row.merchant_pk or PLATFORM,
        purpose=row.purpose,
        payment_pk=row.payment_pk,
        account_pk=row.account_pk,
        chain=row.chain,
        token=row.token,
        decimals=row.decimals,
        matches=row.matches,
        asset=asset_key(row.chain, row.contract),
        units=Units(int(row.units)),
        available_units=Units(int(row.available_units)),
        returned_units=Units(int(row.returned_units)),
        released_units=Units(int(row.released_units)),
        resolution=row.resolution,
        status=row.status,
        incarnation=row.incarnation,
        height=row.height,
        mined_at=row.mined_at,
        tx_id=row.tx_id,
        sent_before_units=Units(int(row.sent_before_units)),
    )


async def lock_cursor(conn: AsyncConnection, chain: str, scope: int) -> Head | None:
    """Keep polls of the chain from being stored until the transaction ends; return how far it was read.

    A poll holds the cursor, then deposits, then payments, then accounts. Who decides about deposits starts at the
    same end, so that nobody waits in a circle. None where the chain was never read: then nothing has come in.
    """
    found = await conn.exec_driver_sql(
        "SELECT height, hash, finalized FROM chain_cursors WHERE chain = $1 AND scope = $2 FOR NO KEY UPDATE",
        (chain, scope),
    )
    row = found.one_or_none()
    return None if row is None else Head(height=row.height, hash=row.hash, finalized_height=row.finalized)


async def lock_payment_deposits(conn: AsyncConnection, payment_pk: int) -> Sequence[DepositRow]:
    """Return what a payment received for good, in chain order, locked."""
    rows = await conn.exec_driver_sql(
        f"WITH own AS (SELECT id FROM deposits WHERE payment_pk = $1 AND matches AND status = 'confirmed' ORDER BY id"  # noqa: S608  constants
        f" FOR UPDATE) SELECT {COLUMNS} FROM deposits d JOIN own USING (id) ORDER BY d.height, d.ordinal, d.id",
        (payment_pk,),
    )
    return [deposit_row(row) for row in rows]


async def lock_deposits(conn: AsyncConnection, deposit_pks: Sequence[int]) -> dict[int, DepositRow]:
    """Return deposits by their primary keys, locked."""
    found = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM deposits d WHERE d.id = ANY($1::bigint[]) ORDER BY d.id FOR UPDATE OF d",  # noqa: S608  constants
        (list(deposit_pks),),
    )
    return {row.id: deposit_row(row) for row in found}
