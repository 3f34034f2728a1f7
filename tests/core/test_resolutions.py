"""Money that does not simply belong to an order: what is listed, and what each decision does, once."""

import asyncio

import pytest
from sqlalchemy import text

from cambist.services.addresses.wallets import main_wallet
from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.listing import Part
from cambist.services.receiving.payments.recalculate import Recalculate, recalculate
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.reversals.resolutions import decide
from cambist.services.reversals.resolutions.read import list_resolutions
from cambist.testing.memory import MemoryChain
from tests.support.refunds import CUSTOMER, REQUIRED
from tests.support.shop import Shop

pytestmark = pytest.mark.slow

PAID = ["payment.detected", "payment.confirming", "payment.paid"]
OVERPAID = [*PAID[:2], "payment.overpaid"]


async def refused(awaitable, code):
    with pytest.raises(ConflictError) as error:
        await awaitable
    assert error.value.code == code


async def status(payment_env, payment_id):
    return (await payment_env.read(payment_id, payment_env.test)).status


async def late(payment_env, refund_env, *amounts, **fields):
    """Return a payment that expired before it got these amounts, a day and more after its expiry."""
    payment_id = await refund_env.paid(**fields)
    await payment_env.advance(3601 + 2 * 86_400)
    for amount in amounts:
        await payment_env.deposit(payment_id, amount=amount, confirmations=REQUIRED)
    return payment_id


async def test_what_belongs_to_an_order_is_not_listed(payment_env, refund_env):
    await refund_env.paid("10")
    waiting = await refund_env.paid("4")
    assert await refund_env.waiting() == []
    await payment_env.advance(3601)
    assert await status(payment_env, waiting) == "underpaid"
    assert await refund_env.waiting() == []


async def test_every_reason_is_listed_and_can_be_asked_for(payment_env, refund_env):
    surplus = await refund_env.paid("13")
    late_one = await late(payment_env, refund_env, "10")
    open_one = await refund_env.paid()
    await payment_env.deposit(open_one, token="MEM", amount="1", confirmations=REQUIRED)
    await payment_env.deposit(open_one, chain="other", token="USDX", amount="10", confirmations=REQUIRED)
    found = {one.reason: one for one in await refund_env.waiting()}
    assert set(found) == {"surplus", "late", "wrong_token", "wrong_chain"}
    assert (found["surplus"].payment_id, found["surplus"].held_amount, found["surplus"].amount) == (surplus, "3", "13")
    assert (found["late"].payment_id, found["late"].payment_status) == (late_one, "expired")
    assert (found["wrong_token"].token, found["wrong_chain"].chain) == ("MEM", "other")
    assert {reason for reason, one in found.items() if one.can_accept} == {"surplus", "late"}
    assert [one.reason for one in await refund_env.waiting(reason="late")] == ["late"]
    assert [one.reason for one in await refund_env.waiting(chain="other")] == ["wrong_chain"]
    assert {one.reason for one in await refund_env.waiting(payment_id=open_one)} == {"wrong_token", "wrong_chain"}
    assert await refund_env.waiting(payment_id="pay_none") == []


async def test_what_is_decided_is_not_read_to_find_what_waits(payment_env, refund_env):
    async with payment_env.db.transaction() as conn:
        for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off"):
            await conn.exec_driver_sql(f"SET LOCAL {setting}")
        scans = "SELECT pg_stat_get_xact_numscans('ix_deposits_held'::regclass)"
        before = (await conn.exec_driver_sql(scans)).scalar_one()  # of this connection, since it last told its sums
        await list_resolutions(conn, payment_env.test, Part())
        # One for the page, one to count, and one for how far both look.
        assert (await conn.exec_driver_sql(scans)).scalar_one() == before + 3


async def test_released_money_is_the_merchants_and_its_payment_stays(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    released = await refund_env.release(one.deposit_id)
    assert (released.resolution, released.held_amount) == ("released", "0")
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    assert await status(payment_env, payment_id) == "expired"
    assert await refund_env.waiting() == []
    assert (await refund_env.release(one.deposit_id)).resolution == "released"
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    await refused(refund_env.accept(one.deposit_id), "ALREADY_RESOLVED")
    await refused(refund_env.refund_deposit(one.deposit_id), "ALREADY_RESOLVED")
    assert await payment_env.events(payment_id) == ["payment.expired"]


async def test_accepted_late_money_pays_the_order_in_all_its_states(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    accepted = await refund_env.accept(one.deposit_id)
    assert (accepted.resolution, accepted.payment_status, accepted.held_amount) == ("accepted", "paid", "0")
    assert await payment_env.events(payment_id) == ["payment.expired", *PAID]
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    assert (await refund_env.accept(one.deposit_id)) == accepted
    assert await payment_env.events(payment_id) == ["payment.expired", *PAID]


async def test_accepted_late_money_that_is_not_enough_makes_it_underpaid_until_the_rest_is_accepted(
    payment_env, refund_env
):
    payment_id = await late(payment_env, refund_env, "4", "7")
    first, second = await refund_env.waiting()
    assert (await refund_env.accept(first.deposit_id)).payment_status == "underpaid"
    assert await payment_env.balance("USDX") == {"available": 4_000_000, "held": 7_000_000}
    assert (await refund_env.accept(second.deposit_id)).payment_status == "overpaid"
    assert await payment_env.balance("USDX") == {"available": 11_000_000}
    assert await payment_env.events(payment_id) == ["payment.expired", "payment.underpaid", *OVERPAID]
    assert [await payment_env.events(one.deposit_id) for one in (first, second)] == [["payment.held"]] * 2
    told = await payment_env.data(second.deposit_id)
    assert (told["resource"], told["depositId"], told["paymentId"]) == ("deposit", second.deposit_id, payment_id)
    assert (told["reason"], told["heldAmount"], told["status"]) == ("late", "7", "expired")


async def test_every_deposit_of_the_list_was_told_of_once_with_its_reason(payment_env, refund_env):
    paid = await refund_env.paid("10", "3", "2")
    for token, chain in (("MEM", "memory"), ("USDX", "other")):
        await payment_env.deposit(paid, amount="1", token=token, chain=chain, confirmations=REQUIRED)
    listed = await refund_env.waiting()
    assert [one.reason for one in listed] == ["surplus", "surplus", "wrong_token", "wrong_chain"]
    for one in listed:
        assert await payment_env.events(one.deposit_id) == ["payment.held"]
        told = await payment_env.data(one.deposit_id)
        assert (told["reason"], told["heldAmount"], told["amount"]) == (one.reason, one.held_amount, one.amount)
        assert (told["paymentId"], told["chain"], told["token"]) == (paid, one.chain, one.token)
    await payment_env.mine(3)
    assert [await payment_env.events(one.deposit_id) for one in listed] == [["payment.held"]] * 4


async def test_a_project_without_extended_events_hears_of_the_catalogue_alone(payment_env, refund_env):
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE projects SET extended_events = false")
    payment_id = await refund_env.paid("4", "9")
    await refund_env.refund(payment_id)
    await refund_env.finish()
    await payment_env.reorg(9)
    async with payment_env.db.autocommit() as conn:
        told = await conn.exec_driver_sql("SELECT DISTINCT event FROM webhook_events")
        assert set(told.scalars()) == {*OVERPAID, "payment.refunded"}


async def test_a_part_is_told_of_and_shown_with_its_transaction(payment_env, refund_env):
    payment_id = await refund_env.paid("4")
    payment = await payment_env.read(payment_id, payment_env.test)
    (deposit,) = payment.deposits
    assert (payment.status, payment.received_amount, payment.tx_hash) == ("pending", "4", deposit.tx_hash)
    async with payment_env.db.autocommit() as conn:
        deposit_id = await conn.scalar(text("SELECT deposit_id FROM deposits"))
    assert await payment_env.events(deposit_id) == ["payment.partial"]
    told = await payment_env.data(deposit_id)
    assert (told["amount"], told["receivedAmount"], told["expectedAmount"]) == ("4", "4", "10")
    assert (told["txHash"], told["status"], told["paymentId"]) == (deposit.tx_hash, "pending", payment_id)
    await payment_env.reorg(4)
    assert (await payment_env.read(payment_id, payment_env.test)).tx_hash is None


async def test_a_late_fiat_payment_is_accepted_at_its_old_rate(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10", pricingMode="fiat", fiatCurrency="usd", amount="10")
    (one,) = await refund_env.waiting()
    assert (await refund_env.accept(one.deposit_id)).payment_status == "paid"
    assert await payment_env.events(payment_id) == ["payment.expired", *PAID]


@pytest.mark.parametrize("decision", ["release", "refund_deposit"])
async def test_a_payment_whose_money_was_set_aside_gets_no_new_rate(payment_env, refund_env, decision):
    payment_id = await late(payment_env, refund_env, "4", pricingMode="fiat", fiatCurrency="usd", amount="10")
    (one,) = await refund_env.waiting()
    await getattr(refund_env, decision)(one.deposit_id)
    async with payment_env.db.transaction() as conn:
        asked = recalculate(
            conn,
            payment_env.test,
            payment_id,
            Recalculate(),
            chains=payment_env.registry.chains,
            token_rules=payment_env.context.token_rules,
            rates=payment_env.rates,
            clock=payment_env.clock,
            ids=payment_env.ids,
            macs=payment_env.macs,
        )
        await refused(asked, "MONEY_SET_ASIDE")


async def test_accepted_surplus_goes_to_available_and_changes_no_status(payment_env, refund_env):
    payment_id = await refund_env.paid("10", "2", "3")
    first, second = await refund_env.waiting()
    assert (first.held_amount, second.held_amount) == ("2", "3")
    assert (await refund_env.accept(first.deposit_id)).payment_status == "paid"
    assert await payment_env.balance("USDX") == {"available": 12_000_000, "held": 3_000_000}
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.received_amount) == ("paid", "15")
    assert [one.deposit_id for one in await refund_env.waiting()] == [second.deposit_id]
    await payment_env.mine(3)
    assert await payment_env.balance("USDX") == {"available": 12_000_000, "held": 3_000_000}
    assert await payment_env.events(payment_id) == PAID


async def test_a_refunded_deposit_leaves_the_status_and_counts_to_what_was_sent_back(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    (one,) = await refund_env.waiting()
    made = await refund_env.refund_deposit(one.deposit_id)
    assert (made.resource.amount, made.resource.deposit_id, made.resource.payment_id) == (
        "3",
        one.deposit_id,
        payment_id,
    )
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "pending": 3_000_000}
    again = await refund_env.refund_deposit(one.deposit_id)
    assert (again.replayed, again.resource.refund_id) == (True, made.resource.refund_id)
    await refused(refund_env.refund_deposit(one.deposit_id, amount="2"), "ALREADY_RESOLVED")
    await refund_env.finish()
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.received_amount, payment.refunded_amount) == ("overpaid", "13", "3")
    assert await payment_env.events(payment_id) == OVERPAID
    assert (await refund_env.refund(payment_id)).resource.amount == "10"


async def test_a_key_that_an_earlier_refund_answered_is_answered_by_it_again(payment_env, refund_env):
    await late(payment_env, refund_env, "2")
    (one,) = await refund_env.waiting()
    made = await refund_env.refund_deposit(one.deposit_id, "first")
    for key in ("second", "second", "first"):
        again = await refund_env.refund_deposit(one.deposit_id, key)
        assert (again.replayed, again.resource) == (True, made.resource)
    assert len(await refund_env.refunds()) == 1


async def test_what_is_left_of_a_deposit_after_a_part_went_back_is_still_listed(payment_env, refund_env):
    await refund_env.paid("13")
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id, amount="1")
    assert [left.held_amount for left in await refund_env.waiting()] == ["2"]
    await refused(refund_env.refund_deposit(one.deposit_id, amount="2.000001"), "REFUND_EXCEEDS_HELD")
    assert (await refund_env.release(one.deposit_id)).resolution == "released"
    assert await payment_env.balance("USDX") == {"available": 12_000_000, "pending": 1_000_000}


async def test_a_refund_of_a_deposit_that_fails_puts_it_back_on_the_list(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    refund = (await refund_env.refund_deposit(one.deposit_id)).resource
    assert await refund_env.waiting() == []
    await refund_env.fail(refund.refund_id)
    (back,) = await refund_env.waiting()
    assert (back.deposit_id, back.held_amount, back.resolution) == (one.deposit_id, "10", None)
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "0"
    assert (await refund_env.accept(one.deposit_id)).payment_status == "paid"


@pytest.mark.parametrize("fields", [{"token": "MEM", "amount": "1"}, {"chain": "other", "token": "USDX"}])
async def test_a_wrong_deposit_is_never_accepted_and_can_be_released_as_what_it_is(payment_env, refund_env, fields):
    payment_id = await refund_env.paid()
    await payment_env.deposit(payment_id, **{"amount": "10", **fields}, confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    await refused(refund_env.accept(one.deposit_id), "CANNOT_ACCEPT")
    await refund_env.release(one.deposit_id)
    assert set(await payment_env.balance(fields["token"], fields.get("chain", "memory"))) == {"available"}
    assert await status(payment_env, payment_id) == "pending"


async def test_a_deposit_on_the_wrong_chain_is_sent_back_from_that_chain(payment_env, refund_env):
    payment_id = await refund_env.paid()
    await payment_env.deposit(payment_id, chain="other", token="USDX", amount="10", confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    refund = (await refund_env.refund_deposit(one.deposit_id)).resource
    assert (refund.chain, refund.payment_id) == ("other", payment_id)
    await refund_env.finish("other")
    assert (await refund_env.refunds())[refund.refund_id].status == "completed"
    assert await payment_env.balance("USDX", "other") == {}
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.refunded_amount) == ("pending", "0")


async def test_a_deposit_of_an_open_payment_is_nobodys_to_decide_about(payment_env, refund_env):
    payment_id = await refund_env.paid("4")
    async with payment_env.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT deposit_id FROM deposits")
        deposit_id = found.scalar_one()
    for decision in (refund_env.accept, refund_env.release, refund_env.refund_deposit):
        await refused(decision(deposit_id), "NOT_RESOLVABLE")
    await payment_env.deposit(payment_id, amount="6")
    await refused(refund_env.release(await newest(payment_env)), "NOT_RESOLVABLE")
    with pytest.raises(NotFoundError):
        await refund_env.release("dep_nothing")


async def newest(payment_env):
    async with payment_env.db.autocommit() as conn:
        found = await conn.exec_driver_sql("SELECT deposit_id FROM deposits ORDER BY id DESC LIMIT 1")
        return found.scalar_one()


async def test_of_different_decisions_at_once_one_wins(payment_env, refund_env):
    for _ in range(3):
        payment_id = await late(payment_env, refund_env, "10")
        one = (await refund_env.waiting())[-1]
        before = await payment_env.balance("USDX")
        results = await asyncio.gather(
            refund_env.accept(one.deposit_id),
            refund_env.refund_deposit(one.deposit_id),
            refund_env.release(one.deposit_id),
            return_exceptions=True,
        )
        lost = [result for result in results if isinstance(result, ConflictError)]
        assert [error.code for error in lost] == ["ALREADY_RESOLVED"] * 2
        after = await payment_env.balance("USDX")
        assert sum(after.values()) == sum(before.values())
        resolution = (await refund_env.resolution(one.deposit_id)).resolution
        assert (await status(payment_env, payment_id) == "paid") == (resolution == "accepted")


async def test_released_and_returned_money_does_not_pay_for_the_order(payment_env, refund_env):
    payment_id = await refund_env.paid("4")
    await payment_env.advance(3601)
    # In time by the grace, and not enough.
    await payment_env.deposit(payment_id, amount="3", confirmations=REQUIRED)
    await payment_env.deposit(payment_id, amount="2", confirmations=REQUIRED)
    first, second = await refund_env.waiting()
    await refund_env.release(first.deposit_id)
    await refund_env.refund_deposit(second.deposit_id)
    await payment_env.deposit(payment_id, amount="5", confirmations=REQUIRED)
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.received_amount) == ("underpaid", "14")
    await payment_env.deposit(payment_id, amount="1", confirmations=REQUIRED)
    assert await status(payment_env, payment_id) == "paid"
    assert await payment_env.balance("USDX") == {"available": 13_000_000}


@pytest.mark.parametrize("decision, status_after", [("release", "expired"), ("accept", "paid")])
async def test_a_debt_is_repaid_first(payment_env, refund_env, decision, status_after):
    await refund_env.paid("6", amount="6")
    await refund_env.spend(6_000_000)
    await payment_env.reorg(4)
    assert await payment_env.balance("USDX") == {"pending": 6_000_000, "receivable": -6_000_000}
    await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    assert (await getattr(refund_env, decision)(one.deposit_id)).payment_status == status_after
    assert await payment_env.balance("USDX") == {"pending": 6_000_000, "available": 4_000_000}


async def test_a_decision_ends_with_the_life_of_its_deposit(payment_env, refund_env):
    payment_id = await refund_env.paid("10", "2")
    (one,) = await refund_env.waiting()
    await refund_env.accept(one.deposit_id)
    assert await payment_env.balance("USDX") == {"available": 12_000_000}
    await payment_env.reorg(4, "return")
    assert (await payment_env.read(payment_id, payment_env.test)).received_amount == "10"
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    await payment_env.mine(1 + REQUIRED)
    (back,) = await refund_env.waiting()
    assert (back.deposit_id, back.resolution, back.held_amount) == (one.deposit_id, None, "2")
    assert await payment_env.balance("USDX") == {"available": 10_000_000, "held": 2_000_000}
    await refund_env.release(one.deposit_id)
    assert await payment_env.balance("USDX") == {"available": 12_000_000}
    await payment_env.reorg(4)
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    assert await refund_env.waiting() == []


async def test_money_that_comes_back_after_it_was_sent_back_pays_for_that(payment_env, refund_env):
    await refund_env.paid("10", "2")
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    await payment_env.reorg(8, "return")
    await payment_env.mine(1 + REQUIRED)
    (back,) = await refund_env.waiting()
    assert await payment_env.balance("USDX") == {"available": 8_000_000, "held": 2_000_000}
    await refund_env.release(back.deposit_id)
    assert await payment_env.balance("USDX") == {"available": 10_000_000}


async def test_what_comes_for_a_failed_order_and_is_not_enough_is_released_or_sent_back(payment_env, refund_env):
    payment_id = await refund_env.paid("4", "6")
    await payment_env.advance(3601)
    await payment_env.reorg(4)
    assert await status(payment_env, payment_id) == "failed"
    await payment_env.deposit(payment_id, amount="3", confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    assert (one.reason, one.held_amount, one.can_accept) == ("failed", "3", False)
    await refused(refund_env.accept(one.deposit_id), "CANNOT_ACCEPT")
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "3"
    assert await payment_env.balance("USDX") == {"available": 4_000_000}


async def come_to_wallet(payment_env, context):
    """Have something come to the wallet's own address, for no order; return that address and the deposit's id."""
    family, actor = payment_env.registry.families["memory"], payment_env.live
    async with payment_env.db.transaction() as conn:
        wallet = await main_wallet(conn, context.keys, family, actor.merchant_pk, "live")
    chain = MemoryChain(payment_env.registry.chains["memory"])
    shop = Shop(payment_env.db, family, payment_env.clock, payment_env.ids)
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    chain.transfer(chain.info.token("USDX"), wallet.address, 5_000_000)
    chain.mine(1 + chain.info.confirmations)
    await shop.poll(watcher)
    async with payment_env.db.transaction() as conn:
        (one,) = (await list_resolutions(conn, actor, Part())).items
    return wallet.address, one.deposit_id


async def test_what_came_to_the_wallets_own_address_is_listed_and_can_be_released(payment_env, refund_env):
    context, actor = refund_env.context, payment_env.live
    wallet, _ = await come_to_wallet(payment_env, context)
    async with payment_env.db.transaction() as conn:
        page = await list_resolutions(conn, actor, Part())
        elsewhere = await list_resolutions(conn, payment_env.test, Part())
    (one,) = page.items
    assert (one.reason, one.payment_id, one.can_accept, one.address) == ("unexpected", None, False, wallet)
    assert elsewhere.total == 0
    async with payment_env.db.transaction() as conn:
        await refused(decide.accept(conn, context, actor, one.deposit_id), "CANNOT_ACCEPT")
    async with payment_env.db.transaction() as conn:
        released = await decide.release(conn, context, actor, one.deposit_id)
    assert (released.resolution.resolution, released.resolution.held_amount) == ("released", "0")


async def test_another_project_that_sends_the_same_back_is_told_that_it_is_decided(payment_env, refund_env):
    """What came for no order is any project's of the merchant to decide about, a refund of it its own project's."""
    context, actor = refund_env.context, payment_env.live
    _, deposit_id = await come_to_wallet(payment_env, context)
    other = await payment_env.project(actor.merchant_pk, "prj_second", "live")
    request = RefundRequest(to_address=CUSTOMER)
    async with payment_env.db.transaction() as conn:
        first = await decide.refund(conn, context, actor, deposit_id, request, None)
    async with payment_env.db.transaction() as conn:
        again = await decide.refund(conn, context, actor, deposit_id, request, None)
    assert (again.replayed, again.resource.refund_id) == (True, first.resource.refund_id)
    async with payment_env.db.transaction() as conn:
        await refused(decide.refund(conn, context, other, deposit_id, request, None), "ALREADY_RESOLVED")
