"""Finds payouts: one of a project's, or a page of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout, PayoutBatch
from cambist.db.structs import one_of
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.services.errors import NotFoundError
from cambist.services.paging import Page, read_page

from .rows import COLUMNS, FEE, PayoutRow, payout_row

# Refunds and withdrawals are read where they are made.
_KINDS = (IntentKind.PAYOUT, IntentKind.AUTO_PAYOUT)
_SELECT = select(*COLUMNS, FEE).where(Payout.kind.in_(_KINDS))


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
    filters = {Payout.status: status, Payout.chain: chain, Payout.token: token, PayoutBatch.batch_id: batch_id}
    listed = _SELECT.outerjoin(PayoutBatch, PayoutBatch.id == Payout.batch_pk).where(Payout.project_pk == project_pk)
    return await read_page(conn, listed, payout_row, newest=Payout.id, filters=filters, page=page, limit=limit)


async def find_payout(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    """Return one of the project's payouts."""
    found = await find_payouts(conn, project_pk, [payout_id])
    if payout_id not in found:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return found[payout_id]


async def find_payouts(conn: AsyncConnection, project_pk: int, payout_ids: Sequence[str]) -> dict[str, PayoutRow]:
    """Return those of the project's payouts that are there, by their ids."""
    asked = one_of(Payout.payout_id, payout_ids)
    rows = await conn.execute(_SELECT.where(asked, Payout.project_pk == project_pk))
    return {row.payout_id: payout_row(row) for row in rows}


async def payout_ids_of_batch(conn: AsyncConnection, batch_pk: int) -> Sequence[str]:
    """Return the ids of a batch's payouts in the order of their rows."""
    ids = await conn.scalars(select(Payout.payout_id).where(Payout.batch_pk == batch_pk).order_by(Payout.id))
    return ids.all()
