"""Exchanges where others are at fault: slow or broken providers, forgetful nodes, backups, shared blocks."""

import asyncio
from datetime import timedelta

import msgspec
import pytest
from msgspec import structs

from cambist.hints import Hints
from cambist.plugin import BridgeStatus, ChainError, Log, StateUnavailableError, Units
from cambist.services.exchanges import refunding, runner
from cambist.services.exchanges.runner import claim_due, follow_exchange
from cambist.services.exchanges.worker import later
from cambist.services.listing import Part
from cambist.services.sending.queue.listing import list_queue
from cambist.services.sending.queue.waits import Seen
from cambist.services.sending.suspended import wake
from cambist.testing.memory import Output
from cambist_tasks.exchanges import ExchangeFollower
from tests.core.test_auto_payout import suspend
from tests.support.exchange_chain import RouterTransaction
from tests.support.exchange_env import MEM, USDX, ExchangeEnv, PricedSwaps
from tests.support.exchanges import ROUTER
from tests.support.fair import RefundData, topic
from tests.support.gateway import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


def usdx(env):
    return env.asset_of("memory", "USDX").token.contract


async def both_end(env, txn_ids, *, rounds=80, blocks=1, seconds=2):
    for _ in range(rounds):
        await env.tick()
        rows = [await env.row(one) for one in txn_ids]
        if all(row.step == "ended" for row in rows):
            return rows
        await env.mine(blocks, seconds=seconds)
    raise AssertionError(rows)


async def test_coin_that_two_swaps_brought_in_one_block_is_credited_once(env):
    env.routers["memory"].tells_inner_coin = False
    await env.opened(usdx=100 * USDX, collected=False)
    await env.receive("DAIX", 100 * 10**18)
    txn_ids = [
        await env.ask("memory/USDX", 60 * USDX, "memory/MEM"),
        await env.ask("memory/DAIX", 50 * 10**18, "memory/MEM"),
    ]
    rows = await both_end(env, txn_ids)
    heights = {row.unseen_height for row in rows}
    assert len(heights) == 1
    came = sum(row.units_min + 7 for row in rows)
    assert sum(row.output_units for row in rows) == came
    assert (await env.balance_of("memory", "MEM")).available == came
    await env.check_all_books()


async def filled_beside_a_swap(env, *, is_final):
    """Fill a bridge in the block of a swap, both into coin of which nobody tells; return bridge, deposit and swap."""
    await env.opened(usdx=100 * USDX, mem=5 * MEM)
    first, deposit = await env.bridged()
    env.other.fill(deposit)
    await env.go_on(first)
    env.other.tells_inner_coin = False
    bridge = await env.ask("memory/MEM", 2 * MEM, "other/MEM")
    await env.go_on(bridge, until="sent")
    env.chain.mine(9 if is_final else 1)
    swap = await env.ask("other/USDX", 20 * USDX, "other/MEM")
    while (await env.row(swap)).step != "sent":
        await mine_other(env)
    if is_final:
        await later(env.follower, await env.row(bridge), timedelta(seconds=60))
    deposit = env.chain.deposits()[-1]
    env.other.fill(deposit)
    return bridge, deposit, swap


async def mine_other(env, blocks=1):
    env.other.mine(blocks)
    env.clock.advance(2)
    await env.poll()
    await env.tick()


@pytest.mark.parametrize("is_final", [True, False])
async def test_a_swap_leaves_a_bridge_the_coin_of_its_fill_in_the_same_block(env, is_final):
    bridge, deposit, swap = await filled_beside_a_swap(env, is_final=is_final)
    await mine_other(env, 9)
    await mine_other(env, 9)
    assert {(await env.row(one)).status for one in (bridge, swap)} == {"pending"}
    filled, swapped = await both_end(env, [bridge, swap])
    assert (filled.output_units, swapped.output_units) == (deposit.units_out, swapped.units_min + 7)
    assert filled.unseen_height == swapped.unseen_height
    await env.check_all_books()


async def test_a_swap_waits_no_longer_than_half_an_hour_for_a_bridge_that_nobody_follows(env, monkeypatch):
    bridge, _, swap = await filled_beside_a_swap(env, is_final=True)
    env.follower = structs.replace(env.follower, bridges=[])
    while not env.follower.changes:
        await mine_other(env)
    await pruned(env.other, monkeypatch)  # what was measured is kept
    row = await env.go_on(swap, seconds=100)
    assert row.status == "succeeded"
    assert timedelta(minutes=30) < row.finished_at - row.broadcast_at < timedelta(minutes=40)
    assert (await env.row(bridge)).step == "filling"


async def test_coin_of_a_fill_that_was_credited_by_the_balance_goes_with_its_block(env):
    env.other.tells_inner_coin = False
    await env.opened(mem=5 * MEM)
    txn_id, deposit = await env.bridged(2 * MEM, "MEM")
    env.other.fill(deposit)
    await env.go_on(txn_id)
    env.other.reorg(6)
    await env.mine()
    await env.tick()
    assert (await env.row(txn_id)).step == "filling"
    assert (await env.balance_of("other", "MEM")).available == 0
    env.other.fill(deposit)
    await env.go_on(txn_id)
    assert (await env.balance_of("other", "MEM")).available == deposit.units_out
    await env.check_all_books()


async def test_coin_that_is_told_after_a_reorg_is_not_credited_again(env):
    chain = env.routers["memory"]
    chain.tells_inner_coin = False
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    await env.go_on(txn_id)
    chain.tells_inner_coin = True
    chain.reorg(5)
    await env.mine()
    await env.tick()
    (row,) = await both_end(env, [txn_id])
    balance = await env.balance_of("memory", "MEM")
    assert (balance.available, balance.held) == (row.units_min + 7, 0)
    await env.check_all_books()


@pytest.mark.parametrize("first, second", [(50, 30), (30, 50), (20, 60)])
async def test_refunds_in_several_transfers_pay_back_all_deposits_that_they_cover(env, first, second):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_ids = [(await env.bridged(units * USDX))[0] for units in (30, 50)]
    for one in txn_ids:
        await env.go_on(one, until="refunding", rounds=200)
    env.chain.pay_back(usdx(env), env.wallet.address, first * USDX)
    await env.mine(1)
    env.chain.pay_back(usdx(env), env.wallet.address, second * USDX)
    rows = await both_end(env, txn_ids, seconds=70)
    assert [row.status for row in rows] == ["failed", "failed"]
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending, balance.held) == (100 * USDX, 0, 0)
    await env.check_all_books()


async def test_one_transaction_pays_back_deposits_of_two_tokens(env):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    await env.receive("DAIX", 100 * 10**18)
    txn_ids = [(await env.bridged(50 * USDX))[0], (await env.bridged(40 * 10**18, "DAIX"))[0]]
    for one in txn_ids:
        await env.go_on(one, until="refunding", rounds=200)
    daix, wallet = env.asset_of("memory", "DAIX").token.contract, env.wallet.address
    refunds = [(usdx(env), 50 * USDX), (daix, 40 * 10**18)]
    logs = tuple(
        Log(
            address=ROUTER,
            topics=(topic("refund"), topic(wallet)),
            data=msgspec.json.encode(RefundData(contract=contract, recipient=wallet, units=Units(units))),
            position=f"log:{number}",
        )
        for number, (contract, units) in enumerate(refunds)
    )
    paid = tuple(Output(contract=contract, recipient=wallet, amount=units) for contract, units in refunds)
    bundle = RouterTransaction(id="bundle", sender=env.chain.faucet, outputs=(), paid=paid, logs=logs)
    env.chain.pool.add(bundle)
    rows = await both_end(env, txn_ids, seconds=70)
    assert [row.status for row in rows] == ["failed", "failed"]
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX
    assert (await env.balance_of("memory", "DAIX")).available == 100 * 10**18


async def test_a_refund_whose_deposit_is_stored_later_is_claimed_then(env, monkeypatch):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged(50 * USDX)
    await env.go_on(txn_id, until="refunding", rounds=200)

    async def nothing_yet(*_):
        return []

    with monkeypatch.context() as patch:
        patch.setattr(refunding, "lock_arrived", nothing_yet)
        env.chain.pay_back(usdx(env), env.wallet.address, deposit.units)
        for _ in range(8):
            await env.mine(seconds=70)
            await env.tick()
        assert env.exchange_alerts["refund_not_stored"]
    assert (await env.go_on(txn_id, seconds=70)).status == "failed"


async def test_the_platforms_fee_of_a_bridge_that_came_back_comes_back_with_it(env):
    await env.set(exchanges={"bridgeFeeBps": 100})
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged(50 * USDX)
    await env.go_on(txn_id, until="refunding", rounds=200)
    env.chain.pay_back(usdx(env), env.wallet.address, deposit.units)
    await env.go_on(txn_id, seconds=70)
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending) == (100 * USDX, 0)
    await env.check_all_books()


async def test_a_filled_bridge_whose_deposit_a_reorg_threw_away_leaves_nothing_behind(env):
    await env.set(exchanges={"bridgeFeeBps": 100})
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged(50 * USDX)
    env.other.fill(deposit)
    await env.go_on(txn_id)
    env.chain.accounts.refuses = "never again"
    env.chain.reorg(8)
    for _ in range(30):
        await env.mine(seconds=20)
        await env.tick()
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending) == (100 * USDX - 500_000, 0)
    assert await env.allowance() == 0
    await env.check_all_books()


@pytest.mark.parametrize("is_followed", [False, True])
async def test_a_call_that_fails_after_a_reorg_leaves_no_allowance_though_its_turn_was_given_back(env, is_followed):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    assert (await env.go_on(txn_id)).status == "succeeded"
    txn_ids = [txn_id]
    if is_followed:
        txn_ids.append(await env.ask("memory/USDX", 20 * USDX, "memory/MEM"))
        for _ in range(3):
            await env.tick()
        assert (await env.row(txn_ids[1])).has_turn
    env.chain.accounts.refuses = "the price has moved"
    env.chain.reorg(5)
    await env.mine(3)
    rows = await both_end(env, txn_ids, rounds=200, seconds=20)
    assert {row.status for row in rows} == {"failed"}
    assert ({row.has_turn for row in rows}, await env.allowance()) == ({False}, 0)
    await env.check_all_books()


@pytest.mark.parametrize("how", ["raises", "says nothing", "names a transaction that is none"])
async def test_whatever_a_server_says_of_a_deposit_it_expires_when_the_chain_says_so(env, monkeypatch, how):
    env.bridge.fill_s = 60
    await env.opened(usdx=100 * USDX)
    txn_id, _ = await env.bridged(50 * USDX)
    receipt = env.other.receipt

    async def status(*_):
        if how == "raises":
            raise ValueError("garbage")
        return None if how == "says nothing" else BridgeStatus(state="filled", tx_id="nonsense")

    async def receipts(tx_id):
        if tx_id == "nonsense":
            raise ChainError("no hexadecimal number")
        return await receipt(tx_id)

    monkeypatch.setattr(env.bridge, "status", status)
    monkeypatch.setattr(env.other, "receipt", receipts)
    await env.go_on(txn_id, until="refunding", rounds=200, seconds=70)


async def test_a_fill_is_credited_while_the_source_chain_is_down(env, monkeypatch):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 50 * USDX, "other/USDX")
    await env.go_on(txn_id, until="filling")
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE exchanges SET has_turn = true")
    (deposit,) = env.routers["memory"].deposits()
    env.other.fill(deposit)

    async def down(*_):
        raise ChainError("down")

    monkeypatch.setattr(env.routers["memory"], "allowance", down)
    for _ in range(12):
        await env.mine(seconds=70)
        for engine in env.engines.values():
            await engine.tick()
        due = await claim_due(env.follower)
        await asyncio.gather(*(follow_exchange(env.follower, row) for row in due), return_exceptions=True)
    assert (await env.row(txn_id)).status == "succeeded"


async def pruned(chain, monkeypatch):
    """Have a node forget what was so at any height."""
    balance = chain.balance

    async def newest(address, token, at=None):
        if at is not None:
            raise StateUnavailableError("missing trie node")
        return await balance(address, token)

    monkeypatch.setattr(chain, "balance", newest)


async def test_a_node_without_a_past_leaves_a_swaps_coin_to_the_operator(env, monkeypatch):
    env.routers["memory"].tells_inner_coin = False
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    await env.go_on(txn_id, until="sent")
    with monkeypatch.context() as patch:
        await pruned(env.routers["memory"], patch)
        for _ in range(8):
            await env.mine(seconds=100)
            await env.tick()
        assert env.exchange_alerts["output_not_measured"] in {1, 2, 3}
    assert (await env.go_on(txn_id, seconds=100)).status == "succeeded"


async def test_where_no_node_knows_the_past_the_log_of_a_fill_says_how_much_coin_came(env, monkeypatch):
    env.other.tells_inner_coin = False
    await env.opened(mem=5 * MEM)
    txn_id, deposit = await env.bridged(2 * MEM, "MEM")
    with monkeypatch.context() as patch:
        await pruned(env.other, patch)
        env.other.fill(deposit)
        row = await env.go_on(txn_id, seconds=70)
    assert (row.status, row.output_units) == ("succeeded", deposit.units_out)
    await env.check_all_books()


async def test_who_waits_for_a_price_lets_others_of_the_token_go_first(env):
    await env.opened(usdx=100 * USDX)
    strict = await env.ask("memory/USDX", 10 * USDX, "memory/MEM", slippage_bps=1)
    env.swap_service.fee_bps = 200
    lax = await env.ask("memory/USDX", 10 * USDX, "memory/MEM", slippage_bps=500)
    assert (await env.go_on(lax, seconds=16)).status == "succeeded"
    assert (await env.row(strict)).status == "pending"


async def test_what_the_operator_switches_off_is_not_sent_any_more_and_given_back_in_time(env):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 10 * USDX, "memory/MEM")
    await env.set(exchanges={"providers": {"fair": False}})
    row = await env.go_on(txn_id, seconds=100)
    assert (row.status, row.tx_id) == ("failed", None)
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX


@pytest.mark.parametrize("asked", [False, True])
async def test_a_suspended_merchants_exchange_is_neither_allowed_nor_sent_and_goes_on_after_reinstating(env, asked):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 10 * USDX, "memory/MEM")
    while asked and (await env.row(txn_id)).waits_for != "call":
        await env.mine()
        await env.engines["memory"].tick()
    await suspend(env)
    for _ in range(10):
        await env.tick()
        await env.mine()
    row = await env.row(txn_id)
    assert (row.status, row.step, row.waits_for, row.approvals) == ("pending", "queued", "merchant_suspended", 0)
    await suspend(env, again=True)
    async with env.db.transaction() as conn:
        await wake(conn, row.merchant_pk, env.clock.now())
    assert (await env.go_on(txn_id)).status == "succeeded"
    await env.check_all_books()


async def test_a_deposit_that_would_be_away_for_years_is_not_made(env):
    env.bridge.fill_s = 3_600 * 24 * 365
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 10 * USDX, "other/USDX")
    row = await env.go_on(txn_id, seconds=100)
    assert (row.status, row.tx_id) == ("failed", None)
    assert env.exchange_alerts["call_differs"]


async def test_a_provider_that_never_answers_is_in_nobodys_way(env):
    class Slow(PricedSwaps):
        name = "slow"

        async def build(self, *_):
            await asyncio.sleep(3_600)

    class Fast(PricedSwaps):
        name = "fast"

    slow, fast = Slow(env.swap_service), Fast(env.swap_service)
    await env.opened(mem=50 * MEM)
    env.context = structs.replace(env.context, swaps=[slow])
    for _ in range(20):
        await env.ask("memory/MEM", MEM, "memory/USDX")
    env.context = structs.replace(env.context, swaps=[fast])
    txn_id = await env.ask("memory/MEM", MEM, "memory/USDX")
    follower = ExchangeFollower(structs.replace(env.follower, swaps=[slow, fast], build_timeout_s=3_600), Hints(None))
    for _ in range(60):
        for engine in env.engines.values():
            await engine.tick()
        await follower.tick()
        await asyncio.sleep(0.02)
        if (await env.row(txn_id)).step == "ended":
            break
        await env.mine()
    assert (await env.row(txn_id)).status == "succeeded"
    await killed(follower)


async def waits_for_call(env, txn_id):
    """Let the engine come to the exchange, and ask for its call."""
    while (await env.row(txn_id)).due_at > env.clock.now():
        await env.mine()
        for engine in env.engines.values():
            await engine.tick()


async def killed(follower):
    for task in follower._following:
        task.cancel()
    await asyncio.gather(*follower._following, return_exceptions=True)


async def test_who_looks_at_an_exchange_for_long_keeps_it_and_one_that_dies_has_it_no_longer_than_a_claim(
    env, monkeypatch
):
    class Slow(PricedSwaps):
        async def build(self, *_):
            await asyncio.sleep(3_600)

    monkeypatch.setattr(runner, "RENEW_S", 0.01)
    await env.opened(mem=MEM)
    txn_id = await env.ask("memory/MEM", MEM, "memory/USDX")
    await waits_for_call(env, txn_id)
    slow = structs.replace(env.follower, swaps=[Slow(env.swap_service)], build_timeout_s=3_600)
    follower, other = ExchangeFollower(slow, Hints(None)), env.new_follower()

    async def is_renewed():
        return (await env.row(txn_id)).due_at == env.clock.now() + runner.CLAIM

    assert await follower.tick() == 1
    for _ in range(4):
        env.clock.advance(runner.CLAIM.total_seconds() - 1)
        await until(is_renewed)
        assert await claim_due(other) == []
    await killed(follower)
    env.clock.advance(runner.CLAIM.total_seconds() - 1)
    assert await claim_due(other) == []
    env.clock.advance(1)
    assert [row.txn_id for row in await claim_due(other)] == [txn_id]


async def test_a_claim_is_not_renewed_once_something_else_says_when_to_look(env, monkeypatch):
    monkeypatch.setattr(runner, "RENEW_S", 0.01)
    await env.opened(mem=MEM)
    txn_id = await env.ask("memory/MEM", MEM, "memory/USDX")
    await waits_for_call(env, txn_id)
    (row,) = await claim_due(env.follower)
    async with runner.claim_kept(env.follower, row):
        await later(env.follower, row, timedelta(seconds=3))
        until = (await env.row(txn_id)).due_at
        await asyncio.sleep(0.1)
        assert (await env.row(txn_id)).due_at == until == env.clock.now() + timedelta(seconds=3)


async def test_the_queue_finds_an_exchange_by_what_its_call_waits_for(env):
    await env.opened(usdx=100 * USDX, collected=False)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")

    async def found(reason):
        seen = Seen(sendable=["memory"], paused=[], now=env.clock.now())
        async with env.db.transaction() as conn:
            page = await list_queue(conn, Part(), mode="live", seen=seen, reason=reason)
        return [one.txn_id for one in page.items]

    async with env.db.transaction() as conn:
        noted = (await conn.exec_driver_sql("UPDATE outbound_intents SET reason = 'call' RETURNING state")).scalars()
        assert noted.all() == ["waiting"]
    for waits_for in ("allowance", "provider", "turn", None):
        async with env.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE exchanges SET waits_for = $1", (waits_for,))
        by = waits_for or "call"
        assert {one: await found(one) for one in ("allowance", "provider", "turn", "call")} == {
            one: [txn_id] if one == by else [] for one in ("allowance", "provider", "turn", "call")
        }
    await env.go_on(txn_id)
