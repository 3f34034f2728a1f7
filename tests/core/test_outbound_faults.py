"""Whatever nodes, fees and crashes do: each ends in exactly one transfer, or in money that is given back."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cambist.domain.failures import SENTENCES, Failure
from cambist.plugin import ChainUnavailableError
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import asset_key
from cambist.services.sending.engine import Engine
from cambist.signer.rules import Rules
from cambist.signer.store import Store
from cambist.testing.memory.blocks import Output
from tests.support.payment_env import registry
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


async def transfers_to(treasury: Treasury, to_address: str) -> int:
    return await treasury.on_chain(to_address, "USDX")


async def sends(treasury: Treasury, to_address: str, engine: Engine | None = None) -> str:
    """Pay out, and take the turn that sends it; nothing is mined yet."""
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await (engine or treasury.engine()).tick()
    return payout_id


@pytest.mark.parametrize("fault", ["forgotten_txs", "unanswered_txs", "lost_txs"])
async def test_a_transaction_that_nodes_lose_is_sent_again_and_arrives_once(treasury, fault):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    setattr(treasury.chain.faults, fault, 2)
    payout_id = await sends(treasury, to_address, engine)
    await treasury.work(engine)
    assert await transfers_to(treasury, to_address) == AMOUNT
    assert (await treasury.payout(payout_id)).status == "completed"
    assert treasury.chain.accounts.sequence(treasury.wallet.address) == 2


async def test_nodes_that_restart_and_forget_everything_are_told_again(treasury):
    engine = await treasury.ready()
    to_addresses = [await treasury.stranger(n) for n in range(5)]
    for to_address in to_addresses:
        await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    treasury.chain.forget()
    await treasury.work(engine)
    assert [await transfers_to(treasury, to_address) for to_address in to_addresses] == [AMOUNT] * 5


async def test_one_that_cannot_be_prepared_fails_alone_and_leaves_no_gap(treasury):
    engine = await treasury.ready()
    to_addresses = [await treasury.stranger(n) for n in range(5)]
    payouts = [await treasury.pay_out("USDX", AMOUNT, to_address) for to_address in to_addresses]
    treasury.chain.faults.impossible = {to_addresses[0], to_addresses[3]}
    await treasury.work(engine)
    found = [await treasury.payout(payout_id) for payout_id in payouts]
    assert [one.status for one in found] == ["failed", "completed", "completed", "failed", "completed"]
    assert [await transfers_to(treasury, to_address) for to_address in to_addresses] == [0, AMOUNT, AMOUNT, 0, AMOUNT]
    assert engine.context.alerts["refused"] == 2


async def test_what_can_not_be_prepared_again_stays_as_it_is(treasury, clock):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    treasury.chain.faults.mining_paused = True
    payout_id = await sends(treasury, to_address, engine)
    first = (await treasury.payout(payout_id)).tx_id
    treasury.chain.faults.impossible = {to_address}
    clock.advance(engine.context.settings.stuck_after_s + 1)
    await engine.tick()
    assert engine.context.alerts["stuck"] == 1
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).tx_id == first
    assert await transfers_to(treasury, to_address) == AMOUNT


async def test_a_crash_between_storing_and_sending_loses_and_repeats_nothing(treasury, monkeypatch):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)

    async def killed(_):
        raise ChainUnavailableError("the process is gone")

    with monkeypatch.context() as patch:
        patch.setattr(treasury.chain, "broadcast", killed)
        with pytest.raises(ChainUnavailableError):
            await sends(treasury, to_address, engine)
    async with treasury.db.autocommit() as conn:
        (stored,) = (await conn.exec_driver_sql("SELECT tx_id FROM outbound_txs WHERE state = 'stored'")).scalars()
    await treasury.work(treasury.engine())
    assert await transfers_to(treasury, to_address) == AMOUNT
    # In the same bytes: one that were never sent would be outbid in the end, and hide that.
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT t.tx_id, t.state FROM outbound_txs t JOIN outbound_txs o USING (slot_pk) WHERE o.tx_id = $1",
            (stored,),
        )
        assert [tuple(row) for row in rows] == [(stored, "final")]


async def test_a_transaction_that_is_stuck_is_outbid_and_only_one_of_both_is_mined(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await sends(treasury, to_address, engine)
    first = (await treasury.payout(payout_id)).tx_id
    treasury.chain.fees.base_price *= 10
    treasury.clock.advance(61)
    await treasury.work(engine)
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id == first) == ("completed", False)
    assert await transfers_to(treasury, to_address) == AMOUNT
    assert treasury.alerts["replaced"] >= 1
    assert (await treasury.chain.transaction(first)).state == "unknown"


async def test_what_was_underpriced_from_the_start_is_outbid_at_once(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.fees.price_min *= 1000
    await engine.tick()
    treasury.chain.fees.base_price *= 1000
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await transfers_to(treasury, to_address) == AMOUNT


async def test_what_outbids_is_outbid_itself_only_once_nodes_refuse_that_too(treasury):
    engine, fees = await treasury.ready(), treasury.chain.fees
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    # More than the first replacement pays, and less than the second: they add an eighth each.
    fees.price_min = fees.current(1).price * 6 // 5
    treasury.chain.faults.mining_paused = True
    replaced = []
    for _ in range(20):
        await engine.tick()
        treasury.clock.advance(1)
        replaced.append(treasury.alerts["replaced"])
    every = int(engine.context.settings.rebroadcast_s)
    assert replaced == [0] * every + [1] * every + [2] * (20 - 2 * every)
    treasury.chain.faults.mining_paused, fees.price_min = False, 1
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_above_the_operators_ceiling_nothing_is_sent_and_nothing_fails(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    fees = treasury.chain.fees
    fees.price_max, fees.base_price = fees.base_price * 4, fees.base_price * 10
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.work(engine, rounds=5, until="enough")
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.waits_for is not None) == ("processing", True)
    assert treasury.alerts["fees_above_ceiling"] == 1
    fees.base_price //= 10
    treasury.clock.advance(30)
    await treasury.work(engine)
    assert await transfers_to(treasury, to_address) == AMOUNT


async def test_a_sequence_used_behind_our_back_is_given_up_and_the_money_is_sent_once(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await sends(treasury, to_address, engine)
    wallet = treasury.wallet.address
    thief = Output(contract=None, recipient=await treasury.stranger(77), amount=1)
    treasury.chain.submit([thief], sender=wallet, sequence=treasury.chain.accounts.sequence(wallet))
    await treasury.mine()
    assert treasury.chain.accounts.sequence(wallet) == 2
    await treasury.work(engine)
    assert await transfers_to(treasury, to_address) == AMOUNT
    assert (await treasury.payout(payout_id)).status == "completed"
    assert treasury.alerts["dead"] == 1
    await explain_what_the_thief_took(treasury)


async def explain_what_the_thief_took(treasury: Treasury) -> None:
    """Post what nobody could know: a unit of gas money that was sent from elsewhere, and its fee."""
    asset = treasury.asset("MEM")
    held = await treasury.on_chain(treasury.wallet.address, "MEM")
    async with treasury.db.transaction() as conn:
        float_ = ledger.Account(treasury.merchant, asset, ledger.Purpose.FLOAT_WALLET)
        books = -(await ledger.lock_balances(conn, "live", [float_]))[float_]
        suspense = ledger.Account(ledger.PLATFORM, asset, ledger.Purpose.SUSPENSE)
        move = ledger.Movement(suspense, float_, books - held)
        await ledger.post(conn, "live", [ledger.Posting(mode="live", kind="t", reference="t", movements=[move])])


async def test_a_transaction_that_every_node_refuses_for_good_is_cancelled_and_the_money_given_back(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    treasury.chain.faults.rejection = "exceeds block gas limit"
    payout_id = await sends(treasury, to_address, engine)
    treasury.clock.advance(61)
    await engine.tick()
    treasury.chain.faults.rejection = None
    await treasury.work(engine)
    payout = await treasury.payout(payout_id)
    balance = await treasury.balance("USDX")
    assert (payout.status, balance.available, balance.pending) == ("failed", 100 * AMOUNT - 1, 0)
    assert payout.error == SENTENCES[Failure.NOT_TAKEN]
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT state, reason FROM outbound_intents WHERE id = $1", (payout.intent_pk,)
        )
        assert found.one() == ("failed", SENTENCES[Failure.NOT_TAKEN])
    assert await transfers_to(treasury, to_address) == 0
    follower = await treasury.stranger(2)
    await treasury.pay_out("USDX", AMOUNT, follower)
    await treasury.work(engine)
    assert await transfers_to(treasury, follower) == AMOUNT


async def test_a_transfer_that_the_token_refuses_fails_before_a_fee_is_paid(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    treasury.chain.faults.refusing.add((treasury.token("USDX").contract, to_address))
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.work(engine)
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id) == ("failed", None)
    assert (await treasury.balance("USDX")).available == 100 * AMOUNT - 1


async def test_a_transfer_that_is_mined_and_fails_gives_the_money_back_and_the_fee_is_posted(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await sends(treasury, to_address, engine)
    treasury.chain.faults.refusing.add((treasury.token("USDX").contract, to_address))
    await treasury.work(engine)
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id is not None) == ("failed", True)
    assert (await treasury.balance("USDX")).available == 100 * AMOUNT - 1


async def test_an_empty_gas_station_holds_what_waits_and_fails_nothing(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open(station=0)
        await treasury.receive("USDX", AMOUNT)
        to_address, engine = await treasury.stranger(1), treasury.engine()
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        await treasury.work(engine, rounds=6, until="enough")
        assert (await treasury.payout(payout_id)).status == "processing"
        assert treasury.alerts["gas_station_empty"] == 1
        treasury.chain.transfer(treasury.info.native, treasury.station, 10**19)
        await treasury.mine(5)
        treasury.clock.advance(60)
        await treasury.work(engine)
        assert await transfers_to(treasury, to_address) == AMOUNT
        await treasury.check_books()


async def test_engines_side_by_side_send_each_payout_once(treasury):
    await treasury.ready()
    engines = [treasury.engine() for _ in range(3)]
    to_addresses = [await treasury.stranger(n) for n in range(40)]
    await treasury.pay_out_many("USDX", [(to_address, AMOUNT) for to_address in to_addresses])
    for _ in range(30):
        await asyncio.gather(*(engine.tick() for engine in engines))
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert [await transfers_to(treasury, to_address) for to_address in to_addresses] == [AMOUNT] * 40
    assert treasury.chain.accounts.sequence(treasury.wallet.address) == 41


async def test_a_reorg_has_no_nonces_repaired_that_were_used_before_the_database_began(treasury):
    wallet = treasury.wallet.address
    for sequence in range(3):
        nothing = Output(contract=None, recipient=wallet, amount=0)
        treasury.chain.submit([nothing], sender=wallet, sequence=sequence)
    await treasury.mine()
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await sends(treasury, to_address, engine)
    await treasury.mine(seconds=treasury.settings.rebroadcast_s + 1)
    await engine.tick()
    treasury.chain.reorg(1, new_blocks=2)
    await treasury.poll()
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert treasury.alerts["gap"] == 0
    assert treasury.chain.accounts.sequence(wallet) == 5


@pytest.mark.parametrize("depth", [1, 3, 5])
async def test_a_reorg_before_or_after_the_end_changes_nothing_in_the_end(treasury, depth):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await sends(treasury, to_address, engine)
    await treasury.mine(depth)
    await engine.tick()
    await engine.tick()
    was = (await treasury.payout(payout_id)).status
    assert was == ("completed" if depth > treasury.info.confirmations else "broadcast")
    treasury.chain.reorg(depth, new_blocks=depth + 1)
    await treasury.poll()
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "broadcast"
    assert (await treasury.balance("USDX")).pending == AMOUNT
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await transfers_to(treasury, to_address) == AMOUNT


async def test_a_signer_that_says_later_is_asked_later(db, clock, ids, tmp_path):
    token = registry().chains["memory"].token("USDX")
    rules = Rules(hourly_caps={asset_key("memory", token.contract): 2 * AMOUNT})
    async with Treasury(db, clock, ids, tmp_path, rules=rules) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 10 * AMOUNT)
        engine = treasury.engine()
        to_addresses = [await treasury.stranger(n) for n in range(5)]
        await treasury.pay_out_many("USDX", [(to_address, AMOUNT) for to_address in to_addresses])
        await treasury.work(engine, rounds=12, until="enough")
        assert sum([await transfers_to(treasury, to_address) for to_address in to_addresses]) == 2 * AMOUNT
        for _ in range(3):
            treasury.clock.advance(3700)
            await treasury.work(engine, rounds=12, until="enough")
        assert [await transfers_to(treasury, to_address) for to_address in to_addresses] == [AMOUNT] * 5
        await treasury.check_books()


async def test_a_signer_whose_clock_was_far_ahead_is_asked_again_within_days(db, clock, ids, tmp_path):
    token = registry().chains["memory"].token("USDX")
    rules = Rules(hourly_caps={asset_key("memory", token.contract): AMOUNT})
    async with Treasury(db, clock, ids, tmp_path, rules=rules) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 10 * AMOUNT)
        engine, to_address = treasury.engine(), await treasury.stranger(1)
        await treasury.pay_out("USDX", AMOUNT, to_address)
        began = clock.now()
        clock.set(began + timedelta(days=75 * 365))
        await treasury.work(engine, rounds=12, until="enough")
        clock.set(began)
        await treasury.pay_out("USDX", AMOUNT, to_address)
        await treasury.work(engine, rounds=12, until="enough")
        assert await treasury.open_intents() == [("payout", "waiting", "signer: HOURLY_CAP")]
        store = Store(treasury.folder)
        store.take_back(int(clock.now().timestamp()))
        store.close()
        clock.advance(2 * 24 * 3600)
        await treasury.work(engine, rounds=12, until="enough")
        assert await transfers_to(treasury, to_address) == 2 * AMOUNT
        await treasury.check_books()


async def test_an_outage_of_the_chain_changes_nothing(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.unavailable = True
    for _ in range(3):
        with pytest.raises(ChainUnavailableError):
            await engine.tick()
    treasury.chain.faults.unavailable = False
    await treasury.work(engine)
    assert await transfers_to(treasury, to_address) == AMOUNT
