"""Auto-convert to its end: from available of one coin to available of the other, by the chains and the ledger."""

from __future__ import annotations

import pytest

from cambist.hints import Hints
from cambist.services import platform
from cambist.services.payouts import auto_convert
from tests.support.exchange_env import USDX, ExchangeEnv

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def rule(env, symbol, dest):
    env.used.add(dest.partition("/")[0])
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO coin_settings (merchant_pk, mode, chain, symbol, auto_convert_enabled,"
            " auto_convert_dest_chain, auto_convert_dest_token, auto_convert_project_pk, auto_convert_due_at,"
            " updated_at) VALUES ($1, 'live', 'memory', $2, true, $3, $4, $5, $6, $6)",
            (env.merchant, symbol, *dest.split("/"), env.project, env.clock.now()),
        )


async def run(env):
    env.clock.advance(61)
    return (await auto_convert.run(env.db, env.context, Hints(None))).started


async def newest(env):
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT txn_id FROM exchanges ORDER BY id DESC LIMIT 1")
        return found.scalar_one()


async def markup(env, **rules):
    patch = platform.PlatformPatch(exchanges=platform.ExchangePatch(**rules))
    async with env.db.transaction() as conn:
        await platform.save(conn, env.registry, patch, env.clock.now())


async def test_what_came_in_is_swapped_and_the_merchant_has_the_other_token(env):
    await env.opened(usdx=100 * USDX)
    await rule(env, "USDX", "memory/MEM")
    assert await run(env) == 1
    row = await env.go_on(await newest(env))
    assert (row.status, row.made_for) == ("succeeded", "auto")
    assert (await env.balance_of("memory", "USDX")).available == 0
    assert (await env.balance_of("memory", "MEM")).available == row.output_units > 0
    assert await env.events() == ["exchange.succeeded"]
    assert await run(env) == 0
    await env.check_all_books()


async def test_across_chains_the_markup_stays_with_the_platform(env):
    await markup(env, bridge_fee_bps=10, auto_convert_markup_bps=40)
    await env.opened(usdx=100 * USDX)
    await rule(env, "USDX", "other/USDX")
    assert await run(env) == 1
    txn_id = await newest(env)
    row = await env.go_on(txn_id, until="filling")
    assert row.fee_units == 100 * USDX * 50 // 10_000
    await env.mine(4)
    await env.tick()
    (deposit,) = env.routers["memory"].deposits()
    env.other.fill(deposit)
    row = await env.go_on(txn_id)
    assert row.status == "succeeded"
    assert (await env.balance_of("memory", "USDX")).available == 0
    assert (await env.balance_of("other", "USDX")).available == row.output_units > 0
    await env.check_all_books()


async def test_after_one_that_failed_all_is_back_and_the_next_one_succeeds_later(env):
    await env.opened(usdx=100 * USDX)
    await rule(env, "USDX", "memory/MEM")
    assert await run(env) == 1
    env.swap_service.down = True
    row = await env.go_on(await newest(env), seconds=100)
    assert row.status == "failed"
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX
    env.swap_service.down = False
    assert await run(env) == 0, "it is too early"
    env.clock.advance(1_800)
    assert await run(env) == 1
    assert (await env.go_on(await newest(env))).status == "succeeded"
    await env.check_all_books()
