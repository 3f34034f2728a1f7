"""Gaps in a sender's sequence are filled: what stands behind one can never be mined.

None of ours leaves one. They come from nodes that counted too many, and from reorgs that took away what was not ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units

from . import place_store
from .desk import Desk
from .intents import NewIntent, submit
from .outcomes import Moment, Sent
from .rows import OwnPath

REPAIR = "repair"
REPAIRS_MAX = 20
REPAIR_PRIORITY = 0


class RepairOutcomes:
    """A transfer of the least amount to the sender itself: nothing comes of it but its fee."""

    async def on_waiting(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_broadcast(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""

    async def on_failed(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing: mined and failed, it has filled its place as well."""

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:
        """Do nothing."""


async def mend(conn: AsyncConnection, desk: Desk, sender: OwnPath, mined: int, first: int) -> int:
    """Ask for a repair of each gap between what is mined and the first that waits; return how many are asked for."""
    await conn.exec_driver_sql("SELECT FROM addresses WHERE id = $1 FOR NO KEY UPDATE", (sender.row,))
    coming = await conn.exec_driver_sql(
        "SELECT EXISTS (SELECT FROM outbound_intents WHERE recipient_address_id = $1 AND chain = $2 AND scope = $3"
        " AND kind = $4 AND state IN ('waiting', 'sending'))",
        (sender.row, *desk.site.key, REPAIR),
    )
    if coming.scalar_one():
        return 0
    gaps = await place_store.gaps(conn, desk.site, sender.row, mined, first, REPAIRS_MAX)
    repairs = [
        NewIntent(
            reference=f"{REPAIR}:{desk.ids.new('fix')}",
            kind=REPAIR,
            mode=desk.site.mode,
            chain=desk.site.info.id,
            scope=desk.site.scope,
            merchant_row=sender.merchant_row,
            source_row=sender.row,
            recipient_row=sender.row,
            target=sender.address,
            token=desk.site.info.native,
            units=Units(1),
            priority=REPAIR_PRIORITY,
        )
        for _ in gaps
    ]
    await submit(conn, repairs, desk.clock.now())
    return len(repairs)
