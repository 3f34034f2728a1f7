"""Chains beside books while exchanges are under way: at every moment the two agree, money between chains included."""

import pytest

from cambist.services.recovery.reconcile import reconcile_chain
from tests.support.exchange_env import MEM, USDX, ExchangeEnv

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def agreed(env):
    """Return what is between two chains, by chain, once both chains agree with their books."""
    found = {}
    for name, chain in env.routers.items():

        async def pause():
            await env.poll()

        report = await reconcile_chain(env.db, chain, pause=pause)
        assert not report.differences, report.differences
        between = [line.booked for line in report.groups if line.group == "between_chains"]
        found[name] = between[0] if between else "0"
    return found


async def test_books_and_chains_agree_after_every_block_of_a_swap(env):
    env.used.add("other")
    await env.opened(usdx=100 * USDX, mem=5 * MEM)
    txn_ids = [
        await env.ask("memory/USDX", 60 * USDX, "memory/MEM"),
        await env.ask("memory/MEM", MEM, "memory/USDX"),
    ]
    for _ in range(40):
        await env.tick()
        await agreed(env)
        if all([(await env.row(one)).step == "ended" for one in txn_ids]):
            break
        await env.mine()
    assert {(await env.row(one)).status for one in txn_ids} == {"succeeded"}


async def test_money_between_two_chains_is_counted_until_it_is_paid_out_or_given_back(env):
    env.bridge.fill_s = 120
    await env.opened(usdx=100 * USDX)
    filled, deposit = await env.bridged(60 * USDX)
    assert await agreed(env) == {"memory": "60", "other": "0"}
    unfilled, _ = await env.bridged(10 * USDX)
    assert await agreed(env) == {"memory": "70", "other": "0"}
    env.other.fill(deposit)
    await env.go_on(filled)
    assert await agreed(env) == {"memory": "10", "other": "0"}
    await env.go_on(unfilled, until="refunding", rounds=200)
    env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, 10 * USDX)
    await env.go_on(unfilled, seconds=70)
    assert await agreed(env) == {"memory": "0", "other": "0"}


async def test_a_ledger_that_says_something_else_than_the_bridges_is_told(env):
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged(60 * USDX)
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE exchanges SET is_closed = true WHERE txn_id = $1", (txn_id,))
    report = await reconcile_chain(env.db, env.routers["memory"], pause=env.poll)
    (line,) = report.differences
    assert (line.group, line.booked, line.difference) == ("between_chains", "60", "-60")


async def test_a_call_that_a_deep_reorg_took_back_is_no_difference(env):
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged(60 * USDX)
    env.chain.reorg(6)
    await env.mine()
    await env.tick()
    assert (await env.row(txn_id)).step == "sent"
    assert (await agreed(env))["memory"] == "0"
