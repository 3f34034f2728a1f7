"""Payouts that fail because a test wants them to: their transaction is mined, and reverts."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import FINISHED
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.payouts.rows import COLUMNS, PayoutRow, payout_row


async def chain_of(conn: AsyncConnection, project_pk: int, payout_id: str) -> str:
    """Return on which chain the project sends it."""
    found = await conn.exec_driver_sql(
        "SELECT chain FROM payouts WHERE payout_id = $1 AND project_pk = $2", (payout_id, project_pk)
    )
    chain: str | None = found.scalar_one_or_none()
    if chain is None:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return chain


async def fail(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    """Have a payout revert when it is mined, also where it waits to be mined again. The tip of its chain is locked."""
    found = await conn.exec_driver_sql(
        f"SELECT {COLUMNS} FROM payouts p WHERE p.payout_id = $1 AND p.project_pk = $2 FOR NO KEY UPDATE",  # noqa: S608  constants
        (payout_id, project_pk),
    )
    payout = payout_row(found.one())
    key = (payout.scope, payout.chain, payout.tx_id)
    mined = await conn.exec_driver_sql(
        "SELECT 1 FROM sandbox_transfers WHERE project_pk = $1 AND chain = $2 AND tx_id = $3 AND height IS NOT NULL",
        key,
    )
    if payout.status in FINISHED or mined.first() is not None:
        raise ConflictError("PAYOUT_ALREADY_MINED", "It is mined already; only a reorganization makes it wait again.")
    await conn.exec_driver_sql("UPDATE payouts SET sandbox_fails = true WHERE id = $1", (payout.pk,))
    await conn.exec_driver_sql(
        "UPDATE sandbox_transfers SET reverts = true WHERE project_pk = $1 AND chain = $2 AND tx_id = $3", key
    )
    return payout
