"""A merchant that is suspended: nothing of its money leaves, what is signed ends, and what waited goes on later."""

from __future__ import annotations

import asyncio

import pytest

from cambist.domain.intents import AskedBy
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.identity import suspension
from cambist.services.identity.projects import require_active
from cambist.services.sending import nonce_slots, store
from cambist.services.sending.batches import SUSPENDED_PAUSE, WAITS_FOR_REINSTATEMENT
from cambist.services.sending.suspended import wake
from tests.support.plays import play
from tests.support.treasury import Treasury

USDX = 10**6


async def suspend(treasury, merchant_id="mer_1"):
    async with treasury.db.transaction() as conn:
        await suspension.suspend(conn, merchant_id, "chargebacks", now=treasury.clock.now())


async def reinstate(treasury):
    async with treasury.db.transaction() as conn:
        await wake(conn, await suspension.reinstate(conn, "mer_1"), treasury.clock.now())


async def test_what_waits_is_held_back_while_deposits_are_still_collected_and_goes_on_after_reinstating(treasury):
    await treasury.receive("USDX", 50 * USDX)
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", 30 * USDX, to_address)
    engine = treasury.engine()
    await engine.tick()
    await suspend(treasury)
    await treasury.work(engine, rounds=12, until="never")
    assert await treasury.on_chain(to_address, "USDX") == 0
    assert await treasury.on_chain(treasury.wallet.address, "USDX") == 50 * USDX, "collecting keeps it with us"
    payout = await treasury.payout(payout_id)
    assert (payout.status, payout.waits_for) == ("processing", "merchant_suspended")
    await reinstate(treasury)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == 30 * USDX
    assert (await treasury.payout(payout_id)).status == "completed"
    await treasury.check_books()


async def test_one_merchants_suspension_holds_up_nobody_else(treasury):
    other, project = await treasury.new_merchant("mer_2")
    for merchant in (treasury.merchant, other):
        await treasury.receive("USDX", 50 * USDX, merchant=merchant)
    mine, theirs = await treasury.stranger(1), await treasury.stranger(2)
    await treasury.pay_out("USDX", 10 * USDX, mine)
    await treasury.pay_out("USDX", 10 * USDX, theirs, merchant=other, project=project)
    await suspend(treasury)
    await treasury.work(treasury.engine(), rounds=20, until="never")
    assert (await treasury.on_chain(mine, "USDX"), await treasury.on_chain(theirs, "USDX")) == (0, 10 * USDX)


async def test_what_was_planned_before_the_suspension_is_not_signed_after_it(treasury, monkeypatch):
    engine = await treasury_with_gas(treasury)
    to_address = await treasury.stranger(1)
    await treasury.pay_out("USDX", 30 * USDX, to_address)
    lock_sender, suspended = store.lock_sender, []

    async def suspend_first(conn, chain_scope, address_pk, mined):
        if not suspended:
            suspended.append(address_pk)
            await suspend(treasury)
        return await lock_sender(conn, chain_scope, address_pk, mined)

    monkeypatch.setattr(nonce_slots.store, "lock_sender", suspend_first)
    await engine.tick()
    assert suspended == [treasury.wallet.pk], "it was about to be signed"
    await treasury.work(engine, rounds=5, until="never")
    assert await treasury.on_chain(to_address, "USDX") == 0
    await reinstate(treasury)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == 30 * USDX


@pytest.mark.slow
async def test_what_is_reinstated_while_an_engine_defers_it_is_looked_at_at_once(treasury):
    engine = await treasury_with_gas(treasury)
    payout_id = await treasury.pay_out("USDX", 30 * USDX, await treasury.stranger(1))
    await suspend(treasury)
    async with treasury.db.transaction() as conn:
        now = treasury.clock.now()
        (held,) = await store.held_back(conn, engine.context.chain_scope, now, 10)
        reinstating = asyncio.create_task(reinstate(treasury))
        await asyncio.wait([reinstating], timeout=0.2)
        assert not reinstating.done()
        await engine.context.defer(conn, [held], WAITS_FOR_REINSTATEMENT, now + SUSPENDED_PAUSE, now)
    await reinstating
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"


async def test_what_is_held_back_can_be_cancelled(treasury):
    engine = await treasury_with_gas(treasury)
    before = await treasury.balance("USDX")
    payout_id = await treasury.pay_out("USDX", 30 * USDX, await treasury.stranger(1))
    await suspend(treasury)
    await engine.tick()
    assert await treasury.cancel(payout_id, AskedBy.OPERATOR)
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "cancelled"
    assert await treasury.balance("USDX") == before


async def treasury_with_gas(treasury):
    await play(treasury, Treasury.receive, "USDX", 50 * USDX)
    return await treasury.ready()


async def test_what_is_signed_ends_as_always(treasury):
    engine = await treasury_with_gas(treasury)
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", 30 * USDX, to_address)
    await engine.tick()
    assert (await treasury.payout(payout_id)).status == "broadcast"
    await suspend(treasury)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDX") == 30 * USDX


async def test_it_is_said_why_and_once(treasury):
    for reason in (" ", "a\x07b"):
        with pytest.raises(InvalidError):
            async with treasury.db.transaction() as conn:
                await suspension.suspend(conn, "mer_1", reason, now=treasury.clock.now())
    with pytest.raises(NotFoundError):
        await suspend(treasury, "mer_none")
    with pytest.raises(ConflictError):
        await reinstate(treasury)
    await suspend(treasury)
    with pytest.raises(ConflictError):
        await suspend(treasury)


async def test_a_request_that_was_let_in_a_moment_before_asks_for_nothing(treasury):
    await suspend(treasury)
    with pytest.raises(ForbiddenError) as refused:
        async with treasury.db.transaction() as conn:
            await require_active(conn, treasury.actor)
    assert refused.value.code == "MERCHANT_SUSPENDED"
