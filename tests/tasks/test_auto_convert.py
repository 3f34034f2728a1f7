"""The recurring job that converts coins, in a worker's process."""

from __future__ import annotations

import asyncio

import pytest

from cambist.bootstrap import exchange_context
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.payouts import auto_convert
from cambist_tasks.crons import CRONS, CronRunner
from cambist_tasks.jobs.conversions import convert_coins

CHAIN = "ethereum"
(CRON,) = [cron for cron in CRONS if cron.name == "auto_converts"]


@pytest.fixture
def plugin_tables():
    prices = {"static": {"USDC": {"usd": "1"}, "USDT": {"usd": "1"}}}
    return {"evm": {"chains": {CHAIN: {"simulated": True}}}, "prices": prices}


async def merchant_with_rule(gateway, number):
    """Insert a merchant whose sandbox project converts 100 USDC, which are available, into USDT."""
    token = gateway.registry.chains[CHAIN].token("USDC")
    now = gateway.clock.now()
    async with gateway.db.transaction() as conn:
        merchant = await conn.exec_driver_sql(
            "INSERT INTO merchants (merchant_id, email, name) VALUES ($1, $1 || '@example.com', 'Shop') RETURNING id",
            (f"mer_{number}",),
        )
        merchant_pk = merchant.scalar_one()
        project = await conn.exec_driver_sql(
            "INSERT INTO projects (project_id, merchant_pk, name, mode)"
            " VALUES ($1, $2, 'Shop', 'sandbox') RETURNING id",
            (f"prj_{number}", merchant_pk),
        )
        await conn.exec_driver_sql(
            "UPDATE account_keys SET merchant_pk = $1 WHERE account_index ="
            " (SELECT min(account_index) FROM account_keys WHERE merchant_pk IS NULL AND account_index > 0)",
            (merchant_pk,),
        )
        await conn.exec_driver_sql(
            "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, auto_convert_enabled,"
            " auto_convert_dest_chain, auto_convert_dest_token, auto_convert_project_pk, auto_convert_due_at,"
            " updated_at)"
            " VALUES ($1, 'sandbox', $2, 'USDC', true, $2, 'USDT', $3, $4, $4)",
            (merchant_pk, CHAIN, project.scalar_one(), now),
        )
        asset = asset_key(CHAIN, token.contract)
        accounts = [Account(merchant_pk, asset, purpose) for purpose in (Purpose.CUSTODY_WALLET, Purpose.AVAILABLE)]
        movements = [Movement(*accounts, 100 * 10**token.decimals)]
        await post(conn, "sandbox", [Posting(mode="sandbox", kind="test", reference=str(number), movements=movements)])


async def count(gateway):
    async with gateway.db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT count(*) FROM exchanges WHERE made_for = 'auto'")).scalar_one()


@pytest.mark.slow
async def test_two_workers_that_run_it_at_once_convert_each_coin_once(worker_gateway):
    gateway = worker_gateway
    for number in range(3):
        await merchant_with_rule(gateway, number)
    runners = [CronRunner(gateway, name) for name in ("one", "two")]
    await asyncio.gather(*(runner.run(CRON, gateway.clock.now()) for runner in runners))
    assert sum(runner.states[CRON.name].succeeded for runner in runners) == 1
    assert await count(gateway) == 3
    await asyncio.gather(*(convert_coins(gateway) for _ in range(4)))
    assert await count(gateway) == 3


async def test_a_run_looks_at_a_few_coins_and_says_that_there_are_more(worker_gateway, monkeypatch):
    monkeypatch.setattr(auto_convert, "COINS_MAX", 2)
    for number in range(3):
        await merchant_with_rule(worker_gateway, number)
    assert await convert_coins(worker_gateway) is True
    assert await count(worker_gateway) == 2
    assert await convert_coins(worker_gateway) is False
    assert await count(worker_gateway) == 3


async def test_a_workers_exchanges_are_asked_of_the_gateways_own_providers(worker_gateway):
    context = exchange_context(worker_gateway)
    assert (context.swaps, context.bridges) == (worker_gateway.swaps, worker_gateway.bridges)
    assert context.rates is worker_gateway.rates
    assert context.quote_timeout_ms == worker_gateway.settings.exchanges.quote_timeout_ms
