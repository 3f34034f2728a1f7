"""An operator who pauses sending for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cambist.services import chain_pauses
from cambist.services.chain_pauses import Pausable, Pause
from tests.support.treasury import Treasury


@asynccontextmanager
async def paused(treasury: Treasury) -> AsyncIterator[None]:
    """Have an operator pause sending until the block ends."""
    what, now = Pausable.SENDING, treasury.clock.now()
    one = Pause(chain=treasury.info.id, what=what, reason="its nodes lie", paused_by="op_1", paused_at=now)
    async with treasury.db.transaction() as conn:
        await chain_pauses.pause(conn, treasury.registry, one)
    treasury.pauses.forget()
    yield
    async with treasury.db.transaction() as conn:
        await chain_pauses.resume(conn, treasury.info.id, what)
    treasury.pauses.forget()
