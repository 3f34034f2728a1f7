"""What becomes of a sweep is told to the collections that went with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units

from . import settled_store, sweep_store
from .outcomes import Moment, Outcomes, QuietOutcomes, Sent
from .rows import IntentRow

SWEEP = "sweep"
SWEEP_FAILED = "sweep_failed"
"""Why a collection waits that goes the plain way now."""


class SweepOutcomes(QuietOutcomes):
    """What a sweep does when something happens to it: what its collections do. Its fee is the gas station's."""

    def __init__(self, collections: Outcomes) -> None:
        """Tell these of the collections."""
        self._collections = collections

    async def on_broadcast(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Tell the collections."""
        _, told = await _collections(conn, sent, "sending")
        await self._collections.on_broadcast(conn, told, moment)

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Finish the collections, each with its share of the fee."""
        intents, told = await _collections(conn, sent, "sending")
        await settled_store.finish(conn, intents, "done", None, moment.now)
        await self._collections.on_final(conn, told, moment)

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Let the collections wait again: none of them has happened, and the sweep never will."""
        intents, _ = await _collections(conn, sent, "sending")
        await sweep_store.set_state(conn, intents, "waiting", reason=SWEEP_FAILED, now=moment.now)

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Put the collections on their way again."""
        intents, told = await _collections(conn, sent, "done")
        await sweep_store.set_state(conn, intents, "sending", reason=None, now=moment.now)
        await self._collections.on_undone(conn, told, moment)


async def _collections(
    conn: AsyncConnection, sweeps: Sequence[Sent], state: str
) -> tuple[Sequence[IntentRow], Sequence[Sent]]:
    by_row = {one.intent_row: one for one in sweeps}
    found = await sweep_store.swept(conn, list(by_row), state)
    counts = Counter(sweep_row for sweep_row, _ in found)
    told = []
    for sweep_row, intent in found:
        sweep = by_row[sweep_row]
        fee = None if sweep.fee is None else Units(sweep.fee // counts[sweep_row])
        told.append(structs.replace(intent.sent, tx_id=sweep.tx_id, fee=fee, incarnation=sweep.incarnation))
    return [intent for _, intent in found], told
