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
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Purpose
from cambist.services.platform import load
from cambist.services.sending.handler import IntentHandler, IntentUpdate
from cambist.services.sending.reversible import Reversible, post_reversible

WALLET, DEPOSITS = Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS


class CollectionHandler(IntentHandler):
    """Collections: whose money it is does not change, only where it is."""

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Post that it is in the main wallet, and meter it."""
        await _post(conn, updates, back=False)
        settings = await load(conn)
        metered = [
            usage.Metered(
                merchant_pk=one.merchant_pk,
                mode=one.mode,
                operation=metered_as(one.kind),
                chain=one.chain,
                reference=one.reference,
            )
            for one in updates
            if one.merchant_pk is not None
        ]
        await usage.meter(conn, metered, settings, now)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:  # noqa: ARG002
        """Let its deposits be collected another time."""
        collected = one_of(Deposit.collection_pk, [one.intent_pk for one in updates])
        await conn.execute(update(Deposit).where(collected).values(collection_pk=None))

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:  # noqa: ARG002
        """Post that it is where it came from."""
        await _post(conn, updates, back=True)


async def _post(conn: AsyncConnection, updates: Sequence[IntentUpdate], *, back: bool) -> None:
    made = [Reversible.of(one, Movement(_account(one, WALLET), _account(one, DEPOSITS), one.units)) for one in updates]
    if made:
        await post_reversible(conn, updates[0].mode, made, back=back)


def _account(update: IntentUpdate, purpose: Purpose) -> Account:
    return Account(update.merchant_pk or PLATFORM, update.asset, purpose)
