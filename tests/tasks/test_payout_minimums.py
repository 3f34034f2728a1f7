"""The worker derives the least payout of every chain that it is connected to."""

from __future__ import annotations

import asyncio

from cambist.services.addresses.account_keys import register_gas_stations
from cambist.services.payouts import minimums
from cambist.services.platform import PlatformSettings
from cambist_tasks.crons import CRONS, CronRunner


async def test_the_recurring_job_derives_them_once_when_two_workers_run_it(worker_gateway):
    gateway = worker_gateway
    async with gateway.db.transaction() as conn:
        await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
    runners = [CronRunner(gateway, name) for name in ("one", "two")]
    (cron,) = [cron for cron in CRONS if cron.name == "payout_minimums"]
    await asyncio.gather(*(runner.run(cron, gateway.clock.now()) for runner in runners))
    assert sum(runner.states[cron.name].succeeded for runner in runners) == 1
    async with gateway.db.autocommit() as conn:
        found = await minimums.list_in_force(conn, PlatformSettings(), gateway.clock.now())
    assert {one.chain for one in found} == set(gateway.chains)
