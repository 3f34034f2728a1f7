"""Locks for whoever decides about money that came in on it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Head

from .rows import COLUMNS, DepositRow, deposit_row


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
