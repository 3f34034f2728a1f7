"""Gaps in a sender's sequence are filled: what stands behind one can never be mined.

None of ours leaves one. They come from nodes that counted too many, and from reorgs that took away what was not ours.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Units

from . import place_store
from .desk import Desk
from .intents import NewIntent, is_coming, submit
from .rows import OwnPath

REPAIR = "repair"
REPAIRS_MAX = 20
REPAIR_PRIORITY = 0


async def mend(conn: AsyncConnection, desk: Desk, sender: OwnPath, mined: int, first: int) -> int:
    """Ask for a repair of each gap between what is mined and the first that waits; return how many are asked for."""
    if await is_coming(conn, desk.site.info.id, desk.site.scope, sender.row, REPAIR):
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
