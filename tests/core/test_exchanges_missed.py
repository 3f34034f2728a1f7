"""Exchanges whose traces a node does not tell at once, or which come in other blocks than were expected."""

from datetime import timedelta

import pytest
from msgspec import structs

from cambist.plugin import SpanTooWideError
from cambist.services.exchanges import refunding
from cambist_tasks.exchanges import FOLLOW_TIMEOUT_S
from tests.support.exchange_env import USDX, ExchangeEnv

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def test_a_refund_whose_receipt_a_node_does_not_tell_at_once_is_claimed_then(env, monkeypatch):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged(50 * USDX)
    await env.go_on(txn_id, until="refunding", rounds=200)

    async def unknown(_):
        return None

    with monkeypatch.context() as patch:
        patch.setattr(env.chain, "receipt", unknown)
        env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, deposit.units)
        for _ in range(8):
            await env.mine(seconds=70)
            await env.tick()
    assert (await env.go_on(txn_id, seconds=70)).status == "failed"
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX
    await env.check_all_books()


async def test_a_refund_that_does_not_come_is_told_to_the_operator_and_still_claimed_when_it_does(env, monkeypatch):
    """As where the token refuses the wallet: then the bridge keeps it, and no transfer tells of anything."""
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged(50 * USDX)
    await env.go_on(txn_id, until="refunding", rounds=200)
    await env.mine(seconds=70)
    await env.tick()
    assert env.exchange_alerts["refund_late"] == 0
    monkeypatch.setattr(refunding, "LATE", timedelta(seconds=1))
    for times in (1, 1, 2):
        await env.mine(seconds=310)
        await env.tick()
        assert ((await env.row(txn_id)).step, env.exchange_alerts["refund_late"]) == ("refunding", times)
    env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, deposit.units)
    assert (await env.go_on(txn_id, seconds=310)).status == "failed"
    await env.check_all_books()


async def check_filled(env, txn_id):
    """Expect the deposit to be read by the number that it has by now, and its fill to end the bridge."""
    await env.mine()
    await env.tick()
    (deposit,) = env.routers["memory"].deposits()
    assert (await env.row(txn_id)).bridge_deposit == deposit
    env.other.fill(deposit)
    assert (await env.go_on(txn_id)).status == "succeeded"
    await env.check_all_books()


async def test_a_deposit_is_read_from_the_block_that_its_call_is_final_in_and_no_earlier_one(env, monkeypatch):
    """Mined anew it has another number; a node that is behind tells of the block from before the reorg."""
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "other/USDX")
    await env.go_on(txn_id, until="sent")
    told = env.chain.receipt

    async def from_before(tx_id):
        now = await told(tx_id)
        (log,) = now.logs
        data = log.data.replace(b'"deposit_id":"', b'"deposit_id":"0')
        block = structs.replace(now.block, hash="f" * 64)
        return structs.replace(now, block=block, logs=(structs.replace(log, data=data),))

    with monkeypatch.context() as patch:
        patch.setattr(env.chain, "receipt", from_before)
        await env.go_on(txn_id, until="filling")
    await check_filled(env, txn_id)


@pytest.mark.parametrize("new_blocks", [1, 2])
async def test_a_deposit_is_read_whose_call_was_mined_anew_while_the_gateway_was_away_for_long(env, new_blocks):
    """At another height than before, the call is final by its height alone, which the watcher has forgotten by then."""
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "other/USDX")
    row = await env.go_on(txn_id, until="sent")
    await env.mine()
    await env.tick()
    env.chain.reorg(1, mine_again=[row.tx_id], new_blocks=new_blocks)
    await env.mine(2 * env.chain.info.hashes_kept)
    await env.go_on(txn_id, until="filling")
    await check_filled(env, txn_id)


async def test_a_fill_in_a_block_that_took_the_place_of_one_from_before_the_call_is_found(env):
    await env.opened(usdx=100 * USDX)
    await env.mine(6)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "other/USDX")
    for _ in range(30):
        if env.routers["memory"].deposits():
            break
        await env.tick()
        env.chain.mine()
        env.clock.advance(2)
        await env.poll()
    (deposit,) = env.routers["memory"].deposits()
    height = env.other.height
    env.other.reorg(3, new_blocks=1)
    env.other.fill(deposit)
    env.other.mine()
    assert env.other.height < height
    row = await env.go_on(txn_id, seconds=30)
    assert row.status == "succeeded"
    assert (await env.balance_of("other", "USDX")).available == deposit.units_out
    await env.check_all_books()


@pytest.mark.parametrize("step", ["filling", "refunding"])
@pytest.mark.parametrize("answer_s", [5, 20, 40])
async def test_a_search_on_slow_nodes_ends_in_time_and_goes_on_from_there(env, monkeypatch, step, answer_s):
    """Also where it takes so long until it is known how few blocks they tell of at once."""
    env.bridge.fill_s = 600 if step == "filling" else 30
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    chain = env.other
    if step == "refunding":
        chain = env.chain
        await env.go_on(txn_id, until="refunding", rounds=200)
    chain.mine(60)
    if step == "filling":
        chain.fill(deposit)
    else:
        chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, deposit.units)
    logs = chain.logs

    async def slow(query):
        env.clock.advance(answer_s)
        if query.last - query.first > 3:
            raise SpanTooWideError("four blocks at most")
        return await logs(query)

    monkeypatch.setattr(chain, "logs", slow)
    for _ in range(60):
        await env.mine(seconds=60)
        begun = env.clock.monotonic()
        await env.tick()
        assert env.clock.monotonic() - begun < FOLLOW_TIMEOUT_S
    assert (await env.row(txn_id)).status == ("succeeded" if step == "filling" else "failed")
    await env.check_all_books()
