"""Sending where transactions have no sequence but expire: the same bytes until they are dead, then others, once."""

from __future__ import annotations

import pytest

from cambist.services.sending.context import EngineContext
from tests.support.dated_treasury import LIFETIME_S, dated_treasury
from tests.support.fragile import Deeds, KilledError, fragile
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", 100 * AMOUNT))
        yield treasury
        await treasury.check_books()


async def arrived(treasury, *to_addresses) -> list[int]:
    return [await treasury.on_chain(to_address, "USDX") for to_address in to_addresses]


async def test_a_payout_to_the_same_address_twice_is_two_transactions(treasury):
    to_address = await treasury.stranger(1)
    await treasury.pay_out_many("USDX", [(to_address, AMOUNT), (to_address, AMOUNT)])
    await treasury.work(treasury.engine())
    assert await arrived(treasury, to_address) == [2 * AMOUNT]
    assert len({tx_id for _, tx_id in await treasury.transactions()}) == 2


async def test_addresses_are_activated_before_they_send(treasury):
    """Tokens do not activate an address, so the gas station does, and pays for it."""
    to_address = await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.work(treasury.engine())
    assert await arrived(treasury, to_address) == [AMOUNT]
    assert await treasury.intents("top_up") == [("top_up", "done"), ("top_up", "done")]


async def test_what_nodes_forget_is_sent_again_in_the_same_bytes(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.forgotten_txs = 2
    await engine.tick()
    tx_id = (await treasury.payout(payout_id)).tx_id
    await treasury.work(engine)
    assert ((await treasury.payout(payout_id)).tx_id, await arrived(treasury, to_address)) == (tx_id, [AMOUNT])


async def test_what_has_expired_is_signed_anew_and_arrives_once(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.mining_paused = True
    await engine.tick()
    first = (await treasury.payout(payout_id)).tx_id
    await treasury.outlive()
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.tx_id == first) == ("completed", False)
    assert await arrived(treasury, to_address) == [AMOUNT]
    assert [state for state, _ in await treasury.transactions()][-2:] == ["dead", "done"]
    assert treasury.alerts["dead"] == 1


async def test_what_nodes_hide_although_it_was_mined_is_not_sent_again(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    tx_id = (await treasury.payout(payout_id)).tx_id
    treasury.chain.faults.hidden.add(tx_id)
    await treasury.outlive()
    for _ in range(5):
        await engine.tick()
        await treasury.mine(5)
    assert [one for _, one in (await treasury.transactions())[1:]] == [tx_id]
    treasury.chain.faults.hidden.clear()
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]


async def test_nothing_is_given_up_while_the_chain_cannot_prove_it(treasury):
    """Neither by the clock nor because nobody answers."""
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.mining_paused = True
    await engine.tick()
    treasury.clock.advance(3_600)
    await engine.tick()
    treasury.chain.faults.unavailable_calls = {"expired"}
    await treasury.outlive()
    await engine.tick()
    treasury.chain.faults.unavailable_calls = set()
    assert [state for state, _ in await treasury.transactions()][-1] == "open"
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]


@pytest.mark.parametrize("kind", ["words", "nothing"])
async def test_what_a_plugin_says_that_is_no_proof_pays_nothing_twice(treasury, monkeypatch, kind):
    """An answer is True for each that is dead: whatever else is true by accident, as a coroutine is, proves nothing."""
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.mining_paused = True
    await engine.tick()

    async def expired(txs):
        return ["not yet" for _ in txs] if kind == "words" else []

    monkeypatch.setattr(treasury.chain, "expired", expired)
    for _ in range(3):
        treasury.clock.advance(60)
        await engine.tick()
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]
    assert [state for state, _ in await treasury.transactions()].count("dead") == 0


async def test_a_signature_that_a_crash_has_lost_is_made_again_only_when_the_lost_one_is_dead(treasury):
    """The signer remembers it; without it, nobody would know whether it was sent."""
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    dying = EngineContext.sign

    async def sign_and_die(context, items, dead):
        await dying(context, items, dead)
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineContext, "sign", sign_and_die)
        with pytest.raises(KilledError):
            await engine.tick()
    await engine.tick()
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.waits_for, payout.tx_id) == ("processing", "signer: ALREADY_SIGNED", None)
    await treasury.outlive()
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]


async def test_what_every_node_refuses_as_long_as_it_is_valid_fails_and_the_money_is_given_back(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    before = (await treasury.balance("USDX")).available
    treasury.chain.faults.rejection = "not with us"
    for _ in range(10):
        await engine.tick()
        await treasury.mine(1)
    assert (await treasury.payout(payout_id)).status == "broadcast"
    await treasury.outlive()
    treasury.clock.advance(120)
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "failed"
    assert (await treasury.balance("USDX")).available == before + AMOUNT
    assert await treasury.is_idle()


async def test_what_another_engine_has_seen_in_a_block_is_not_given_up_whatever_nodes_say(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    tx_id = (await treasury.transactions())[-1][1]
    treasury.chain.faults.hidden.add(tx_id)
    await treasury.mine()
    treasury.clock.advance(120)
    expired = treasury.chain.expired

    async def seen_meanwhile(txs):
        treasury.chain.faults.hidden.clear()
        treasury.chain.expired = expired
        await treasury.engine().tick()
        return [True for _ in txs]

    treasury.chain.expired = seen_meanwhile
    await engine.tick()
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]
    assert (await treasury.transactions())[-1] == ("done", tx_id)


async def test_that_nodes_call_it_expired_in_the_end_does_not_hide_why_they_had_refused_it(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.rejection = "not with us"
    for _ in range(LIFETIME_S // 10):
        await engine.tick()
        for _ in range(5):
            await treasury.mine()
    await treasury.mine()  # its time is over, and the block that proves it is not final yet
    treasury.chain.faults.rejection = None
    await engine.tick()
    await treasury.outlive()
    treasury.clock.advance(120)
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "failed"
    assert await arrived(treasury, to_address) == [0]


async def test_a_death_that_cannot_be_proven_now_keeps_nothing_else_from_being_sent(treasury):
    engine, to_addresses = await treasury.ready(), [await treasury.stranger(number) for number in range(2)]
    await treasury.pay_out("USDX", AMOUNT, to_addresses[0])
    treasury.chain.faults.mining_paused = True
    await engine.tick()
    await treasury.outlive()
    treasury.chain.faults.mining_paused = False
    treasury.chain.faults.unavailable_calls = {"expired"}
    other_id = await treasury.pay_out("USDX", AMOUNT, to_addresses[1])
    await treasury.work(engine, rounds=10, until="enough")
    assert (await treasury.payout(other_id)).status == "completed"
    assert await arrived(treasury, *to_addresses) == [0, AMOUNT]
    treasury.chain.faults.unavailable_calls = set()
    await treasury.work(engine)
    assert await arrived(treasury, *to_addresses) == [AMOUNT, AMOUNT]


async def test_a_lost_signature_costs_no_other_transfer_its_own_while_nothing_can_be_proven(treasury):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    sign = EngineContext.sign

    async def sign_and_die(context, items, dead):
        await sign(context, items, dead)
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineContext, "sign", sign_and_die)
        with pytest.raises(KilledError):
            await engine.tick()
    treasury.chain.faults.unavailable_calls = {"expired"}
    # The lost one comes up among them, after one that is signed already by then.
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET priority = 101 WHERE state = 'waiting'")
    others = [await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2 + number)) for number in range(2)]
    await treasury.work(engine, rounds=10, until="enough")
    assert [(await treasury.payout(one)).status for one in others] == ["completed"] * 2
    treasury.chain.faults.unavailable_calls = set()
    await treasury.outlive()
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await arrived(treasury, to_address) == [AMOUNT]


@pytest.mark.parametrize("proof", ["the chain's", "no answer", "another word"])
async def test_a_database_out_of_a_backup_pays_nothing_twice(treasury, monkeypatch, proof):
    """Neither where a plugin answers nothing, or no True, when it is asked what has expired."""
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    await treasury.mine()
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "DELETE FROM outbound_txs WHERE slot_pk IN (SELECT id FROM outbound_slots WHERE state = 'open')"
        )
        await conn.exec_driver_sql("DELETE FROM outbound_slots WHERE state = 'open'")
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'waiting' WHERE state = 'sending'")
    if proof != "the chain's":

        async def expired(txs):
            return [] if proof == "no answer" else ["not yet" for _ in txs]

        monkeypatch.setattr(treasury.chain, "expired", expired)
    for _ in range(3):
        await treasury.outlive()
        treasury.clock.advance(120)
        await treasury.work(engine, rounds=3, until="enough")
    assert await arrived(treasury, to_address) == [AMOUNT]
    assert [reason for _, _, reason in await treasury.open_intents()] == ["signer: ALREADY_SIGNED"]
    await treasury.post_forgotten()


async def test_death_at_each_moment_of_a_turn_is_survived(treasury):
    engine = await treasury.ready()
    moment, outlived = 0, False
    while not outlived:
        moment += 1
        to_address = await treasury.stranger(moment)
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        try:
            await fragile(treasury.engine(), Deeds(moment)).tick()
            outlived = True
        except KilledError:
            await treasury.outlive()
            treasury.clock.advance(120)
        await treasury.work(engine)
        assert await arrived(treasury, to_address) == [AMOUNT], moment
        assert (await treasury.payout(payout_id)).status == "completed"
    assert moment > 4
