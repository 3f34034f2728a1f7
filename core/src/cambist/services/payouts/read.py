"""Finds payouts: one of a project's, or a page of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Status
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_page

from .rows import COLUMNS, FEE, PayoutRow, payout_row

# Refunds and withdrawals are read where they are made.
_LISTED = (
    "FROM payouts p WHERE p.project_pk = $1 AND p.kind IN ('payout', 'auto_payout')"
    " AND ($2::text IS NULL OR p.status = $2) AND ($3::text IS NULL OR p.chain = $3)"
    " AND ($4::text IS NULL OR p.token = $4)"
    " AND ($5::text IS NULL OR p.batch_pk = (SELECT id FROM payout_batches WHERE batch_id = $5))"
)


async def list_payouts(  # noqa: PLR0913  filters and paging, each by name
    conn: AsyncConnection,
    project_pk: int,
    *,
    status: Status | None,
    chain: str | None,
    token: str | None,
    batch_id: str | None,
    page: int,
    limit: int,
) -> Page[PayoutRow]:
    """Return one page of a project's payouts."""
    filters = (project_pk, None if status is None else str(status), chain, token, batch_id)
    columns = f"{COLUMNS}, {FEE}"
    return await read_page(conn, columns, _LISTED, filters, payout_row, newest="p.id", page=page, limit=limit)


async def find_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    """Return one of the project's payouts."""
    found = await find_payouts(conn, project_pk, [payout_id])
    if payout_id not in found:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return found[payout_id]


async def find_payouts(conn: AsyncConnection, project_pk: int, payout_ids: Sequence[str]) -> dict[str, PayoutRow]:
    """Return those of the project's payouts that are there, by their ids."""
    rows = await conn.exec_driver_sql(
        f"SELECT {COLUMNS}, {FEE} FROM payouts p"  # noqa: S608  constants
        " WHERE p.payout_id = ANY($1::text[]) AND p.project_pk = $2 AND p.kind IN ('payout', 'auto_payout')",
        (list(payout_ids), project_pk),
    )
    return {row.payout_id: payout_row(row) for row in rows}


async def payout_ids_of_batch(conn: AsyncConnection, batch_pk: int) -> Sequence[str]:
    """Return the ids of a batch's payouts in the order of their rows."""
    rows = await conn.exec_driver_sql("SELECT payout_id FROM payouts WHERE batch_pk = $1 ORDER BY id", (batch_pk,))
    return [row.payout_id for row in rows]
