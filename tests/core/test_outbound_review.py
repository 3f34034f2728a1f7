"""What nodes, crashes and other people's money do when they are at their worst: still exactly one transfer."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import json, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.accounting import ledger
from cambist.services.sending import finality_store, open_store, store
from cambist.services.sending.engine import Engine
from cambist.services.sending.finalizing import finalize
from cambist.testing.memory.blocks import Output
from tests.support.treasury import Treasury
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


async def sends(treasury: Treasury, engine: Engine, to_address: str) -> str:
    """Pay out, and take the turn that sends it; nothing is mined yet."""
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    return payout_id


async def passes(treasury: Treasury, engine: Engine, blocks: int) -> None:
    """Let blocks come, each with a turn of the engine."""
    for _ in range(blocks):
        await treasury.mine()
        await engine.tick()


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_node_that_counts_too_many_transactions_makes_nothing_be_sent_twice(treasury, forgotten):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    faults = treasury.chain.faults
    faults.mining_paused = True
    payout_id = await sends(treasury, engine, to_address)
    faults.sequences_ahead = 3
    if forgotten:
        treasury.chain.forget()
    await passes(treasury, engine, 10)
    assert treasury.alerts["dead"] == 0
    faults.sequences_ahead, faults.mining_paused = 0, False
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_a_receipt_that_once_was_missing_costs_no_patience_later(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    faults = treasury.chain.faults
    faults.mining_paused = True
    payout_id = await sends(treasury, engine, to_address)
    faults.sequences_ahead = 1
    treasury.chain.forget()
    await passes(treasury, engine, 1)
    faults.sequences_ahead, faults.mining_paused = 0, False
    treasury.clock.advance(10)
    await engine.tick()
    await passes(treasury, engine, 1)
    async with treasury.db.autocommit() as conn:
        missing = await conn.exec_driver_sql("SELECT missing_since FROM outbound_slots WHERE state = 'open'")
        assert list(missing.scalars()) == [None]
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_all_transactions_of_a_place_are_followed_together_however_many_there_are(treasury, monkeypatch):
    engine = await treasury.ready()
    to_addresses = [await treasury.stranger(n) for n in range(2)]
    monkeypatch.setattr(open_store, "OPEN_MAX", 2)
    for to_address in to_addresses:
        await sends(treasury, engine, to_address)
    treasury.chain.fees.base_price *= 10
    treasury.clock.advance(61)
    await engine.tick()
    assert treasury.alerts["replaced"] == 1
    await treasury.mine()
    await passes(treasury, engine, 8)
    assert treasury.alerts["dead"] == 0
    treasury.clock.advance(61)
    await treasury.work(engine)
    assert [await treasury.on_chain(to_address, "USDX") for to_address in to_addresses] == [AMOUNT] * 2


async def test_a_balance_of_before_the_latest_transfer_is_not_spent_again(treasury):
    engine = await treasury.ready()
    await collect_only_what_is_needed(treasury)
    await treasury.receive("USDX", 30 * AMOUNT)
    to_addresses = [await treasury.stranger(n) for n in range(2)]
    first = await treasury.pay_out("USDX", 60 * AMOUNT, to_addresses[0])
    await engine.tick()
    second = await treasury.pay_out("USDX", 60 * AMOUNT, to_addresses[1])
    treasury.chain.faults.balances_lag_blocks = 1
    await passes(treasury, engine, 1)
    treasury.chain.faults.balances_lag_blocks = 0
    await treasury.work(engine)
    assert [(await treasury.payout(one)).status for one in (first, second)] == ["completed"] * 2
    assert treasury.alerts["failed"] == 0


async def test_what_waits_for_money_does_not_keep_back_what_can_be_paid(treasury):
    engine = await treasury.ready()
    settings = structs.replace(treasury.settings, in_flight_max=2)
    engine = treasury.engine(settings)
    stolen = 100 * AMOUNT - 11
    await steal(treasury, stolen)
    for number in range(3):
        await treasury.pay_out("USDX", 30 * AMOUNT, await treasury.stranger(number))
    small = await treasury.pay_out("USDX", 7, await treasury.stranger(9))
    await treasury.work(engine, rounds=12, until="enough")
    assert (await treasury.payout(small)).status == "completed"
    await bring_back(treasury, stolen)


async def steal(treasury: Treasury, units: int) -> None:
    """Have the chain say less than the books: as with a token that keeps a share of each transfer."""
    wallet = treasury.wallet.address
    thief = Output(contract=treasury.token("USDX").contract, recipient=treasury.chain.faucet, amount=units)
    treasury.chain.submit([thief], sender=wallet, sequence=treasury.chain.accounts.sequence(wallet))
    await treasury.mine()


async def bring_back(treasury: Treasury, units: int) -> None:
    """Bring what was stolen back, and see that all who waited for it get it."""
    treasury.chain.transfer(treasury.token("USDX"), treasury.wallet.address, units)
    await treasury.mine(4)
    treasury.clock.advance(5)
    await treasury.work(treasury.engine())
    await forget_deposit(treasury, ledger.Purpose.CUSTODY_WALLET, units)


async def forget_deposit(treasury: Treasury, purpose: ledger.Purpose, units: int) -> None:
    """Take what was brought back out of the books, which never knew that it was gone."""
    asset = treasury.asset("USDX")
    held, custody = (ledger.Account(treasury.merchant, asset, one) for one in (ledger.Purpose.HELD, purpose))
    move = ledger.Movement(held, custody, units)
    async with treasury.db.transaction() as conn:
        await ledger.post(conn, "live", [ledger.Posting(mode="live", kind="t", reference="t", movements=[move])])


async def collect_only_what_is_needed(treasury: Treasury) -> None:
    settings = {"collection": {"enabled": False}}
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1::jsonb, $2)",
            (json.encode(settings).decode(), treasury.clock.now()),
        )


async def test_a_pile_that_is_not_there_does_not_keep_back_a_payout_that_another_pile_covers(treasury):
    engine = await treasury.ready()
    await collect_only_what_is_needed(treasury)
    large = await treasury.receive("USDX", 300 * AMOUNT)
    await treasury.receive("USDX", 290 * AMOUNT)
    # What the books say lies on the larger one is not all there.
    treasury.chain.transfer(treasury.token("USDX"), treasury.chain.faucet, 1, sender=large)
    await treasury.mine()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", 280 * AMOUNT, to_address)
    for _ in range(40):
        await treasury.work(engine, rounds=1, until="enough")
        treasury.clock.advance(60)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert treasury.alerts["refused"] == 1
    treasury.chain.transfer(treasury.token("USDX"), large, 1, sender=treasury.chain.faucet)
    await treasury.mine(4)
    await forget_deposit(treasury, ledger.Purpose.CUSTODY_DEPOSITS, 1)


async def test_a_gas_station_that_is_nearly_empty_pays_for_those_whom_it_can(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open(station=5_000_000 * 10**9)
        for _ in range(8):
            await treasury.receive("USDX", 10 * AMOUNT)
        payout_id = await treasury.pay_out("USDX", 80 * AMOUNT, await treasury.stranger(1))
        engine = treasury.engine()
        await treasury.work(engine, rounds=20, until="enough")
        assert await treasury.on_chain(treasury.wallet.address, "USDX") >= 30 * AMOUNT
        assert (await treasury.payout(payout_id)).status == "processing"
        treasury.chain.transfer(treasury.info.native, treasury.station, 10**18)
        await treasury.mine(4)
        treasury.clock.advance(60)
        await treasury.work(engine)
        assert (await treasury.payout(payout_id)).status == "completed"
        await treasury.check_books()


async def test_collections_that_wait_for_gas_hide_no_payout_that_can_be_sent(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open(station=27_000_000 * 10**9)
        await treasury.receive("USDX", 100 * AMOUNT)
        await treasury.ready()
        engine = treasury.engine(structs.replace(treasury.settings, batch_max=2))
        for _ in range(12):
            await treasury.receive("USDX", 10 * AMOUNT)
        await treasury.work(engine, rounds=5, until="enough")
        assert len(await treasury.open_intents()) > 8
        payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
        await treasury.work(engine, rounds=12, until="enough")
        assert (await treasury.payout(payout_id)).status == "completed"


async def test_payouts_that_wait_for_money_hide_no_payout_that_can_be_sent_however_many_they_are(treasury):
    await treasury.ready()
    engine = treasury.engine(structs.replace(treasury.settings, batch_max=2))
    stolen = 95 * AMOUNT
    await steal(treasury, stolen)
    for number in range(6):
        await treasury.pay_out("USDX", 10 * AMOUNT, await treasury.stranger(number))
    small = await treasury.pay_out("USDX", 7, await treasury.stranger(9))
    await treasury.work(engine, rounds=15, until="enough")
    assert (await treasury.payout(small)).status == "completed"
    await bring_back(treasury, stolen)


async def test_finalizing_waits_for_a_poll_and_finishes_nothing_that_this_takes_back(treasury):
    engine = await treasury.ready()
    payout = await sends(treasury, engine, await treasury.stranger(1))
    await treasury.mine()
    await engine.tick()
    await treasury.mine(treasury.info.confirmations)
    query = "UPDATE chain_cursors SET height = height + $1"
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(query, (-treasury.info.confirmations,))
        finalizing = asyncio.create_task(finalize(engine.context, undoes=False))
        await waits_for_a_lock(conn, finalizing)
        assert not finalizing.done()
    assert not await finalizing
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(query, (treasury.info.confirmations,))
    assert await finalize(engine.context, undoes=False)
    assert (await treasury.payout(payout)).status == "completed"


async def test_replacing_a_transaction_and_finalizing_it_do_not_wait_in_a_circle(treasury):
    engine = await treasury.ready()
    payout_id = await sends(treasury, engine, await treasury.stranger(1))
    await passes(treasury, engine, treasury.info.confirmations)
    await treasury.mine()
    async with treasury.db.transaction() as conn:
        # Another engine has not seen yet that it was mined, and is about to replace it.
        found = await conn.exec_driver_sql("SELECT id FROM outbound_slots ORDER BY id DESC LIMIT 1 FOR UPDATE")
        slot = found.scalar_one()
        finalizing = asyncio.create_task(finalize(engine.context, undoes=False))
        await somebody_waits(treasury)
        assert [tx.state for tx in await store.lock_slot(conn, slot)] == ["mined"]
    assert await finalizing
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def replaced(treasury: Treasury, engine: Engine) -> tuple[str, list[str]]:
    """Pay out twice, and have the first transaction be replaced; return the first payout and the ids of all three."""
    treasury.chain.faults.mining_paused = True
    payout_id, _ = [await sends(treasury, engine, await treasury.stranger(n)) for n in range(2)]
    treasury.chain.fees.base_price *= 10
    treasury.clock.advance(61)
    await engine.tick()
    assert treasury.alerts["replaced"] == 1
    treasury.chain.fees.base_price //= 10
    treasury.chain.faults.mining_paused = False
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT tx_id FROM outbound_txs ORDER BY id DESC LIMIT 3")
        return payout_id, list(reversed(found.scalars().all()))


async def note_try(treasury: Treasury, engine: Engine, conn: AsyncConnection, tx_id: str) -> None:
    """Lock a transaction as an engine does that has broadcast it, one after another in the order of their ids."""
    await store.note_tries(conn, engine.context.chain_scope, [], [tx_id], treasury.clock.now())


async def test_remembering_what_was_broadcast_and_finalizing_do_not_wait_in_a_circle(treasury):
    engine = await treasury.ready()
    payout_id, (first, _, replacement) = await replaced(treasury, engine)
    await passes(treasury, engine, treasury.info.confirmations)
    await treasury.mine()
    async with treasury.db.transaction() as conn:
        await note_try(treasury, engine, conn, first)
        finalizing = asyncio.create_task(finalize(engine.context, undoes=False))
        await somebody_waits(treasury)
        await note_try(treasury, engine, conn, replacement)
    assert await finalizing
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).tx_id == replacement


async def test_remembering_what_was_broadcast_and_undoing_do_not_wait_in_a_circle(treasury):
    engine = await treasury.ready()
    before = treasury.chain.height
    payout_id, (first, _, replacement) = await replaced(treasury, engine)
    await treasury.work(engine)
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    async with treasury.db.transaction() as conn:
        await note_try(treasury, engine, conn, first)
        finalizing = asyncio.create_task(finalize(engine.context, undoes=True))
        await somebody_waits(treasury)
        await note_try(treasury, engine, conn, replacement)
    assert await finalizing
    assert (await treasury.payout(payout_id)).status == "broadcast"
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_missing_what_takes_nonces_and_finalizing_do_not_wait_in_a_circle(treasury):
    engine = await treasury.ready()
    payout_id, _ = await replaced(treasury, engine)
    await passes(treasury, engine, treasury.info.confirmations)
    await treasury.mine()
    async with treasury.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM outbound_slots WHERE state = 'open' ORDER BY id")
        first, second = found.scalars()
        await finality_store.note_missing(conn, [first], None)
        finalizing = asyncio.create_task(finalize(engine.context, undoes=False))
        await somebody_waits(treasury)
        await finality_store.note_missing(conn, [second], None)
    assert await finalizing
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def somebody_waits(treasury: Treasury) -> None:
    """Return once a connection waits for a lock of another."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(5):
        while True:
            async with treasury.db.autocommit() as conn:
                if (await conn.exec_driver_sql(waiting)).scalar_one():
                    return
            await asyncio.sleep(0.01)
