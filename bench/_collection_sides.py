"""Collecting deposits through the whole engine on anvil, one by one and swept: what left the gas station for it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from _servers import migrated_servers
from msgspec import Struct

from cambist.db.engine import connect
from cambist.settings import OutboundSettings
from cambist.testing.clock import ManualClock, seeded_ids

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.anvil_treasury import AnvilTreasury, anvil_treasury  # the tests' own, beside bench/

GWEI = 10**9
BASE_FEE = 10 * GWEI
TIP_GWEI = "0.1"
PAID = BASE_FEE + GWEI // 10
ONE = 10**6


class Cost(Struct, frozen=True, kw_only=True):
    """All in gas for one deposit: what is paid divided by the price that every transaction here pays."""

    top_up: float
    transfer: float
    left_over: float

    @property
    def whole(self) -> float:
        """Return what left the gas station."""
        return self.top_up + self.transfer + self.left_over


class SteadyTreasury(AnvilTreasury):
    """On a chain whose base fee does not change."""

    async def mine(self, blocks: int = 1, *, seconds: float = 2) -> None:
        """Mine, each block at the same price."""
        for _ in range(blocks):
            await self.node.mine()
            await self.node.call("anvil_setNextBlockBaseFeePerGas", [hex(BASE_FEE)])
        self.clock.advance(seconds)
        await self.poll()


def measure(count: int, *, swept: bool) -> Cost:
    """Have so many deposits collected, all there is, and return what one cost."""
    with migrated_servers() as (database_url, _), tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(database_url, Path(folder), count, swept=swept))


async def _measure(database_url: str, folder: Path, count: int, *, swept: bool) -> Cost:
    settings = OutboundSettings(collect_interval_ms=100, in_flight_max=100)
    fees = {"tip_min_gwei": TIP_GWEI, "tip_max_gwei": TIP_GWEI}
    database = connect(database_url, application_name="cambist-bench", pool_size=5, pool_overflow=20)
    try:
        async with anvil_treasury(
            database, ManualClock(), seeded_ids(0), folder, artifact="Tethered", settings=settings,
            kind=SteadyTreasury, arguments=("--base-fee", str(BASE_FEE)), **fees,
        ) as treasury:  # fmt: skip
            await treasury.open()
            if swept:
                await treasury.batch()
            return await _collect(treasury, count)
    finally:
        await database.close()


async def _collect(treasury: AnvilTreasury, count: int) -> Cost:
    # The main wallet has had the token before, as it has in everyday life.
    await treasury.pay("USDT", treasury.wallet.address, ONE)
    addresses = await treasury.receive_many("USDT", [1_000 * ONE] * count)
    before = await treasury.wei(treasury.station)
    await treasury.work(treasury.engine(), rounds=60)
    spent = before - await treasury.wei(treasury.station)
    left_over = sum([await treasury.wei(address) for address in addresses])
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * count
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == (1_000 * count + 1) * ONE
    await treasury.check_books()
    fees = await _fees(treasury)
    assert spent == sum(fees.values()) + left_over
    per_deposit = {kind: fee / PAID / count for kind, fee in fees.items()}
    return Cost(
        top_up=per_deposit.get("top_up", 0),
        transfer=per_deposit.get("collection", 0) + per_deposit.get("sweep", 0),
        left_over=left_over / PAID / count,
    )


async def _fees(treasury: AnvilTreasury) -> dict[str, int]:
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT i.kind, sum(t.fee_paid) AS fee FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk GROUP BY i.kind"
        )
        return {row.kind: int(row.fee) for row in rows}
