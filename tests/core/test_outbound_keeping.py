"""The issuer of USDT switches its fee on: what comes is credited as it came, and nothing leaves that would shrink."""

from __future__ import annotations

import pytest

from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import IntentKind
from cambist.services.listing import Part
from cambist.services.payouts.queue import PayoutContext
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.resolutions import decide
from cambist.services.sending.collections.explaining import list_uncollected

pytestmark = pytest.mark.slow

ONE = 10**6
KEPT = "the token USDT keeps 1 of 100 USDT as a fee of its own: less would arrive"


async def test_what_comes_is_credited_as_it_came_and_waits_with_all_else_until_nothing_is_kept(on_tron):
    usdt, customer, engine = on_tron.tokens["USDT"], on_tron.node.accounts[3], on_tron.engine()
    await on_tron.receive_many("USDT", [1000 * ONE])
    await on_tron.work(engine)
    await usdt.mint(customer, 100 * ONE)
    await usdt.charge(100, 50 * ONE)
    await on_tron.mine()
    address = await on_tron.deposit_address()
    await usdt.transfer(address, 100 * ONE, sender=customer)
    await on_tron.mine(8)
    assert (await on_tron.balance("USDT")).held == 99 * ONE
    await on_tron.release("USDT", 99 * ONE, on_tron.merchant)
    to_address = await on_tron.stranger(1)
    for kind in (IntentKind.PAYOUT, IntentKind.WITHDRAWAL):
        (payout_id,) = await on_tron.pay_out_many("USDT", [(to_address, 100 * ONE)], kind=kind)
        await on_tron.work(engine, rounds=10)
        payout = await on_tron.payout(payout_id)
        assert (payout.status, payout.error) == ("failed", KEPT)
    assert (await on_tron.balance("USDT")).available == 1099 * ONE
    assert await on_tron.on_chain(to_address, "USDT") == 0
    assert await on_tron.on_chain(address, "USDT") == 99 * ONE
    async with on_tron.db.transaction() as conn:
        (waiting,) = (await list_uncollected(conn, Part(limit=2))).items
    assert (waiting.address, waiting.units, str(waiting.reason)) == (address, 99 * ONE, "refused")
    await on_tron.check_books()
    payout_id = await on_tron.pay_out("USDT", 1099 * ONE, to_address)
    await on_tron.work(engine, rounds=4, until="later")
    assert await on_tron.open_intents() == [("payout", "waiting", "collection")]
    await on_tron.check_books()
    await usdt.charge(0, 0)
    await on_tron.mine()
    await on_tron.work(engine)
    assert (await on_tron.payout(payout_id)).status == "completed"
    assert await on_tron.on_chain(to_address, "USDT") == 1099 * ONE


async def send_back(treasury, to_address):
    """Send back the newest deposit; return the refund's id."""
    context = PayoutContext(registry=treasury.registry, keys=treasury.keys, clock=treasury.clock, ids=treasury.ids)
    async with treasury.db.transaction() as conn:
        rows = await conn.exec_driver_sql("SELECT deposit_id FROM deposits ORDER BY id DESC LIMIT 1")
        request = RefundRequest(to_address=to_address)
        return (await decide.refund(conn, context, treasury.actor, rows.scalar_one(), request, None)).resource.refund_id


async def ended(treasury, refund_id):
    """Return how a refund has ended, what was told of it, and what of its deposit is held."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT event FROM webhook_events WHERE resource_id = $1", (refund_id,))
        events = list(rows.scalars())
    refund = await treasury.payout(refund_id)
    return refund.status, refund.error, events, (await treasury.balance("USDT")).held


async def test_a_refund_that_would_shrink_or_is_refused_fails_and_can_be_asked_for_again(on_tron):
    """Refused as by a contract that is paused, before it is signed or when it is mined."""
    usdt, engine, wallet = on_tron.tokens["USDT"], on_tron.engine(), on_tron.wallet.address
    async with on_tron.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE projects SET extended_events = true")
    await on_tron.receive_many("USDT", [100 * ONE])
    await on_tron.pay_out("USDT", ONE, await on_tron.stranger(9))
    await on_tron.work(engine)
    address, to_address = await on_tron.deposit_address(), await on_tron.stranger(1)
    await on_tron.pay("USDT", address, 50 * ONE)
    await on_tron.mine(8)
    await usdt.charge(100, 50 * ONE)
    await on_tron.mine()
    kept = await send_back(on_tron, to_address)
    await on_tron.work(engine, rounds=2, until="failed")
    shrinks = "the token USDT keeps 0.5 of 50 USDT as a fee of its own: less would arrive"
    assert await ended(on_tron, kept) == ("failed", shrinks, ["refund.failed"], 50 * ONE)
    await usdt.charge(0, 0)
    await usdt.refuse(wallet)
    await on_tron.mine()
    refused = await send_back(on_tron, to_address)
    await on_tron.work(engine, rounds=2, until="failed")
    why = f"the token USDT refuses the transfer to {to_address}: REVERT opcode executed"
    assert await ended(on_tron, refused) == ("failed", why, ["refund.failed"], 50 * ONE)
    await usdt.accept(wallet)
    await on_tron.mine()
    reverted = await send_back(on_tron, to_address)
    await engine.tick()
    ((tx_id, _),) = await on_tron.signed_for(reverted)
    on_tron.node.hold_back(tx_id)
    await usdt.refuse(wallet)
    await on_tron.mine()
    on_tron.node.release(tx_id)
    await on_tron.work(engine, rounds=8, until="failed")
    sentence = SENTENCES[Failure.REVERTED]
    assert await ended(on_tron, reverted) == ("failed", sentence, ["refund.sent", "refund.failed"], 50 * ONE)
    await on_tron.check_books()
    await usdt.accept(wallet)
    await on_tron.mine()
    last = await send_back(on_tron, to_address)
    await on_tron.work(engine)
    assert await ended(on_tron, last) == ("completed", None, ["refund.sent", "refund.completed"], 0)
    assert await on_tron.on_chain(to_address, "USDT") == 50 * ONE
