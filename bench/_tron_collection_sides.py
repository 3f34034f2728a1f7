"""Collecting USDT through the whole engine on a local TRON node: what left the gas station for it, and for what."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog
from _servers import migrated_servers
from msgspec import Struct

from cambist.db.engine import connect
from cambist.settings import OutboundSettings
from cambist.testing.clock import ManualClock, seeded_ids

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.tron_treasury import SUN, TronTreasury, tron_treasury  # the tests' own, beside bench/

ONE = 10**6
STATION_SUN = 900_000 * SUN
ROUNDS = 80


class Strategy(Struct, frozen=True, kw_only=True):
    """How energy is come by, and how much TRX the gas station has staked for each deposit of the day."""

    name: str
    energy: str
    staked_trx: int = 0


class Cost(Struct, frozen=True, kw_only=True):
    """All in sun for one deposit."""

    activation: float
    lending: float
    transfer: float
    left_over: float
    loans: int

    @property
    def whole(self) -> float:
        """Return what left the gas station for good."""
        return self.activation + self.lending + self.transfer + self.left_over


# Intents that wait for stake are logged again and again; the table shows how they ended.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def measure(count: int, strategy: Strategy) -> Cost:
    """Have so many deposits collected, all there is, and return what one cost."""
    with migrated_servers() as (database_url, _), tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(database_url, Path(folder), count, strategy))


async def _measure(database_url: str, folder: Path, count: int, strategy: Strategy) -> Cost:
    settings = OutboundSettings(collect_interval_ms=100, in_flight_max=100)
    database = connect(database_url, application_name="cambist-bench", pool_size=5, pool_overflow=20)
    try:
        async with tron_treasury(
            database, ManualClock(), seeded_ids(0), folder, settings=settings, energy=strategy.energy
        ) as treasury:
            await treasury.open(station=STATION_SUN)
            if strategy.staked_trx:
                await treasury.change_stake("stake", strategy.staked_trx * count * SUN)
            return await _collect(treasury, count)
    finally:
        await database.close()


async def _collect(treasury: TronTreasury, count: int) -> Cost:
    # The main wallet has had the token before, as it has in everyday life.
    await treasury.pay("USDT", treasury.wallet.address, ONE)
    addresses = await treasury.receive_many("USDT", [1_000 * ONE] * count)
    before, fees_before = await _owned(treasury), await _fees(treasury)
    await treasury.work(treasury.engine(), rounds=ROUNDS)
    spent = before - await _owned(treasury)
    left_over = sum(treasury.node.balance(address) for address in addresses)
    assert [await treasury.on_chain(address, "USDT") for address in addresses] == [0] * count
    await treasury.check_books()
    fees = {kind: fee - fees_before.get(kind, 0) for kind, fee in (await _fees(treasury)).items()}
    assert spent == sum(fees.values()) + left_over, (spent, fees, left_over)
    return Cost(
        activation=fees.get("top_up", 0) / count,
        lending=(fees.get("loan", 0) + fees.get("loan_return", 0)) / count,
        transfer=fees.get("collection", 0) / count,
        left_over=left_over / count,
        loans=await _loans(treasury),
    )


async def _owned(treasury: TronTreasury) -> int:
    """Return the gas station's sun, staked and not."""
    stake = await treasury.chain.stake(treasury.station)
    return treasury.node.balance(treasury.station) + stake.staked


async def _fees(treasury: TronTreasury) -> dict[str, int]:
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT i.kind, sum(t.fee_paid) AS fee FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN outbound_intents i ON i.id = s.intent_pk GROUP BY i.kind"
        )
        return {row.kind: int(row.fee or 0) for row in rows}


async def _loans(treasury: TronTreasury) -> int:
    async with treasury.db.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT count(*) FROM outbound_intents WHERE kind = 'loan' AND state = 'done'"
        )
        return int(found.scalar_one())
