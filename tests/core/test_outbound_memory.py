"""What the engine does when its database has forgotten what it did, when places lie idle, and when failures vanish."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.services.sending.engine import Engine
from cambist.testing.memory.blocks import Output
from tests.support.fragile import Fragile, KilledError, Life
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", 100 * AMOUNT))
        await treasury.ready()
        yield treasury
        await treasury.check_books()


async def sends(treasury: Treasury, to_address: str) -> str:
    """Pay out, and take the turn that sends it; nothing is mined yet."""
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.engine().tick()
    return payout_id


async def forget_sending(treasury: Treasury) -> None:
    """Have the database be as it was before anything after the first payout was signed: it is out of a backup."""
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "DELETE FROM outbound_txs WHERE slot_pk IN (SELECT id FROM outbound_slots WHERE sequence > 0"
            " AND address_pk = (SELECT id FROM addresses WHERE address = $1))",
            (treasury.wallet.address,),
        )
        await conn.exec_driver_sql(
            "DELETE FROM outbound_slots WHERE sequence > 0"
            " AND address_pk = (SELECT id FROM addresses WHERE address = $1)",
            (treasury.wallet.address,),
        )
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'waiting' WHERE state = 'sending'")
        await conn.exec_driver_sql(
            "UPDATE outbound_senders SET next_sequence = 1 WHERE address_pk ="
            " (SELECT id FROM addresses WHERE address = $1)",
            (treasury.wallet.address,),
        )


async def test_a_database_out_of_a_backup_pays_nothing_twice_that_was_mined_since(treasury):
    to_address = await treasury.stranger(1)
    await sends(treasury, to_address)
    await treasury.mine(1)
    await forget_sending(treasury)
    engine = treasury.engine()
    await treasury.work(engine, rounds=10, until="enough")
    treasury.clock.advance(120)
    await treasury.work(engine, rounds=5, until="enough")
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert [reason for _, _, reason in await treasury.open_intents()] == ["signer: ALREADY_SIGNED"]
    # Others are not kept back by it.
    other = await treasury.stranger(2)
    await treasury.pay_out("USDX", AMOUNT, other)
    await treasury.work(engine, rounds=8, until="enough")
    assert await treasury.on_chain(other, "USDX") == AMOUNT
    await treasury.post_forgotten()


async def test_a_database_out_of_a_backup_pays_nothing_twice_that_was_still_on_its_way(treasury):
    to_addresses = [await treasury.stranger(n) for n in range(3)]
    for to_address in to_addresses:
        await sends(treasury, to_address)
    await forget_sending(treasury)
    # In another order than before.
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET priority = 100 - id WHERE state = 'waiting'")
    await treasury.work(treasury.engine(), rounds=15, until="enough")
    for _ in range(3):
        treasury.clock.advance(120)
        await treasury.work(treasury.engine(), rounds=5, until="enough")
    assert [await treasury.on_chain(to_address, "USDX") for to_address in to_addresses] == [AMOUNT] * 3
    assert await treasury.is_idle()


async def test_what_was_signed_for_a_nonce_that_another_transfer_has_by_now_waits_until_that_is_mined(treasury):
    first, second, engine = await treasury.stranger(1), await treasury.stranger(2), treasury.engine()
    treasury.chain.faults.forgotten_txs = 1
    await sends(treasury, first)
    await forget_sending(treasury)
    async with treasury.db.autocommit() as conn:
        later = "UPDATE outbound_intents SET due_at = due_at + interval '1 hour' WHERE state = 'waiting'"
        await conn.exec_driver_sql(later)
    await sends(treasury, second)
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET due_at = created_at WHERE state = 'waiting'")
    await engine.tick()
    assert await treasury.open_intents() == [
        ("payout", "waiting", "signer: ALREADY_SIGNED"),
        ("payout", "sending", None),
    ]
    await treasury.work(engine, rounds=6, until="enough")
    treasury.clock.advance(70)
    await treasury.work(engine)
    assert [await treasury.on_chain(to_address, "USDX") for to_address in (first, second)] == [AMOUNT, AMOUNT]


async def test_signatures_that_a_crash_lost_hold_nobody_up_whoever_is_sent_next(treasury):
    to_addresses = [await treasury.stranger(n) for n in range(4)]
    await treasury.pay_out_many("USDX", [(to_address, AMOUNT) for to_address in to_addresses])
    engine = treasury.engine()

    class DiesSigning(Fragile):
        async def sign(self, requests):
            await self._thing.sign(requests)
            raise KilledError

    signer = DiesSigning(engine.context.signer, Life())
    with pytest.raises(KilledError):
        await Engine(structs.replace(engine.context, signer=signer), treasury.keys).tick()
    # The first is not sendable any more: the token refuses it. Those behind move up, or stay where they were signed.
    treasury.chain.faults.refusing.add((treasury.token("USDX").contract, to_addresses[0]))
    for _ in range(6):
        await treasury.work(engine, rounds=4, until="enough")
        treasury.clock.advance(70)
    assert [await treasury.on_chain(to_address, "USDX") for to_address in to_addresses] == [0, AMOUNT, AMOUNT, AMOUNT]
    assert await treasury.is_idle()


async def test_a_gap_that_a_wrong_count_has_left_is_filled(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    treasury.chain.faults.sequences_ahead = 2
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    treasury.chain.faults.sequences_ahead = 0
    for _ in range(6):
        await treasury.work(engine, rounds=3, until="enough")
        treasury.clock.advance(10)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert treasury.alerts["gap"] >= 1
    assert await treasury.is_idle()


async def test_a_gap_is_filled_that_a_reorg_leaves_where_something_else_had_taken_our_nonce(treasury):
    """Whoever holds the same key has sent something, and a reorg deeper than what was final takes it away for good."""
    engine, to_address, follower = await treasury.ready(), await treasury.stranger(1), await treasury.stranger(2)
    payout_id = await sends(treasury, to_address)
    before, wallet = treasury.chain.height, treasury.wallet.address
    nothing = Output(contract=None, recipient=wallet, amount=0)
    treasury.chain.submit([nothing], sender=wallet, sequence=treasury.chain.accounts.sequence(wallet))
    await treasury.mine()
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert treasury.alerts["dead"] == 1
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    second = await treasury.pay_out("USDX", AMOUNT, follower)
    for _ in range(6):
        await treasury.work(engine, rounds=3, until="enough")
        treasury.clock.advance(10)
    assert [(await treasury.payout(one)).status for one in (payout_id, second)] == ["completed"] * 2
    assert [await treasury.on_chain(one, "USDX") for one in (to_address, follower)] == [AMOUNT] * 2
    assert treasury.alerts["gap"] == 1
    assert await treasury.is_idle()


async def fails_for_good(treasury: Treasury, to_address: str) -> str:
    """Pay somebody whom the token refuses, until the money is given back."""
    payout_id = await sends(treasury, to_address)
    treasury.chain.faults.refusing.add((treasury.token("USDX").contract, to_address))
    await treasury.work(treasury.engine())
    assert (await treasury.payout(payout_id)).status == "failed"
    treasury.chain.faults.refusing.clear()
    return payout_id


async def test_a_failure_that_a_deep_reorg_takes_away_leaves_no_gap_and_is_not_paid(treasury):
    to_address, follower = await treasury.stranger(1), await treasury.stranger(2)
    before = treasury.chain.height
    payout_id = await fails_for_good(treasury, to_address)
    treasury.chain.reorg(treasury.chain.height - before)
    await treasury.poll()
    engine = treasury.engine()
    await engine.tick()
    await treasury.pay_out("USDX", AMOUNT, follower)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "failed"
    assert [await treasury.on_chain(one, "USDX") for one in (to_address, follower)] == [0, AMOUNT]
    assert (await treasury.balance("USDX")).available == 99 * AMOUNT - 1


async def test_a_failure_that_a_deep_reorg_makes_succeed_is_paid_and_taken_again(treasury):
    to_address = await treasury.stranger(1)
    before = treasury.chain.height
    payout_id = await fails_for_good(treasury, to_address)
    tx_id = (await treasury.payout(payout_id)).tx_id
    treasury.chain.reorg(treasury.chain.height - before, mine_again=[tx_id])
    await treasury.poll()
    await treasury.work(treasury.engine())
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    balance = await treasury.balance("USDX")
    assert (balance.available, balance.pending, balance.receivable) == (99 * AMOUNT - 1, 0, 0)
