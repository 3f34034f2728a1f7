"""Where transactions expire: what nobody mined is sent again once it is proven dead, and what was only hidden never."""

from __future__ import annotations

import pytest

from cambist.plugin import ChainUnavailableError
from cambist.services.sending import following
from cambist_tron_node import Fault
from tests.support.tron_treasury import LIFETIME_BLOCKS, tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    """Give a merchant with money in the main wallet, and a chain that is reached in three ways."""
    async with tron_treasury(db, clock, ids, tmp_path, faces=2) as treasury:
        await treasury.open()
        await treasury.receive_many("USDT", [100 * ONE])
        await treasury.pay_out("USDT", ONE, await treasury.stranger(999))
        await treasury.work(treasury.engine())
        yield treasury
        await treasury.check_books()


@pytest.fixture
def ways(treasury):
    return [treasury.node.faults, *treasury.faces]


async def test_what_every_node_dropped_silently_is_sent_again_once_when_it_is_dead(treasury, ways):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    for way in ways:
        way.faults.add(Fault.FORGETFUL)
    payout_id = await treasury.sent(to_address, ONE)
    for _ in range(5):
        await treasury.mine(15, seconds=45)
        await engine.tick()
        assert len(await treasury.signed_for(payout_id)) == 1
    await treasury.mine(35, seconds=105)
    for way in ways:
        way.clear()
    await treasury.work(engine)
    (first, dead), (second, mined) = await treasury.signed_for(payout_id)
    assert first != second
    assert (dead, mined) == ("gone", "final")
    assert treasury.node.info(first) is None
    assert await treasury.on_chain(to_address, "USDT") == ONE
    assert (await treasury.payout(payout_id)).tx_id == second


async def test_what_nodes_hide_until_it_has_expired_is_never_paid_twice(treasury, ways):
    """It was mined: only asked for by its id, no node has ever heard of it."""
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.sent(to_address, ONE)
    ((tx_id, _),) = await treasury.signed_for(payout_id)
    for way in ways:
        way.hidden.add(tx_id)
    await treasury.outlive(engine)
    await treasury.outlive(engine)
    assert len(await treasury.signed_for(payout_id)) == 1
    assert await treasury.on_chain(to_address, "USDT") == ONE
    for way in ways:
        way.clear()
    await treasury.work(engine)
    assert await treasury.signed_for(payout_id) == [(tx_id, "final")]
    assert await treasury.on_chain(to_address, "USDT") == ONE


async def test_what_is_mined_in_the_last_moment_is_not_sent_again(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.sent(to_address, ONE)
    ((tx_id, _),) = await treasury.signed_for(payout_id)
    treasury.node.hold_back(tx_id)
    for _ in range(19):
        await treasury.mine(5, seconds=15)
        await engine.tick()
    treasury.node.release(tx_id)
    await treasury.mine(2)
    assert treasury.node.info(tx_id) is not None
    await treasury.outlive(engine)
    await treasury.work(engine)
    assert await treasury.signed_for(payout_id) == [(tx_id, "final")]
    assert await treasury.on_chain(to_address, "USDT") == ONE


@pytest.mark.parametrize("fault", [Fault.LAGGING, Fault.HEAD_FROZEN, Fault.NO_BLOCK, Fault.TRUNCATED, Fault.LITE_NODE])
async def test_nodes_that_cannot_prove_a_death_bring_nothing_to_life(treasury, ways, fault):
    """Some of them hide it as well; the one that tells of it is heard as soon as it can be."""
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.sent(to_address, ONE)
    ((tx_id, _),) = await treasury.signed_for(payout_id)
    await treasury.mine()
    for way in ways:
        way.hidden.add(tx_id)
    ways[0].faults.add(fault)
    ways[1].faults.add(fault)
    for _ in range(4):
        await treasury.node.mine(40)
        treasury.clock.advance(120)
        await engine.tick()
    assert len(await treasury.signed_for(payout_id)) == 1
    for way in ways:
        way.clear()
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await treasury.signed_for(payout_id) == [(tx_id, "final")]
    assert await treasury.on_chain(to_address, "USDT") == ONE


async def test_what_a_reorg_took_and_nobody_mined_again_is_sent_once_more(treasury):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    payout_id = await treasury.sent(to_address, ONE)
    ((first, _),) = await treasury.signed_for(payout_id)
    await treasury.mine()
    await engine.tick()
    await treasury.node.reorg(1)
    treasury.node.hold_back(first)
    await treasury.outlive(engine)
    await treasury.work(engine)
    states = await treasury.signed_for(payout_id)
    assert [state for _, state in states] == ["gone", "final"]
    assert await treasury.on_chain(to_address, "USDT") == ONE


async def test_proofs_that_take_long_are_not_lost_with_the_time_of_a_tick(treasury, ways, monkeypatch):
    """A worker ends a tick that lasts too long: what it has proven by then is sent again, and the rest proven later."""
    engine, ask = treasury.engine(), treasury.chain.expired
    for way in ways:
        way.faults.add(Fault.FORGETFUL)
    paid = [await treasury.sent(await treasury.stranger(number), ONE) for number in range(4)]
    await treasury.mine(LIFETIME_BLOCKS, seconds=3 * LIFETIME_BLOCKS)
    for way in ways:
        way.clear()

    async def ask_slowly(txs):
        treasury.clock.advance(20)
        return await ask(txs)

    monkeypatch.setattr(following, "ASKED_AT_ONCE_MAX", 1)
    monkeypatch.setattr(treasury.chain, "expired", ask_slowly)
    began = treasury.clock.monotonic()
    await engine.tick()
    assert treasury.clock.monotonic() - began < 2 * following.PROVING_S
    states = [[state for _, state in await treasury.signed_for(payout_id)] for payout_id in paid]
    assert sum(len(one) > 1 for one in states) == 2
    await treasury.work(engine)
    assert {(await treasury.payout(payout_id)).status for payout_id in paid} == {"completed"}
    assert [len(await treasury.signed_for(payout_id)) for payout_id in paid] == [2] * 4


@pytest.mark.parametrize("fails", [False, True])
async def test_proofs_that_cannot_be_had_keep_none_from_others(treasury, ways, monkeypatch, fails):
    """Those that expired first take all the time of a tick, or are not answered: the next tick asks for the others."""
    engine, ask = treasury.engine(), treasury.chain.expired
    for way in ways:
        way.faults.add(Fault.FORGETFUL)
    paid = [await treasury.sent(await treasury.stranger(number), ONE) for number in range(3)]
    await treasury.mine(LIFETIME_BLOCKS, seconds=3 * LIFETIME_BLOCKS)
    for way in ways:
        way.clear()
    hopeless, hopeless_max = set(), 2

    async def ask_in_vain(txs):
        (tx,) = txs
        if tx.tx_id not in hopeless and len(hopeless) == hopeless_max:
            return await ask(txs)
        hopeless.add(tx.tx_id)
        treasury.clock.advance(following.PROVING_S)
        if fails:
            raise ChainUnavailableError("its blocks are not kept")
        return [False]

    monkeypatch.setattr(following, "ASKED_AT_ONCE_MAX", 1)
    monkeypatch.setattr(treasury.chain, "expired", ask_in_vain)
    for _ in range(4):
        treasury.clock.advance(treasury.settings.rebroadcast_s)
        await engine.tick()
    signed = [await treasury.signed_for(payout_id) for payout_id in paid]
    assert sorted(len(txs) for txs in signed) == [1, 1, 2]
    assert {txs[0][0] for txs in signed if len(txs) == 1} == hopeless
    hopeless_max = 0
    hopeless.clear()
    await treasury.work(engine)
    assert {(await treasury.payout(payout_id)).status for payout_id in paid} == {"completed"}


async def test_a_hundred_that_expire_together_are_each_sent_again_once(treasury, ways):
    engine = treasury.engine()
    to_addresses = [await treasury.stranger(number) for number in range(40)]
    for way in ways:
        way.faults.add(Fault.FORGETFUL)
    paid = await treasury.pay_out_many("USDT", [(to_address, ONE) for to_address in to_addresses])
    await engine.tick()
    await treasury.outlive(engine)
    for way in ways:
        way.clear()
    await treasury.work(engine, rounds=80)
    assert [await treasury.on_chain(to_address, "USDT") for to_address in to_addresses] == [ONE] * len(to_addresses)
    assert {(await treasury.payout(payout_id)).status for payout_id in paid} == {"completed"}
