"""Sending back what was received: never more than that, from held first, and back again when it fails."""

import asyncio

import pytest

from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.sandbox.requests import FailPayout
from tests.support.refunds import CUSTOMER, Counter
from tests.support.till import Till

PAID = ["payment.detected", "payment.confirming", "payment.paid"]
OVERPAID = [*PAID[:2], "payment.overpaid"]


@pytest.fixture
async def till(db, clock, ids):
    return await Till(db, clock, ids).open()


@pytest.fixture
async def counter(till):
    counter = Counter(till)
    yield counter
    await counter.check_books()


async def refused(awaitable, kind, code):
    with pytest.raises(kind) as error:
        await awaitable
    assert error.value.code == code


async def test_a_refund_sends_back_all_that_was_received_and_makes_the_payment_refunded(till, counter):
    payment_id = await counter.paid("10")
    made = await counter.refund(payment_id, reason="changed their mind")
    refund = made.refund
    assert (refund.status, refund.amount, refund.payment_id, refund.reason) == (
        "requested",
        "10",
        payment_id,
        "changed their mind",
    )
    assert await till.balance("USDX") == {"pending": 10_000_000}
    before = await till.read(payment_id, till.test)
    assert (before.status, before.received_amount, before.refunded_amount) == ("paid", "10", "10")
    await counter.send()
    assert (await till.read(payment_id, till.test)).status == "refunded"
    assert await till.events(payment_id) == [*PAID, "payment.refunded"]
    data = await till.data(payment_id)
    sent = (await counter.refunds())[refund.refund_id]
    assert sent.status == "broadcast"
    assert (data["refundId"], data["amount"], data["refundedAmount"]) == (refund.refund_id, "10", "10")
    assert (data["status"], data["toAddress"], data["txHash"]) == ("refunded", CUSTOMER, sent.tx_hash)
    await counter.finish()
    assert (await counter.refunds())[refund.refund_id].status == "completed"
    assert await till.balance("USDX") == {}
    assert await till.events(payment_id) == [*PAID, "payment.refunded"]


async def test_parts_are_refunded_until_nothing_is_left(till, counter):
    payment_id = await counter.paid("10")
    await counter.refund(payment_id, amount="4")
    await refused(counter.refund(payment_id, amount="6.000001"), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await counter.finish()
    assert (await counter.refund(payment_id)).refund.amount == "6"
    await refused(counter.refund(payment_id), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await refused(counter.refund(payment_id, amount="1"), ConflictError, "REFUND_EXCEEDS_RECEIVED")
    await counter.finish()
    assert (await till.read(payment_id, till.test)).refunded_amount == "10"
    assert await till.events(payment_id) == [*PAID, "payment.refunded", "payment.refunded"]
    assert [refund.status for refund in (await counter.refunds()).values()] == ["completed", "completed"]


async def test_the_held_excess_of_an_overpayment_goes_first(till, counter):
    payment_id = await counter.paid("13")
    assert await till.balance("USDX") == {"available": 10_000_000, "held": 3_000_000}
    await counter.refund(payment_id, amount="2")
    assert await till.balance("USDX") == {"available": 10_000_000, "held": 1_000_000, "pending": 2_000_000}
    await counter.refund(payment_id, amount="4")
    assert await till.balance("USDX") == {"available": 7_000_000, "pending": 6_000_000}
    assert await counter.waiting() == []
    await counter.finish()
    assert await till.balance("USDX") == {"available": 7_000_000}


async def test_a_refund_never_takes_what_is_held_for_others(till, counter):
    await counter.paid("13")
    payment_id = await counter.paid("10")
    await counter.spend(15_000_000)
    await refused(counter.refund(payment_id, amount="6"), ForbiddenError, "INSUFFICIENT_BALANCE")
    await counter.refund(payment_id, amount="5")
    assert await till.balance("USDX") == {"held": 3_000_000, "pending": 20_000_000}


async def test_without_the_money_a_refund_is_refused_and_nothing_is_counted(till, counter):
    first = await counter.paid("10")
    await counter.refund(first)
    second = await counter.paid("10")
    await counter.spend(9_000_000)
    await refused(counter.refund(second), ForbiddenError, "INSUFFICIENT_BALANCE")
    assert (await till.read(second, till.test)).refunded_amount == "0"
    assert (await counter.refund(second, amount="1")).refund.amount == "1"


@pytest.mark.parametrize("amounts, status", [((), "pending"), (("4",), "pending")])
async def test_an_open_payment_is_not_refunded(till, counter, amounts, status):
    payment_id = await counter.paid(*amounts)
    assert (await till.read(payment_id, till.test)).status == status
    await refused(counter.refund(payment_id), ConflictError, "PAYMENT_NOT_REFUNDABLE")


async def test_an_expired_payment_is_not_refunded_and_an_underpaid_one_is(till, counter):
    expired, underpaid = await counter.paid(), await counter.paid("4")
    await till.advance(3601)
    assert (await till.read(underpaid, till.test)).status == "underpaid"
    await refused(counter.refund(expired), ConflictError, "PAYMENT_NOT_REFUNDABLE")
    assert (await counter.refund(underpaid)).refund.amount == "4"
    await counter.finish()
    assert (await till.read(underpaid, till.test)).status == "refunded"


async def test_targets_amounts_and_payments_are_checked(till, counter):
    payment_id = await counter.paid("10")
    contract = till.registry.chains["memory"].token("USDX").contract
    await refused(counter.refund(payment_id, toAddress="nowhere"), InvalidError, "INVALID_ADDRESS")
    await refused(counter.refund(payment_id, toAddress=contract), InvalidError, "TARGET_IS_CONTRACT")
    for amount in ("0", "-1", "1e1", "1.0000001", "x"):
        await refused(counter.refund(payment_id, amount=amount), InvalidError, "INVALID_AMOUNT")
    await refused(counter.refund("pay_nothing"), NotFoundError, "PAYMENT_NOT_FOUND")
    await refused(counter.refund(payment_id, actor=till.test2), NotFoundError, "PAYMENT_NOT_FOUND")
    await refused(counter.refund(payment_id, actor=till.live), NotFoundError, "PAYMENT_NOT_FOUND")
    assert await counter.refunds() == {}


async def test_one_key_makes_one_refund(till, counter):
    payment_id, other = await counter.paid("10"), await counter.paid("10")
    first = await counter.refund(payment_id, "key", amount="4")
    again = await counter.refund(payment_id, "key", amount="4")
    assert (first.replayed, again.replayed, again.refund) == (False, True, first.refund)
    await refused(counter.refund(payment_id, "key", amount="5"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    await refused(counter.refund(other, "key", amount="4"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    await refused(counter.refund(payment_id, "key", idempotencyKey="lock"), InvalidError, "IDEMPOTENCY_KEY_MISMATCH")
    assert len(await counter.refunds()) == 1


async def test_a_hundred_twins_make_one_refund(till, counter):
    payment_id = await counter.paid("10")
    made = await asyncio.gather(*(counter.refund(payment_id, "key", amount="1") for _ in range(20)))
    assert len({one.refund.refund_id for one in made}) == 1
    assert [one.replayed for one in made].count(False) == 1
    assert (await till.read(payment_id, till.test)).refunded_amount == "1"


async def test_refunds_never_exceed_what_was_received_however_many_ask_at_once(till, counter):
    payment_id = await counter.paid("13")
    await counter.paid("10")
    results = await asyncio.gather(
        *(counter.refund(payment_id, amount="0.5") for _ in range(64)), return_exceptions=True
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    assert len(results) - len(failures) == 26
    assert {failure.code for failure in failures} == {"REFUND_EXCEEDS_RECEIVED"}
    assert (await till.read(payment_id, till.test)).refunded_amount == "13"
    assert await till.balance("USDX") == {"available": 10_000_000, "pending": 13_000_000}
    await counter.finish()
    assert await till.balance("USDX") == {"available": 10_000_000}


async def test_a_refund_that_fails_puts_everything_back_where_it_was(till, counter):
    payment_id = await counter.paid("13")
    refund = (await counter.refund(payment_id, amount="5")).refund
    await counter.fail(refund.refund_id)
    failed = (await counter.refunds())[refund.refund_id]
    assert failed.status == "failed"
    assert failed.error
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.refunded_amount) == ("overpaid", "0")
    assert await till.balance("USDX") == {"available": 10_000_000, "held": 3_000_000}
    assert [one.held_amount for one in await counter.waiting()] == ["3"]
    assert (await counter.refund(payment_id)).refund.amount == "13"


async def test_a_payment_stays_refunded_while_another_refund_of_it_arrived(till, counter):
    payment_id = await counter.paid("10")
    await counter.refund(payment_id, amount="4")
    await counter.finish()
    second = (await counter.refund(payment_id, amount="6")).refund
    await counter.fail(second.refund_id)
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.refunded_amount) == ("refunded", "4")
    third = (await counter.refund(payment_id)).refund
    assert third.amount == "6"


async def test_a_reorg_after_the_refund_makes_a_debt_and_never_fails(till, counter):
    payment_id = await counter.paid("13")
    await counter.refund(payment_id)
    # The deposit vanishes, with the transaction of the refund, which nodes still have and mine again.
    await counter.send()
    await till.reorg(4)
    payment = await till.read(payment_id, till.test)
    assert payment.status == "refunded"
    assert (await till.balance("USDX"))["receivable"] == -13_000_000


async def test_what_a_reorg_took_from_held_is_not_given_back_when_the_refund_fails(till, counter):
    payment_id = await counter.paid("13")
    refund = (await counter.refund(payment_id)).refund
    await till.sandbox.fail_payout(till.test, FailPayout(payout_id=refund.refund_id))
    # The deposit leaves the chain, and in the same blocks the refund is mined and reverts.
    await till.reorg(4)
    assert (await counter.refunds())[refund.refund_id].status == "failed"
    assert await till.balance("USDX") == {}
    await till.mine()
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.refunded_amount) == ("failed", "0")


async def test_a_refund_can_be_undone_by_a_reorg_and_arrive_again(till, counter):
    payment_id = await counter.paid("10")
    refund = (await counter.refund(payment_id)).refund
    await counter.finish()
    await till.reorg(4, "return")
    assert (await till.read(payment_id, till.test)).status == "refunded"
    await till.mine(4)
    assert (await counter.refunds())[refund.refund_id].status == "completed"
    assert await till.events(payment_id) == [*PAID, "payment.refunded"]
    assert await till.balance("USDX") == {}
