"""Deposits on their way from one-time addresses to the merchant's main wallet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit
from cambist.db.structs import one_of
from cambist.domain.intents import metered_as
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import Movement, Purpose
from cambist.services.platform import load
from cambist.services.sending.handler import IntentUpdate, MovingHandler

WALLET, DEPOSITS = Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS


class CollectionHandler(MovingHandler):
    """Collections: whose money it is does not change, only where it is."""

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that it is in the main wallet, and meter it."""
        await super().on_final(conn, updates, now)
        settings = await load(conn)
        metered = [
            usage.Metered(one.merchant_pk, one.mode, metered_as(one.kind), one.chain, one.reference)
            for one in updates
            if one.merchant_pk is not None
        ]
        await usage.meter(conn, metered, settings, now)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:  # noqa: ARG002
        """Let its deposits be collected another time."""
        collected = one_of(Deposit.collection_pk, [one.intent_pk for one in updates])
        await conn.execute(update(Deposit).where(collected).values(collection_pk=None))

    async def moved(
        self,
        conn: AsyncConnection,  # noqa: ARG002
        updates: Sequence[IntentUpdate],
    ) -> Sequence[tuple[IntentUpdate, Movement]]:
        return [(one, Movement(one.account(WALLET), one.account(DEPOSITS), one.units)) for one in updates]
