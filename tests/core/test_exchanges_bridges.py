"""Bridges of a merchant's money: between two chains, paid out on the other, or back on their own."""

import asyncio
from datetime import timedelta

import pytest
from msgspec import structs
from sqlalchemy.exc import DBAPIError

from cambist.plugin import BridgeStatus
from cambist.services.exchanges.outputs import lock_cursors
from cambist.services.exchanges.rows import save_on
from cambist.services.exchanges.runner import CLAIM, claim_due
from cambist.services.exchanges.worker import later
from cambist.testing.memory.family import named_address
from tests.support.exchange_env import CHAINS, MEM, USDX, ExchangeEnv
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def test_a_bridge_is_between_two_chains_until_somebody_has_filled_it(env):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending) == (40 * USDX, 60 * USDX)
    await env.check_all_books()
    fill = env.other.fill(deposit)
    row = await env.go_on(txn_id)
    assert (row.status, row.dest_tx_id, row.output_units) == ("succeeded", fill, deposit.units_out)
    assert (await env.balance_of("other", "USDX")).available == deposit.units_out
    assert (await env.balance_of("memory", "USDX")).pending == 0
    assert await env.held("other", "USDX") == deposit.units_out
    assert await env.credits_used() == 150
    await env.check_all_books()


async def test_native_coin_is_bridged_and_its_fill_is_credited_by_the_balance_where_nobody_tells_of_it(env):
    env.other.tells_inner_coin = False
    await env.opened(mem=5 * MEM)
    txn_id, deposit = await env.bridged(2 * MEM, "MEM")
    env.other.fill(deposit)
    row = await env.go_on(txn_id)
    assert row.unseen_units == deposit.units_out
    assert (await env.balance_of("other", "MEM")).available == deposit.units_out
    await env.check_all_books()


async def test_a_bridge_whose_output_comes_is_looked_at_before_its_time(env):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    await later(env.follower, await env.row(txn_id), timedelta(minutes=5))
    assert await claim_due(env.follower) == []
    env.other.fill(deposit)
    await env.mine()
    (row,) = await claim_due(env.follower)
    assert row == await env.row(txn_id)
    assert row.due_at == env.clock.now() + CLAIM


async def test_what_is_decided_about_a_step_that_is_over_changes_nothing(env):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    filling, now = await env.row(txn_id), env.clock.now()
    assert await save_on(env.db, filling, now, searched_to=filling.searched_to)
    assert await env.row(txn_id) == filling
    env.other.fill(deposit)
    ended = await env.go_on(txn_id)
    assert not await save_on(env.db, filling, now, step="refunding", searched_to=None, due_at=now)
    assert await env.row(txn_id) == ended


async def test_a_fill_to_somebody_else_or_of_too_little_is_none(env):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    env.other.fill(deposit, recipient=named_address("thief"))
    for _ in range(6):
        await env.mine()
        await env.tick()
    assert (await env.row(txn_id)).status == "pending"


async def test_a_token_that_keeps_a_share_of_a_fill_brings_what_arrives_if_that_is_enough(env):
    env.other.skims_percent = 5
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    sent = deposit.units_out * 2
    env.other.fill(deposit, units=sent)
    row = await env.go_on(txn_id)
    assert (row.status, row.output_units) == ("succeeded", sent * 95 // 100)
    assert (await env.balance_of("other", "USDX")).available == row.output_units
    await env.check_all_books()


async def test_a_fill_of_which_too_little_arrives_is_told_to_the_operator_and_looked_at_again(env, clock):
    env.other.skims_percent = 5
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    env.other.fill(deposit)
    for _ in range(8):
        await env.mine()
        await env.tick()
    row = await env.row(txn_id)
    assert (row.status, row.step, env.exchange_alerts["output_unclear"]) == ("pending", "filling", 1)
    assert timedelta(minutes=9) < row.due_at - clock.now() <= timedelta(minutes=10)
    assert (await env.balance_of("other", "USDX")).available == 0
    await env.mine(seconds=601)
    await env.tick()
    assert env.exchange_alerts["output_unclear"] == 2


@pytest.mark.parametrize("waited_s, pause_s", [(0, 2), (240, 60)])
async def test_a_fill_is_looked_for_every_few_seconds_at_first_and_then_once_a_minute(env, clock, waited_s, pause_s):
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged()
    await env.mine(seconds=waited_s)
    await env.tick()
    row = await env.row(txn_id)
    assert (row.status, row.due_at - clock.now()) == ("pending", timedelta(seconds=pause_s))


async def test_what_the_provider_says_is_a_hint_and_the_chain_decides(env, monkeypatch):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()

    async def lie(*_):
        return BridgeStatus(state="filled", tx_id=deposit.tx_id)

    monkeypatch.setattr(env.bridge, "status", lie)
    for _ in range(8):
        await env.mine(seconds=70)
        await env.tick()
    assert (await env.row(txn_id)).step == "filling"

    async def other_lie(*_):
        return BridgeStatus(state="expired")

    monkeypatch.setattr(env.bridge, "status", other_lie)
    env.other.fill(deposit)
    assert (await env.go_on(txn_id, seconds=30)).status == "succeeded"


async def test_deposits_that_nobody_fills_come_back_by_one_transfer_and_each_is_credited_once(env):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    first, _ = await env.bridged(30 * USDX)
    second, _ = await env.bridged(50 * USDX)
    for txn_id in (first, second):
        await env.go_on(txn_id, until="refunding", rounds=200)
    env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, 80 * USDX)
    for txn_id in (first, second):
        row = await env.go_on(txn_id, seconds=70)
        assert (row.status, row.is_closed) == ("failed", True)
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending, balance.held) == (100 * USDX, 0, 0)
    await env.check_all_books()


@pytest.mark.parametrize("lag", [None, 6])
async def test_a_deposit_expires_as_soon_as_a_block_that_is_final_is_behind_its_deadline(env, lag):
    """Earlier blocks may still give way to others, which hold the fill. With ``lag`` the chain says what is final."""
    env.bridge.fill_s, env.other._finality_lag_blocks = 40, lag
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    if lag is not None:
        info = structs.replace(env.other.info, finality_required=True)
        env.follower = structs.replace(env.follower, infos={**env.follower.infos, "other": info})
    final, step = lag or env.other.info.confirmations, "filling"
    while step == "filling":
        await env.mine()
        await env.tick()
        async with env.other.view() as view:
            times = [(await view.block(env.other.height - depth)).time for depth in (0, final)]
        step = (await env.row(txn_id)).step
        assert (step == "refunding") == (times[1] > deposit.fill_deadline), times
    assert times[0] > times[1]


@pytest.mark.parametrize("way", [CHAINS, CHAINS[::-1]])
async def test_who_locks_the_cursors_of_two_chains_begins_with_the_same_one_whichever_way_the_bridge_goes(env, way):
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged()
    row = structs.replace(await env.row(txn_id), source_chain=way[0], dest_chain=way[1])
    locked = "SELECT FROM chain_cursors WHERE chain = $1 AND scope = 0 FOR NO KEY UPDATE NOWAIT"

    async def lock_both():
        async with env.db.transaction() as conn:
            await lock_cursors(conn, row)
            for chain in CHAINS:
                with pytest.raises(DBAPIError, match="could not obtain lock"):
                    async with env.db.transaction() as other:
                        await other.exec_driver_sql(locked, (chain,))

    async with env.db.transaction() as conn:
        await conn.exec_driver_sql(locked, ("memory",))
        locking = asyncio.create_task(lock_both())
        await waits_for_a_lock(conn, locking)
        # Whoever waits for the first one has none: otherwise two would wait for each other.
        await conn.exec_driver_sql(locked, ("other",))
    await locking


async def test_a_transfer_that_pays_one_deposit_back_ends_only_one(env):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_ids = [(await env.bridged(50 * USDX))[0] for _ in range(2)]
    for txn_id in txn_ids:
        await env.go_on(txn_id, until="refunding", rounds=200)
    env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, 50 * USDX)
    for _ in range(10):
        await env.mine(seconds=70)
        await env.tick()
    assert sorted([(await env.row(one)).status for one in txn_ids]) == ["failed", "pending"]
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending) == (50 * USDX, 50 * USDX)
    await env.check_all_books()


async def test_a_fill_that_a_reorg_brings_while_the_refund_is_looked_for_ends_it(env, monkeypatch):
    """It was filled in time in the blocks that there are now: nothing will ever pay it back."""
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    await env.go_on(txn_id, until="refunding", rounds=200)
    env.other.reorg(6)
    fill = env.other.fill(deposit)

    async def filled(*_):
        return BridgeStatus(state="filled", tx_id=fill)

    monkeypatch.setattr(env.bridge, "status", filled)
    row = await env.go_on(txn_id, seconds=70)
    assert (row.status, row.dest_tx_id, row.is_closed) == ("succeeded", fill, True)
    assert (await env.balance_of("other", "USDX")).available == deposit.units_out
    assert (await env.balance_of("memory", "USDX")).pending == 0
    await env.check_all_books()


async def test_who_says_without_a_fill_that_it_is_filled_keeps_nobody_from_the_refund(env, monkeypatch):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    await env.go_on(txn_id, until="refunding", rounds=200)

    async def lie(*_):
        return BridgeStatus(state="filled", tx_id=deposit.tx_id)

    monkeypatch.setattr(env.bridge, "status", lie)
    for _ in range(4):
        await env.mine(seconds=70)
        await env.tick()
    assert (await env.row(txn_id)).step == "refunding"
    env.chain.pay_back(env.asset_of("memory", "USDX").token.contract, env.wallet.address, deposit.units)
    assert (await env.go_on(txn_id, seconds=70)).status == "failed"
    await env.check_all_books()


async def test_a_reorg_of_the_fill_takes_the_credit_back_until_it_is_filled_again(env):
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    env.other.fill(deposit)
    await env.go_on(txn_id)
    env.other.reorg(6)
    await env.mine()
    await env.tick()
    row = await env.row(txn_id)
    assert (row.status, row.step) == ("pending", "filling")
    assert (await env.balance_of("other", "USDX")).available == 0
    assert (await env.balance_of("memory", "USDX")).pending == 60 * USDX
    env.other.fill(deposit)
    assert (await env.go_on(txn_id)).status == "succeeded"
    assert (await env.balance_of("other", "USDX")).available == deposit.units_out
    await env.check_all_books()


async def test_a_reorg_of_a_bridges_deposit_begins_it_anew(env):
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged()
    env.chain.reorg(6)
    await env.mine()
    await env.tick()
    assert (await env.row(txn_id)).step == "sent"
    row = await env.go_on(txn_id, until="filling")
    await env.tick()
    deposit = env.routers["memory"].deposits()[-1]
    env.other.fill(deposit)
    assert (await env.go_on(txn_id)).status == "succeeded"
    assert row.tx_id == deposit.tx_id
    await env.check_all_books()


async def test_the_platforms_fee_is_told_to_the_provider_of_a_swap_and_kept_of_a_bridge(env):
    await env.set(exchanges={"swapFeeBps": 50, "bridgeFeeBps": 100})
    await env.opened(usdx=100 * USDX)
    swapped = await env.row(await env.ask("memory/USDX", 30 * USDX, "memory/DAIX"))
    assert (swapped.fee_bps, swapped.fee_units) == (50, 0)
    assert swapped.quoted_units == 30 * 10**18 * (10_000 - 80) // 10_000
    txn_id, deposit = await env.bridged()
    row = await env.row(txn_id)
    assert (row.fee_units, deposit.units) == (600_000, 60 * USDX - 600_000)
    env.other.fill(deposit)
    await env.go_on(txn_id)
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT purpose, balance FROM ledger_accounts WHERE asset = $1 AND purpose IN ('float', 'float_wallet')",
            (env.asset("USDX"),),
        )
        assert {one.purpose: int(one.balance) for one in found} == {"float": 600_000, "float_wallet": -600_000}
    await env.check_all_books()
