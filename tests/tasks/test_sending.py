"""What a worker makes of a tick of the engine."""

from __future__ import annotations

import asyncio

import pytest

from cambist.hints import Hints
from cambist.plugin import ChainUnavailableError
from cambist.services.sending.giving_way import postpone
from cambist.services.sending.rests import PAUSE_MAX, SUSPECT_PAUSE_MAX
from cambist_tasks.chain_loops import Pauses
from cambist_tasks.leases import Leases
from cambist_tasks.sending import ChainSender
from tests.support.pausing import paused
from tests.support.treasury import Treasury

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 20 * AMOUNT)
        yield treasury
        await treasury.check_books()


@pytest.mark.slow
async def test_what_a_tick_did_before_it_failed_is_told_and_then_the_failure_counts(treasury):
    engine, hints = await treasury.ready(), Hints(None)
    sender = ChainSender(engine, Leases(treasury.db), hints)
    pauses = Pauses(sender.state, "sending_failed")
    sent = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await sender._tick(pauses)
    cancelled = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await treasury.cancel(cancelled)
    # Cancelling asks no node, and following what is under way does.
    treasury.chain.faults.unavailable = True
    async with hints.subscribe("webhooks") as told:
        assert await sender._tick(pauses) > 0
        assert await told.wait(0.1)
        assert (await treasury.payout(cancelled)).status == "cancelled"
        assert (sender.state.failing, sender.state.failures) == (True, 1)
        await sender._tick(pauses)
        assert not await told.wait(0.1)
    treasury.chain.faults.unavailable = False
    await treasury.work(engine)
    assert (await treasury.payout(sent)).status == "completed"
    await sender._tick(pauses)
    assert not sender.state.failing


async def test_a_tick_that_fails_says_nothing_of_a_pause_that_it_has_not_asked_about(treasury):
    engine = await treasury.ready()
    sender = ChainSender(engine, Leases(treasury.db), Hints(None))
    pauses = Pauses(sender.state, "sending_failed")
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await sender._tick(pauses)
    async with paused(treasury):
        await sender._tick(pauses)
        assert sender.state.paused
        treasury.chain.faults.unavailable = True
        with pytest.raises(ChainUnavailableError):
            await engine.tick()
        await sender._tick(pauses)
        assert (sender.state.failing, sender.state.paused) == (True, True)
        treasury.chain.faults.unavailable = False
    await sender._tick(pauses)
    assert not sender.state.paused
    await treasury.work(engine)


@pytest.mark.slow
async def test_a_worker_that_has_a_chain_back_tries_what_another_one_had_let_wait(treasury):
    engine, leases = await treasury.ready(), Leases(treasury.db)
    sender = ChainSender(engine, leases, Hints(None))
    await sender._tick(Pauses(sender.state, "sending_failed"))
    payout = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    async with treasury.db.transaction() as conn:
        query = "SELECT intent_pk FROM payouts WHERE payout_id = $1"
        intent_pk = (await conn.exec_driver_sql(query, (payout,))).scalar_one()
    treasury.clock.advance(PAUSE_MAX.total_seconds())
    await postpone(treasury.engine().context, {intent_pk: None}, treasury.clock.now() + SUSPECT_PAUSE_MAX)
    assert await leases.take(f"send {treasury.info.id}")
    broadcast = asyncio.Event()

    async def note(call):
        if call == "broadcast":
            broadcast.set()

    treasury.chain.faults.before = note
    sending = asyncio.create_task(sender._send())
    async with asyncio.timeout(30):
        await broadcast.wait()
        await leases.aclose()
        await sending
    await treasury.work(engine)
