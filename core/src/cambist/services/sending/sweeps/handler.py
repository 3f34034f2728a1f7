"""What becomes of a sweep is told to the collections that went with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units
from cambist.services.sending import finality_store
from cambist.services.sending.handler import IntentHandler, IntentUpdate
from cambist.services.sending.rows import IntentRow

from . import sweep_store

SWEEP_FAILED = "sweep_failed"
"""Why a collection waits that goes the plain way now."""


class SweepHandler(IntentHandler):
    """What a sweep does when something happens to it: what its collections do. Its fee is the gas station's."""

    def __init__(self, collections: IntentHandler) -> None:
        self._collections = collections

    async def on_broadcast(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        _, told = await _collections(conn, updates, "sending")
        await self._collections.on_broadcast(conn, told, now)

    async def on_final(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Finish the collections, each with its share of the fee."""
        intents, told = await _collections(conn, updates, "sending")
        await finality_store.finish(conn, intents, "done", None, now)
        await self._collections.on_final(conn, told, now)

    async def on_failed(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        """Let the collections wait again: none of them has happened, and the sweep never will."""
        intents, _ = await _collections(conn, updates, "sending")
        await sweep_store.set_state(conn, intents, "waiting", reason=SWEEP_FAILED, now=now)

    async def on_undone(self, conn: AsyncConnection, updates: Sequence[IntentUpdate], now: datetime) -> None:
        intents, told = await _collections(conn, updates, "done")
        await sweep_store.set_state(conn, intents, "sending", reason=None, now=now)
        await self._collections.on_undone(conn, told, now)


async def _collections(
    conn: AsyncConnection, sweeps: Sequence[IntentUpdate], state: str
) -> tuple[Sequence[IntentRow], Sequence[IntentUpdate]]:
    by_pk = {one.intent_pk: one for one in sweeps}
    found = await sweep_store.swept(conn, list(by_pk), state)
    counts = Counter(sweep_pk for sweep_pk, _ in found)
    told = []
    for sweep_pk, intent in found:
        sweep = by_pk[sweep_pk]
        fee = None if sweep.fee is None else Units(sweep.fee // counts[sweep_pk])
        told.append(structs.replace(intent.update, tx_id=sweep.tx_id, fee=fee, incarnation=sweep.incarnation))
    return [intent for _, intent in found], told
