"""The treasury on a chain in memory whose transactions expire, addresses are activated, and stakes can be lent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from cambist.settings import OutboundSettings
from cambist.testing.memory import MemoryLendingChain, MemoryRules
from tests.support.payment_env import registry
from tests.support.treasury import Treasury

LIFETIME_S = 60
RULES = MemoryRules(lifetime_s=LIFETIME_S, activation_price=10**6, stake_per_work=1_000)


class DatedTreasury(Treasury):
    """The same merchant, whose engine sends what expires."""

    chain: MemoryLendingChain

    async def outlive(self, blocks: int = 40) -> None:
        """Mine until all that was signed until now has expired, and that is final."""
        await self.mine(blocks)

    async def transactions(self, kind: str = "payout") -> list[tuple[str, str]]:
        """Return the slots' states and transactions of intents of a kind, oldest first."""
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT s.state, t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
                " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.kind = $1 ORDER BY t.id",
                (kind,),
            )
            return [tuple(row) for row in rows]

    async def intents(self, *kinds: str) -> list[tuple[str, str]]:
        """Return kind and state of the intents of these kinds, oldest first."""
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT kind, state FROM outbound_intents WHERE kind = ANY($1::text[]) ORDER BY id", (list(kinds),)
            )
            return [tuple(row) for row in rows]


@asynccontextmanager
async def dated_treasury(
    db,
    clock,
    ids,
    folder,
    *,
    kind: type[MemoryLendingChain] = MemoryLendingChain,
    rules: MemoryRules = RULES,
    **settings,
) -> AsyncIterator[DatedTreasury]:
    """Open a treasury on such a chain, with an empty stake."""
    known = registry()
    info = replace(known.chains["memory"], finality_required=True)
    outbound = OutboundSettings(rebroadcast_s=5, stuck_after_s=60, collect_interval_ms=100, **settings)
    chain = kind(info, rules=rules, finality_lag_blocks=info.confirmations)
    async with DatedTreasury(db, clock, ids, folder, chain=chain, chains=known, settings=outbound) as treasury:
        yield treasury
