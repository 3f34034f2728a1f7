"""Refunds that are sent while a reorganization of the chain has taken what their payment received."""

from datetime import timedelta

import pytest

from cambist.services.errors import ConflictError
from cambist.services.listing import Part
from cambist.services.receiving.checkout import load_checkout
from cambist.services.receiving.deposits.rows import lock_deposits
from cambist.services.receiving.payments.read import get_public
from cambist.services.reversals.refunds.read import list_refunds
from cambist.services.sandbox.requests import FailPayout
from tests.support.refunds import REQUIRED

pytestmark = pytest.mark.slow

CONFIRMING = ["payment.detected", "payment.confirming"]
PAID = [*CONFIRMING, "payment.paid"]
IS_OF = """
UPDATE deposits SET (merchant_pk, payment_pk) = (
    SELECT j.merchant_pk, p.id FROM payments p JOIN projects j ON j.id = p.project_pk WHERE p.payment_id = $2
) WHERE deposit_id = $1
"""
"""Has a deposit be of another payment."""


async def wait_for(payment_env, seconds):
    """Have what is to be sent wait so long from now on, as for gas."""
    due_at = payment_env.clock.now() + timedelta(seconds=seconds)
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET due_at = $1 WHERE state = 'waiting'", (due_at,))


async def sent_without_money(payment_env, refund_env, *, amount=None, fails=False, mined=0):
    """Return a payment that was paid, and its refund: asked for before the deposit went, and sent after that."""
    await payment_env.change_project(payment_env.test, extended_events=True)
    payment_id = await refund_env.paid("10")
    asked = {} if amount is None else {"amount": amount}
    refund_id = (await refund_env.refund(payment_id, **asked)).resource.refund_id
    if fails:
        await payment_env.sandbox.fail_payout(payment_env.test, FailPayout(payout_id=refund_id))
    await wait_for(payment_env, 60)
    await payment_env.reorg(4, "return")
    assert (await payment_env.read(payment_id, payment_env.test)).status == "failed"
    if mined:
        await payment_env.mine(mined)
    await wait_for(payment_env, 0)
    await refund_env.send()
    return payment_id, refund_id


@pytest.mark.parametrize("mined", [0, 1, 2])
async def test_its_payment_is_refunded_once_the_money_comes_again(payment_env, refund_env, mined):
    """Sent while the deposit stands in no block, or in one that is not deep enough."""
    payment_id, refund_id = await sent_without_money(payment_env, refund_env, amount="7", mined=mined)
    await payment_env.mine(1 + REQUIRED)
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.received_amount, payment.refunded_amount) == ("refunded", "10", "7")
    assert await payment_env.events(payment_id) == [*PAID, "payment.failed", *CONFIRMING, "payment.refunded"]
    told = await payment_env.data(payment_id)
    assert (told["refundId"], told["amount"], told["refundedAmount"], told["status"]) == (
        refund_id,
        "7",
        "7",
        "refunded",
    )
    assert told["txHash"] == (await refund_env.refunds())[refund_id].tx_hash
    assert await payment_env.balance("USDX") == {"available": 3_000_000}
    assert (await refund_env.refund(payment_id)).resource.amount == "3"
    await refund_env.finish()
    assert (await payment_env.events(payment_id))[-2:] == ["payment.confirming", "payment.refunded"]
    await refund_env.check_books()


async def test_its_payment_is_paid_again_where_that_refund_fails(payment_env, refund_env):
    payment_id, refund_id = await sent_without_money(payment_env, refund_env, fails=True, mined=2)
    await payment_env.mine(2)
    assert (await payment_env.read(payment_id, payment_env.test)).status == "refunded"
    await payment_env.mine(REQUIRED)
    assert (await refund_env.refunds())[refund_id].status == "failed"
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("paid", "0")
    await payment_env.mine(1)
    assert (await payment_env.read(payment_id, payment_env.test)).status == "paid"
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    await refund_env.check_books()


async def test_what_a_refund_took_of_a_deposit_is_not_given_back_to_its_next_life(payment_env, refund_env):
    """What it took had become a debt with the deposit's reversal, and what came again is held whole."""
    payment_id = await refund_env.paid("13")
    refund_id = (await refund_env.refund(payment_id, amount="3")).resource.refund_id
    await wait_for(payment_env, 60)
    await payment_env.reorg(4, "return")
    await payment_env.mine(1 + REQUIRED)
    assert await payment_env.balance("USDX") == {"available": 7_000_000, "pending": 3_000_000, "held": 3_000_000}
    await wait_for(payment_env, 0)
    await refund_env.fail(refund_id)
    assert (await refund_env.refunds())[refund_id].status == "failed"
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "held": 3_000_000}
    assert [(one.held_amount, one.refundable_amount) for one in await refund_env.waiting()] == [("3", "3")]
    await refund_env.check_books()


async def test_what_a_refund_took_of_a_deposit_that_is_gone_repays_the_debt_that_its_reversal_made(
    payment_env, refund_env
):
    payment_id = await refund_env.paid("13")
    refund_id = (await refund_env.refund(payment_id, amount="3")).resource.refund_id
    await wait_for(payment_env, 60)
    await payment_env.reorg(4, "drop")
    await payment_env.mine(1 + REQUIRED)
    await refund_env.check_books()
    await wait_for(payment_env, 0)
    await refund_env.fail(refund_id)
    assert (await refund_env.refunds())[refund_id].status == "failed"
    assert not any((await payment_env.balance("USDX")).values())
    await refund_env.check_books()


async def test_surplus_that_comes_again_with_it_is_held_as_it_was(payment_env, refund_env):
    payment_id, _ = await sent_without_money(payment_env, refund_env, amount="4")
    await payment_env.deposit(payment_id, amount="3", confirmations=REQUIRED)
    assert (await payment_env.read(payment_id, payment_env.test)).status == "refunded"
    assert [one.held_amount for one in await refund_env.waiting()] == ["3"]
    await payment_env.reorg(4, "return")
    assert (await payment_env.read(payment_id, payment_env.test)).status == "refunded"
    await payment_env.mine(1 + REQUIRED)
    await refund_env.check_books()


async def test_a_refund_of_one_deposit_leaves_the_status_of_its_payment(payment_env, refund_env):
    payment_id = await refund_env.paid("10", "3")
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await wait_for(payment_env, 60)
    await payment_env.reorg(8, "return")
    await wait_for(payment_env, 0)
    await refund_env.finish()
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("paid", "3")
    await refund_env.check_books()


async def test_what_comes_in_the_place_of_a_deposit_that_was_sent_back_is_not_that(payment_env, refund_env):
    """A contract may pay another token, or somebody else, when its call is mined in another block."""
    payment_id = await refund_env.paid("10", "3")
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    await payment_env.reorg(8, "return")
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE sandbox_transfers SET contract = NULL, units = $2 WHERE tx_id = $1", (one.tx_hash, 2 * 10**18)
        )
    await payment_env.mine(1 + REQUIRED)
    (other,) = await refund_env.waiting()
    assert (other.deposit_id, other.reason, other.held_amount) == (one.deposit_id, "wrong_token", "2")
    sent = (await refund_env.refund_deposit(other.deposit_id)).resource
    assert (sent.amount, sent.token) == ("2", other.token)
    await refund_env.finish()
    assert (await payment_env.read(payment_id, payment_env.test)).status == "paid"
    await refund_env.check_books()


async def test_what_comes_for_another_merchant_is_that_ones_whole(payment_env, refund_env):
    await refund_env.paid("10", "3")
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    await payment_env.reorg(8, "return")
    await payment_env.mine(1 + REQUIRED)
    other = await payment_env.merchant("mer_2")
    async with payment_env.db.transaction() as conn:
        find = "SELECT id FROM deposits WHERE deposit_id = $1"
        pk = (await conn.exec_driver_sql(find, (one.deposit_id,))).scalar_one()
        assert (await lock_deposits(conn, [pk]))[pk].unsent_units == 0
        # As where the other's address is paid in its place: what is stored anew has that one's merchant.
        await conn.exec_driver_sql("UPDATE deposits SET merchant_pk = $2 WHERE id = $1", (pk, other))
        assert (await lock_deposits(conn, [pk]))[pk].unsent_units == 3_000_000
        await conn.exec_driver_sql(
            "UPDATE deposits SET merchant_pk = $2 WHERE id = $1", (pk, payment_env.test.merchant_pk)
        )


async def test_a_failed_refund_that_is_mined_all_the_same_takes_nothing_of_another_token(payment_env, refund_env):
    await refund_env.paid("10", "3")
    (one,) = await refund_env.waiting()
    refund_id = (await refund_env.refund_deposit(one.deposit_id)).resource.refund_id
    await refund_env.fail(refund_id)
    await payment_env.reorg(8, "return")
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE sandbox_transfers SET contract = NULL WHERE tx_id = $1", (one.tx_hash,))
    await payment_env.mine(1 + REQUIRED)
    (before,) = await refund_env.waiting()
    await refund_env.mine_failed(refund_id)
    assert await refund_env.waiting() == [before]
    assert await payment_env.balance("USDX") == {"available": 7_000_000}
    await refund_env.check_books()


async def test_the_list_says_how_much_of_a_deposit_can_be_sent_back(payment_env, refund_env):
    await refund_env.paid("10", "3", "2")
    first, second = await refund_env.waiting()
    assert (first.held_amount, first.refundable_amount, second.refundable_amount) == ("3", "3", "2")
    await refund_env.refund_deposit(first.deposit_id, amount="1")
    await refund_env.refund_deposit(second.deposit_id)
    assert [(one.held_amount, one.refundable_amount) for one in await refund_env.waiting()] == [("2", "2")]
    await refund_env.finish()
    await payment_env.reorg(12, "return")
    await payment_env.mine(1 + REQUIRED)
    first, second = await refund_env.waiting()
    assert (first.held_amount, first.refundable_amount) == ("3", "2")
    assert (second.held_amount, second.refundable_amount) == ("2", "0")
    assert (await refund_env.refund_deposit(first.deposit_id)).resource.amount == first.refundable_amount
    await refund_env.check_books()


async def test_a_payment_that_waits_again_asks_for_what_was_sent_back_too(payment_env, refund_env):
    payment_id = await refund_env.paid("3")
    await payment_env.deposit(payment_id, amount="10", confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    await payment_env.reorg(12, "return")
    await payment_env.mine(1)
    assert (await payment_env.read(payment_id, payment_env.test)).status == "detected"
    # The deposit of which nothing was sent back goes for good.
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE sandbox_transfers SET sender = 'gone' WHERE tx_id <> $1", (one.tx_hash,))
    await payment_env.reorg(1, "return")
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("DELETE FROM sandbox_transfers WHERE sender = 'gone'")
    await payment_env.mine(1)
    env = payment_env
    public_id = (await env.read(payment_id, env.test)).public_id
    seen = await get_public(env.db, env.registry.chains, public_id, env.macs)
    assert (seen.status, seen.received_amount, seen.remaining_amount) == ("pending", "10", "3")
    async with env.db.autocommit() as conn:
        page = await load_checkout(conn, public_id, env.macs)
    assert page is not None
    assert (page.expected - page.received) == 3_000_000
    await env.deposit(payment_id, amount="3", confirmations=REQUIRED)
    assert (await env.read(payment_id, env.test)).status == "paid"
    await refund_env.check_books()


async def test_a_refund_is_never_said_to_be_of_the_payment_whose_money_came_in_the_place_of_its_own(
    payment_env, refund_env
):
    await payment_env.change_project(payment_env.test, extended_events=True)
    payment_id = (await payment_env.create(payment_env.test)).payment.payment_id
    await payment_env.deposit(payment_id, payment_env.test, token="MEM", amount="3", confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    refund_id = (await refund_env.refund_deposit(one.deposit_id)).resource.refund_id
    assert (await refund_env.refunds())[refund_id].payment_id == payment_id
    other = await payment_env.project(await payment_env.merchant("mer_2"), "prj_other", "sandbox")
    theirs = (await payment_env.create(other)).payment.payment_id
    hook = "https://other.example/hook"
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE payments SET webhook_url = $2 WHERE payment_id = $1", (theirs, hook))
        # As where another's address is paid in its place, once its call is mined in another block.
        await conn.exec_driver_sql(IS_OF, (one.deposit_id, theirs))
    await refund_env.send()
    assert (await refund_env.refunds())[refund_id].payment_id is None
    assert (await payment_env.data(refund_id))["paymentId"] is None
    async with payment_env.db.transaction() as conn:
        page = await list_refunds(conn, other.project_pk, Part(limit=100), payment_id=theirs)
        assert page.items == []
        told = await conn.exec_driver_sql("SELECT url FROM webhook_deliveries WHERE resource_id = $1", (refund_id,))
        assert set(told.scalars()) == {"https://shop.example/hook"}
        await conn.exec_driver_sql(IS_OF, (one.deposit_id, payment_id))


async def test_a_part_that_comes_again_of_what_a_refund_sent_out_of_available_is_not_offered_once_more(
    payment_env, refund_env
):
    """What is paid anew looks the same, and is first seen after the refund was asked for."""
    payment_id = await refund_env.paid("4", "6")
    await refund_env.refund(payment_id)
    await wait_for(payment_env, 60)
    await payment_env.reorg(8, "return")
    assert (await payment_env.read(payment_id, payment_env.test)).status == "failed"
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("DELETE FROM sandbox_transfers WHERE units = 6000000")
    await wait_for(payment_env, 0)
    await refund_env.finish()
    await payment_env.advance(100_000)
    await payment_env.mine(1 + REQUIRED)
    (one,) = await refund_env.waiting()
    assert (one.held_amount, one.refundable_amount) == ("4", "0")
    with pytest.raises(ConflictError) as raised:
        await refund_env.refund_deposit(one.deposit_id)
    assert raised.value.code == "ALREADY_RESOLVED"
    await payment_env.deposit(payment_id, payment_env.test, amount="3", confirmations=REQUIRED)
    _, fresh = await refund_env.waiting()
    assert (fresh.held_amount, fresh.refundable_amount) == ("3", "3")
    assert (await refund_env.refund_deposit(fresh.deposit_id)).resource.amount == "3"
    await refund_env.finish()
    assert (await refund_env.release(one.deposit_id)).held_amount == "0"
    await refund_env.check_books()
