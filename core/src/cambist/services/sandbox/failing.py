"""Payouts that fail because a test wants them to: their transaction is mined, and reverts."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout, SandboxTransfer
from cambist.domain.payouts import FINISHED
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.payouts.rows import COLUMNS, PayoutRow, payout_row


async def chain_of(conn: AsyncConnection, project_pk: int, payout_id: str) -> str:
    """Return on which chain the project sends it."""
    wanted = Payout.payout_id == payout_id, Payout.project_pk == project_pk
    chain = await conn.scalar(select(Payout.chain).where(*wanted))
    if chain is None:
        raise NotFoundError("PAYOUT_NOT_FOUND", "There is no such payout.")
    return chain


async def fail(conn: AsyncConnection, project_pk: int, payout_id: str) -> PayoutRow:
    """Have a payout revert when it is mined, also where it waits to be mined again. The tip of its chain is locked."""
    wanted = Payout.payout_id == payout_id, Payout.project_pk == project_pk
    locked = await conn.execute(select(*COLUMNS).where(*wanted).with_for_update(key_share=True))
    payout = payout_row(locked.one())
    sent = (
        SandboxTransfer.project_pk == payout.scope,
        SandboxTransfer.chain == payout.chain,
        SandboxTransfer.tx_id == payout.tx_id,
    )
    mined = await conn.scalar(select(SandboxTransfer.id).where(*sent, SandboxTransfer.height.is_not(None)).limit(1))
    if payout.status in FINISHED or mined is not None:
        raise ConflictError("PAYOUT_ALREADY_MINED", "It is mined already; only a reorganization makes it wait again.")
    await conn.execute(update(Payout).where(Payout.id == payout.pk).values(sandbox_fails=True))
    await conn.execute(update(SandboxTransfer).where(*sent).values(reverts=True))
    return payout
