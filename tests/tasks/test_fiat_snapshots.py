"""The worker fills in what deposits to accounts were worth, where no price was there when they were seen."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

from cambist_tasks.crons import CRONS, CronRunner

DEPOSIT = """
INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, account_pk, matches,
    token, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, first_seen_at,
    detected_at, fiat_reason)
SELECT 'dep_' || n, 'memory', 0, 'tx' || n, '0', 'live', 1, 1, 1, true, 'usdx', 6, 1, 1, 'b', 0, $1, 1, $1, $1,
    'pending'
FROM generate_series(1, 1200) n
"""


async def test_the_recurring_job_fills_all_of_them_from_the_nearest_price(worker_gateway):
    gateway, now = worker_gateway, worker_gateway.clock.now()
    seen = now - timedelta(minutes=20)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
        await conn.exec_driver_sql(DEPOSIT, (seen,))
        for minutes, value in ((-30, 1), (-4, 2), (7, 3)):
            for currency in ("usd", "eur"):
                point = "INSERT INTO price_points VALUES ('USDX', $1, $2, $3::int, 'board')"
                await conn.exec_driver_sql(point, (currency, seen + timedelta(minutes=minutes), value))
    (cron,) = [cron for cron in CRONS if cron.name == "fiat_snapshots"]
    await asyncio.gather(*(CronRunner(gateway, name).run(cron, now) for name in ("one", "two")))
    async with gateway.db.autocommit() as conn:
        rows = (await conn.exec_driver_sql("SELECT fiat::text AS fiat, fiat_reason FROM deposits")).all()
    assert len(rows) == 1_200
    assert {row.fiat_reason for row in rows} == {None}
    assert {(currency, point["rate"]) for row in rows for currency, point in json.loads(row.fiat).items()} == {
        ("usd", "2"),
        ("eur", "2"),
    }
