"""Money that does not simply belong to an order: what is listed, and what each decision does, once."""

import asyncio

import pytest

from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.payments.recalculate import Recalculate, recalculate
from cambist.services.resolutions import decide
from cambist.services.resolutions.read import list_resolutions
from cambist.services.wallet_addresses import main_wallet
from cambist.testing.memory import MemoryChain
from tests.support.refunds import REQUIRED, Counter
from tests.support.shop import Shop
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


async def refused(awaitable, code):
    with pytest.raises(ConflictError) as error:
        await awaitable
    assert error.value.code == code


async def status(till, payment_id):
    return (await till.read(payment_id, till.test)).status


async def late(till, counter, *amounts, **fields):
    """Return a payment that expired before it got these amounts, a day and more after its expiry."""
    payment_id = await counter.paid(**fields)
    await till.advance(3601 + 2 * 86_400)
    for amount in amounts:
        await till.deposit(payment_id, amount=amount, confirmations=REQUIRED)
    return payment_id


async def test_what_belongs_to_an_order_is_not_listed(till, counter):
    await counter.paid("10")
    waiting = await counter.paid("4")
    assert await counter.waiting() == []
    await till.advance(3601)
    assert await status(till, waiting) == "underpaid"
    assert await counter.waiting() == []


async def test_every_reason_is_listed_and_can_be_asked_for(till, counter):
    surplus = await counter.paid("13")
    late_one = await late(till, counter, "10")
    open_one = await counter.paid()
    await till.deposit(open_one, token="MEM", amount="1", confirmations=REQUIRED)
    await till.deposit(open_one, chain="other", token="USDX", amount="10", confirmations=REQUIRED)
    found = {one.reason: one for one in await counter.waiting()}
    assert set(found) == {"surplus", "late", "wrong_token", "wrong_chain"}
    assert (found["surplus"].payment_id, found["surplus"].held_amount, found["surplus"].amount) == (surplus, "3", "13")
    assert (found["late"].payment_id, found["late"].payment_status) == (late_one, "expired")
    assert (found["wrong_token"].token, found["wrong_chain"].chain) == ("MEM", "other")
    assert {reason for reason, one in found.items() if one.can_accept} == {"surplus", "late"}
    assert [one.reason for one in await counter.waiting(reason="late")] == ["late"]
    assert [one.reason for one in await counter.waiting(chain="other")] == ["wrong_chain"]


async def test_released_money_is_the_merchants_and_its_payment_stays(till, counter):
    payment_id = await late(till, counter, "10")
    (one,) = await counter.waiting()
    released = await counter.release(one.deposit_id)
    assert (released.resolution, released.held_amount) == ("released", "0")
    assert await till.balance("USDX") == {"available": 10_000_000}
    assert await status(till, payment_id) == "expired"
    assert await counter.waiting() == []
    assert (await counter.release(one.deposit_id)).resolution == "released"
    assert await till.balance("USDX") == {"available": 10_000_000}
    await refused(counter.accept(one.deposit_id), "ALREADY_RESOLVED")
    await refused(counter.refund_deposit(one.deposit_id), "ALREADY_RESOLVED")
    assert await till.events(payment_id) == ["payment.expired"]


async def test_accepted_late_money_pays_the_order_in_all_its_states(till, counter):
    payment_id = await late(till, counter, "10")
    (one,) = await counter.waiting()
    accepted = await counter.accept(one.deposit_id)
    assert (accepted.resolution, accepted.payment_status, accepted.held_amount) == ("accepted", "paid", "0")
    assert await till.events(payment_id) == ["payment.expired", *PAID]
    assert await till.balance("USDX") == {"available": 10_000_000}
    assert (await counter.accept(one.deposit_id)) == accepted
    assert await till.events(payment_id) == ["payment.expired", *PAID]


async def test_accepted_late_money_that_is_not_enough_makes_it_underpaid_until_the_rest_is_accepted(till, counter):
    payment_id = await late(till, counter, "4", "7")
    first, second = await counter.waiting()
    assert (await counter.accept(first.deposit_id)).payment_status == "underpaid"
    assert await till.balance("USDX") == {"available": 4_000_000, "held": 7_000_000}
    assert (await counter.accept(second.deposit_id)).payment_status == "overpaid"
    assert await till.balance("USDX") == {"available": 11_000_000}
    assert await till.events(payment_id) == ["payment.expired", *OVERPAID]


async def test_a_late_fiat_payment_is_accepted_at_its_old_rate(till, counter):
    payment_id = await late(till, counter, "10", pricingMode="fiat", fiatCurrency="usd", amount="10")
    (one,) = await counter.waiting()
    assert (await counter.accept(one.deposit_id)).payment_status == "paid"
    assert await till.events(payment_id) == ["payment.expired", *PAID]


@pytest.mark.parametrize("decision", ["release", "refund_deposit"])
async def test_a_payment_whose_money_was_set_aside_gets_no_new_rate(till, counter, decision):
    payment_id = await late(till, counter, "4", pricingMode="fiat", fiatCurrency="usd", amount="10")
    (one,) = await counter.waiting()
    await getattr(counter, decision)(one.deposit_id)
    async with till.db.transaction() as conn:
        asked = recalculate(
            conn,
            till.test,
            payment_id,
            Recalculate(),
            chains=till.registry.chains,
            rates=till.rates,
            clock=till.clock,
            ids=till.ids,
        )
        await refused(asked, "MONEY_SET_ASIDE")


async def test_accepted_surplus_goes_to_available_and_changes_no_status(till, counter):
    payment_id = await counter.paid("10", "2", "3")
    first, second = await counter.waiting()
    assert (first.held_amount, second.held_amount) == ("2", "3")
    assert (await counter.accept(first.deposit_id)).payment_status == "paid"
    assert await till.balance("USDX") == {"available": 12_000_000, "held": 3_000_000}
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.received_amount) == ("paid", "15")
    assert [one.deposit_id for one in await counter.waiting()] == [second.deposit_id]
    await till.mine(3)
    assert await till.balance("USDX") == {"available": 12_000_000, "held": 3_000_000}
    assert await till.events(payment_id) == PAID


async def test_a_refunded_deposit_leaves_the_status_and_counts_to_what_was_sent_back(till, counter):
    payment_id = await counter.paid("13")
    (one,) = await counter.waiting()
    made = await counter.refund_deposit(one.deposit_id)
    assert (made.refund.amount, made.refund.deposit_id, made.refund.payment_id) == ("3", one.deposit_id, payment_id)
    assert await till.balance("USDX") == {"available": 10_000_000, "pending": 3_000_000}
    again = await counter.refund_deposit(one.deposit_id)
    assert (again.replayed, again.refund.refund_id) == (True, made.refund.refund_id)
    await refused(counter.refund_deposit(one.deposit_id, amount="2"), "ALREADY_RESOLVED")
    await counter.finish()
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.received_amount, payment.refunded_amount) == ("overpaid", "13", "3")
    assert await till.events(payment_id) == OVERPAID
    assert (await counter.refund(payment_id)).refund.amount == "10"


async def test_what_is_left_of_a_deposit_after_a_part_went_back_is_still_listed(till, counter):
    await counter.paid("13")
    (one,) = await counter.waiting()
    await counter.refund_deposit(one.deposit_id, amount="1")
    assert [left.held_amount for left in await counter.waiting()] == ["2"]
    await refused(counter.refund_deposit(one.deposit_id, amount="2.000001"), "REFUND_EXCEEDS_HELD")
    assert (await counter.release(one.deposit_id)).resolution == "released"
    assert await till.balance("USDX") == {"available": 12_000_000, "pending": 1_000_000}


async def test_a_refund_of_a_deposit_that_fails_puts_it_back_on_the_list(till, counter):
    payment_id = await late(till, counter, "10")
    (one,) = await counter.waiting()
    refund = (await counter.refund_deposit(one.deposit_id)).refund
    assert await counter.waiting() == []
    await counter.fail(refund.refund_id)
    (back,) = await counter.waiting()
    assert (back.deposit_id, back.held_amount, back.resolution) == (one.deposit_id, "10", None)
    assert (await till.read(payment_id, till.test)).refunded_amount == "0"
    assert (await counter.accept(one.deposit_id)).payment_status == "paid"


@pytest.mark.parametrize("fields", [{"token": "MEM", "amount": "1"}, {"chain": "other", "token": "USDX"}])
async def test_a_wrong_deposit_is_never_accepted_and_can_be_released_as_what_it_is(till, counter, fields):
    payment_id = await counter.paid()
    await till.deposit(payment_id, **{"amount": "10", **fields}, confirmations=REQUIRED)
    (one,) = await counter.waiting()
    await refused(counter.accept(one.deposit_id), "CANNOT_ACCEPT")
    await counter.release(one.deposit_id)
    assert set(await till.balance(fields["token"], fields.get("chain", "memory"))) == {"available"}
    assert await status(till, payment_id) == "pending"


async def test_a_deposit_on_the_wrong_chain_is_sent_back_from_that_chain(till, counter):
    payment_id = await counter.paid()
    await till.deposit(payment_id, chain="other", token="USDX", amount="10", confirmations=REQUIRED)
    (one,) = await counter.waiting()
    refund = (await counter.refund_deposit(one.deposit_id)).refund
    assert (refund.chain, refund.payment_id) == ("other", payment_id)
    await counter.finish("other")
    assert (await counter.refunds())[refund.refund_id].status == "completed"
    assert await till.balance("USDX", "other") == {}
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.refunded_amount) == ("pending", "0")


async def test_a_deposit_of_an_open_payment_is_nobodys_to_decide_about(till, counter):
    payment_id = await counter.paid("4")
    async with till.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT deposit_id FROM deposits")
        deposit_id = found.scalar_one()
    for decision in (counter.accept, counter.release, counter.refund_deposit):
        await refused(decision(deposit_id), "NOT_RESOLVABLE")
    await till.deposit(payment_id, amount="6")
    await refused(counter.release(await newest(till)), "NOT_RESOLVABLE")
    with pytest.raises(NotFoundError):
        await counter.release("dep_nothing")


async def newest(till):
    async with till.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT deposit_id FROM deposits ORDER BY id DESC LIMIT 1")
        return found.scalar_one()


async def test_of_different_decisions_at_once_one_wins(till, counter):
    for _ in range(3):
        payment_id = await late(till, counter, "10")
        one = (await counter.waiting())[-1]
        before = await till.balance("USDX")
        results = await asyncio.gather(
            counter.accept(one.deposit_id),
            counter.refund_deposit(one.deposit_id),
            counter.release(one.deposit_id),
            return_exceptions=True,
        )
        lost = [result for result in results if isinstance(result, ConflictError)]
        assert [error.code for error in lost] == ["ALREADY_RESOLVED"] * 2
        after = await till.balance("USDX")
        assert sum(after.values()) == sum(before.values())
        resolution = (await counter.resolution(one.deposit_id)).resolution
        assert (await status(till, payment_id) == "paid") == (resolution == "accepted")


async def test_released_and_returned_money_does_not_pay_for_the_order(till, counter):
    payment_id = await counter.paid("4")
    await till.advance(3601)
    # In time by the grace, and not enough.
    await till.deposit(payment_id, amount="3", confirmations=REQUIRED)
    await till.deposit(payment_id, amount="2", confirmations=REQUIRED)
    first, second = await counter.waiting()
    await counter.release(first.deposit_id)
    await counter.refund_deposit(second.deposit_id)
    await till.deposit(payment_id, amount="5", confirmations=REQUIRED)
    payment = await till.read(payment_id, till.test)
    assert (payment.status, payment.received_amount) == ("underpaid", "14")
    await till.deposit(payment_id, amount="1", confirmations=REQUIRED)
    assert await status(till, payment_id) == "paid"
    assert await till.balance("USDX") == {"available": 13_000_000}


@pytest.mark.parametrize("decision, status_after", [("release", "expired"), ("accept", "paid")])
async def test_a_debt_is_repaid_first(till, counter, decision, status_after):
    await counter.paid("6", amount="6")
    await counter.spend(6_000_000)
    await till.reorg(4)
    assert await till.balance("USDX") == {"pending": 6_000_000, "receivable": -6_000_000}
    await late(till, counter, "10")
    (one,) = await counter.waiting()
    assert (await getattr(counter, decision)(one.deposit_id)).payment_status == status_after
    assert await till.balance("USDX") == {"pending": 6_000_000, "available": 4_000_000}


async def test_a_decision_ends_with_the_life_of_its_deposit(till, counter):
    payment_id = await counter.paid("10", "2")
    (one,) = await counter.waiting()
    await counter.accept(one.deposit_id)
    assert await till.balance("USDX") == {"available": 12_000_000}
    await till.reorg(4, "return")
    assert (await till.read(payment_id, till.test)).received_amount == "10"
    assert await till.balance("USDX") == {"available": 10_000_000}
    await till.mine(1 + REQUIRED)
    (back,) = await counter.waiting()
    assert (back.deposit_id, back.resolution, back.held_amount) == (one.deposit_id, None, "2")
    assert await till.balance("USDX") == {"available": 10_000_000, "held": 2_000_000}
    await counter.release(one.deposit_id)
    assert await till.balance("USDX") == {"available": 12_000_000}
    await till.reorg(4)
    assert await till.balance("USDX") == {"available": 10_000_000}
    assert await counter.waiting() == []


async def test_money_that_comes_back_after_it_was_sent_back_pays_for_that(till, counter):
    await counter.paid("10", "2")
    (one,) = await counter.waiting()
    await counter.refund_deposit(one.deposit_id)
    await counter.finish()
    await till.reorg(8, "return")
    await till.mine(1 + REQUIRED)
    (back,) = await counter.waiting()
    assert await till.balance("USDX") == {"available": 8_000_000, "held": 2_000_000}
    await counter.release(back.deposit_id)
    assert await till.balance("USDX") == {"available": 10_000_000}


async def test_what_comes_for_a_failed_order_and_is_not_enough_is_released_or_sent_back(till, counter):
    payment_id = await counter.paid("4", "6")
    await till.advance(3601)
    await till.reorg(4)
    assert await status(till, payment_id) == "failed"
    await till.deposit(payment_id, amount="3", confirmations=REQUIRED)
    (one,) = await counter.waiting()
    assert (one.reason, one.held_amount, one.can_accept) == ("failed", "3", False)
    await refused(counter.accept(one.deposit_id), "CANNOT_ACCEPT")
    await counter.refund_deposit(one.deposit_id)
    await counter.finish()
    assert (await till.read(payment_id, till.test)).refunded_amount == "3"
    assert await till.balance("USDX") == {"available": 4_000_000}


async def test_what_came_to_the_wallets_own_address_is_listed_and_can_be_released(till, counter):
    desk, actor = counter.desk, till.live
    family = till.registry.families["memory"]
    async with till.db.transaction() as conn:
        wallet = await main_wallet(conn, desk.keys, family, actor.merchant_row, "live")
    chain = MemoryChain(till.registry.chains["memory"])
    usdx = chain.info.token("USDX")
    shop = Shop(till.db, family, till.clock, till.ids)
    watcher = shop.watcher(chain)
    await shop.look(watcher)
    chain.transfer(usdx, wallet.address, 5_000_000)
    chain.mine(1 + chain.info.confirmations)
    await shop.look(watcher)
    async with till.db.transaction() as conn:
        page = await list_resolutions(conn, actor, reason=None, chain=None, page=1, limit=25)
        elsewhere = await list_resolutions(conn, till.test, reason=None, chain=None, page=1, limit=25)
    (one,) = page.resolutions
    assert (one.reason, one.payment_id, one.can_accept, one.address) == ("unexpected", None, False, wallet.address)
    assert elsewhere.total == 0
    async with till.db.transaction() as conn:
        await refused(decide.accept(conn, desk, actor, one.deposit_id), "CANNOT_ACCEPT")
    async with till.db.transaction() as conn:
        released = await decide.release(conn, desk, actor, one.deposit_id)
    assert (released.resolution.resolution, released.resolution.held_amount) == ("released", "0")
