"""Sending back what was received: never more than that, from held first, and back again when it fails."""

import asyncio

import pytest

from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.sandbox.requests import FailPayout
from tests.support.refunds import CUSTOMER

pytestmark = pytest.mark.slow

PAID = ["payment.detected", "payment.confirming", "payment.paid"]
OVERPAID = [*PAID[:2], "payment.overpaid"]


async def refused(awaitable, kind, code):
    with pytest.raises(kind) as error:
        await awaitable
    assert error.value.code == code


async def test_a_refund_sends_back_all_that_was_received_and_makes_the_payment_refunded(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    made = await refund_env.refund(payment_id, reason="changed their mind")
    refund = made.resource
    assert (refund.status, refund.amount, refund.payment_id, refund.reason) == (
        "requested",
        "10",
        payment_id,
        "changed their mind",
    )
    assert await payment_env.balance("USDX") == {"pending": 10_000_000}
    before = await payment_env.read(payment_id, payment_env.test)
    assert (before.status, before.received_amount, before.refunded_amount) == ("paid", "10", "10")
    await refund_env.send()
    assert (await payment_env.read(payment_id, payment_env.test)).status == "refunded"
    assert await payment_env.events(payment_id) == [*PAID, "payment.refunded"]
    data = await payment_env.data(payment_id)
    sent = (await refund_env.refunds())[refund.refund_id]
    assert sent.status == "broadcast"
    assert (data["refundId"], data["amount"], data["refundedAmount"]) == (refund.refund_id, "10", "10")
    assert (data["status"], data["toAddress"], data["txHash"]) == ("refunded", CUSTOMER, sent.tx_hash)
    await refund_env.finish()
    assert (await refund_env.refunds())[refund.refund_id].status == "completed"
    assert await payment_env.balance("USDX") == {}
    assert await payment_env.events(payment_id) == [*PAID, "payment.refunded"]


async def test_parts_are_refunded_until_nothing_is_left(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    await refund_env.refund(payment_id, amount="4")
    await refused(refund_env.refund(payment_id, amount="6.000001"), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await refund_env.finish()
    assert (await refund_env.refund(payment_id)).resource.amount == "6"
    await refused(refund_env.refund(payment_id), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await refused(refund_env.refund(payment_id, amount="1"), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await refund_env.finish()
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "10"
    assert await payment_env.events(payment_id) == [*PAID, "payment.refunded"]
    first, second = await refund_env.refunds()
    for refund_id, amount in ((first, "6"), (second, "4")):
        assert await payment_env.events(refund_id) == ["refund.sent", "refund.completed"]
        data = await payment_env.data(refund_id)
        assert (data["resource"], data["refundId"], data["paymentId"]) == ("refund", refund_id, payment_id)
        assert (data["amount"], data["status"], data["toAddress"]) == (amount, "completed", CUSTOMER)
    assert [refund.status for refund in (await refund_env.refunds()).values()] == ["completed", "completed"]


async def test_the_held_excess_of_an_overpayment_goes_first(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "held": 3_000_000}
    await refund_env.refund(payment_id, amount="2")
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "held": 1_000_000, "pending": 2_000_000}
    await refund_env.refund(payment_id, amount="4")
    assert await payment_env.balance("USDX") == {"available": 7_000_000, "pending": 6_000_000}
    assert await refund_env.waiting() == []
    await refund_env.finish()
    assert await payment_env.balance("USDX") == {"available": 7_000_000}


async def test_a_refund_never_takes_what_is_held_for_others(payment_env, refund_env):
    await refund_env.paid("13")
    payment_id = await refund_env.paid("10")
    await refund_env.spend(15_000_000)
    await refused(refund_env.refund(payment_id, amount="6"), ForbiddenError, "INSUFFICIENT_BALANCE")
    await refund_env.refund(payment_id, amount="5")
    assert await payment_env.balance("USDX") == {"held": 3_000_000, "pending": 20_000_000}


async def test_without_the_money_a_refund_is_refused_and_nothing_is_counted(payment_env, refund_env):
    first = await refund_env.paid("10")
    await refund_env.refund(first)
    second = await refund_env.paid("10")
    await refund_env.spend(9_000_000)
    await refused(refund_env.refund(second), ForbiddenError, "INSUFFICIENT_BALANCE")
    assert (await payment_env.read(second, payment_env.test)).refunded_amount == "0"
    assert (await refund_env.refund(second, amount="1")).resource.amount == "1"


@pytest.mark.parametrize("amounts, status", [((), "pending"), (("4",), "pending")])
async def test_an_open_payment_is_not_refunded(payment_env, refund_env, amounts, status):
    payment_id = await refund_env.paid(*amounts)
    assert (await payment_env.read(payment_id, payment_env.test)).status == status
    await refused(refund_env.refund(payment_id), ConflictError, "PAYMENT_NOT_REFUNDABLE")


async def test_an_expired_payment_is_not_refunded_and_an_underpaid_one_is(payment_env, refund_env):
    expired, underpaid = await refund_env.paid(), await refund_env.paid("4")
    await payment_env.advance(3601)
    assert (await payment_env.read(underpaid, payment_env.test)).status == "underpaid"
    await refused(refund_env.refund(expired), ConflictError, "PAYMENT_NOT_REFUNDABLE")
    assert (await refund_env.refund(underpaid)).resource.amount == "4"
    await refund_env.finish()
    assert (await payment_env.read(underpaid, payment_env.test)).status == "refunded"


async def test_targets_amounts_and_payments_are_checked(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    contract = payment_env.registry.chains["memory"].token("USDX").contract
    await refused(refund_env.refund(payment_id, toAddress="nowhere"), InvalidError, "INVALID_ADDRESS")
    await refused(refund_env.refund(payment_id, toAddress=contract), InvalidError, "TARGET_IS_CONTRACT")
    for amount in ("0", "-1", "1e1", "1.0000001", "x"):
        await refused(refund_env.refund(payment_id, amount=amount), InvalidError, "INVALID_AMOUNT")
    await refused(refund_env.refund("pay_nothing"), NotFoundError, "PAYMENT_NOT_FOUND")
    await refused(refund_env.refund(payment_id, actor=payment_env.test2), NotFoundError, "PAYMENT_NOT_FOUND")
    await refused(refund_env.refund(payment_id, actor=payment_env.live), NotFoundError, "PAYMENT_NOT_FOUND")
    assert await refund_env.refunds() == {}


async def test_one_key_makes_one_refund(payment_env, refund_env):
    payment_id, other = await refund_env.paid("10"), await refund_env.paid("10")
    first = await refund_env.refund(payment_id, "key", amount="4")
    again = await refund_env.refund(payment_id, "key", amount="4")
    assert (first.replayed, again.replayed, again.resource) == (False, True, first.resource)
    await refused(refund_env.refund(payment_id, "key", amount="5"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    await refused(refund_env.refund(other, "key", amount="4"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    await refused(refund_env.refund(payment_id, "key", idempotencyKey="lock"), InvalidError, "IDEMPOTENCY_KEY_MISMATCH")
    assert len(await refund_env.refunds()) == 1


async def test_a_hundred_twins_make_one_refund(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    made = await asyncio.gather(*(refund_env.refund(payment_id, "key", amount="1") for _ in range(20)))
    assert len({one.resource.refund_id for one in made}) == 1
    assert [one.replayed for one in made].count(False) == 1
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "1"


async def test_refunds_never_exceed_what_was_received_however_many_ask_at_once(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    await refund_env.paid("10")
    results = await asyncio.gather(
        *(refund_env.refund(payment_id, amount="0.5") for _ in range(64)), return_exceptions=True
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    assert len(results) - len(failures) == 26
    assert {failure.code for failure in failures} == {"REFUND_EXCEEDS_RECEIVED"}
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "13"
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "pending": 13_000_000}
    await refund_env.finish()
    assert await payment_env.balance("USDX") == {"available": 10_000_000}


async def test_a_refund_that_fails_puts_everything_back_where_it_was(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    refund = (await refund_env.refund(payment_id, amount="5")).resource
    await refund_env.fail(refund.refund_id)
    failed = (await refund_env.refunds())[refund.refund_id]
    assert failed.status == "failed"
    assert failed.error
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("overpaid", "0")
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "held": 3_000_000}
    assert [one.held_amount for one in await refund_env.waiting()] == ["3"]
    assert (await refund_env.refund(payment_id)).resource.amount == "13"


async def test_a_payment_stays_refunded_while_another_refund_of_it_arrived(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    await refund_env.refund(payment_id, amount="4")
    await refund_env.finish()
    second = (await refund_env.refund(payment_id, amount="6")).resource
    await refund_env.fail(second.refund_id)
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("refunded", "4")
    third = (await refund_env.refund(payment_id)).resource
    assert third.amount == "6"


async def test_a_reorg_after_the_refund_makes_a_debt_and_never_fails(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    await refund_env.refund(payment_id)
    # The deposit vanishes, with the transaction of the refund, which nodes still have and mine again.
    await refund_env.send()
    await payment_env.reorg(4)
    payment = await payment_env.read(payment_id, payment_env.test)
    assert payment.status == "refunded"
    assert (await payment_env.balance("USDX"))["receivable"] == -13_000_000


async def test_what_a_reorg_took_from_held_is_not_given_back_when_the_refund_fails(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    refund = (await refund_env.refund(payment_id)).resource
    await payment_env.sandbox.fail_payout(payment_env.test, FailPayout(payout_id=refund.refund_id))
    # The deposit leaves the chain, and in the same blocks the refund is mined and reverts.
    await payment_env.reorg(4)
    assert (await refund_env.refunds())[refund.refund_id].status == "failed"
    assert await payment_env.balance("USDX") == {}
    await payment_env.mine()
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("failed", "0")


async def test_a_refund_can_be_undone_by_a_reorg_and_arrive_again(payment_env, refund_env):
    payment_id = await refund_env.paid("10")
    refund = (await refund_env.refund(payment_id)).resource
    await refund_env.finish()
    await payment_env.reorg(4, "return")
    assert (await payment_env.read(payment_id, payment_env.test)).status == "refunded"
    await payment_env.mine(4)
    assert (await refund_env.refunds())[refund.refund_id].status == "completed"
    assert await payment_env.events(payment_id) == [*PAID, "payment.refunded"]
    assert await payment_env.balance("USDX") == {}
