"""What was sent back of a deposit stays sent back when a reorganization brings the deposit again."""

import pytest

from cambist.services.chains.rules import TokenRules
from cambist.services.receiving.payments.recalculate import Recalculate, recalculate
from cambist.services.sandbox.requests import FailPayout
from tests.core.test_resolutions import late, refused, status
from tests.support.accounts import AccountEnv
from tests.support.payment_env import PaymentEnv
from tests.support.refunds import REQUIRED, RefundEnv

pytestmark = pytest.mark.slow


async def come_again(payment_env, chain="memory", blocks=8):
    """Have a reorganization take the newest blocks, and bring their transactions again."""
    await payment_env.reorg(blocks, "return", chain)
    await payment_env.mine(1 + REQUIRED, chain)


async def sent_back(payment_env, refund_env, **fields):
    """Send back the only deposit that waits, or so much of it, and have it come again; return its id."""
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id, **fields)
    await refund_env.finish()
    await come_again(payment_env)
    return one.deposit_id


async def test_a_late_deposit_is_sent_back_once_and_can_only_be_released(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10")
    deposit_id = await sent_back(payment_env, refund_env)
    (one,) = await refund_env.waiting()
    assert (one.deposit_id, one.held_amount, one.can_accept) == (deposit_id, "10", False)
    await refused(refund_env.refund_deposit(deposit_id), "ALREADY_RESOLVED")
    await refused(refund_env.accept(deposit_id), "CANNOT_ACCEPT")
    await refund_env.release(deposit_id)
    payment = await payment_env.read(payment_id, payment_env.test)
    assert (payment.status, payment.received_amount, payment.refunded_amount) == ("expired", "10", "10")
    await refund_env.check_books()


async def test_what_had_not_been_sent_back_still_can_be(payment_env, refund_env):
    await late(payment_env, refund_env, "10")
    deposit_id = await sent_back(payment_env, refund_env, amount="4")
    assert not (await refund_env.resolution(deposit_id)).can_accept
    await refused(refund_env.refund_deposit(deposit_id, amount="7"), "REFUND_EXCEEDS_HELD")
    assert (await refund_env.refund_deposit(deposit_id)).resource.amount == "6"
    await refused(refund_env.refund_deposit(deposit_id), "ALREADY_RESOLVED")
    assert (await refund_env.release(deposit_id)).held_amount == "0"
    await refund_env.check_books()


async def test_what_a_refund_took_is_free_again_once_that_has_failed(payment_env, refund_env):
    await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    made = await refund_env.refund_deposit(one.deposit_id)
    await payment_env.sandbox.fail_payout(payment_env.test, FailPayout(payout_id=made.resource.refund_id))
    await come_again(payment_env, blocks=4)
    await refund_env.finish()
    assert (await refund_env.resolution(one.deposit_id)).can_accept
    assert (await refund_env.accept(one.deposit_id)).payment_status == "paid"
    await refund_env.check_books()


async def test_surplus_that_was_sent_back_makes_no_second_surplus(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    deposit_id = await sent_back(payment_env, refund_env)
    assert (await status(payment_env, payment_id)) == "paid"
    await refused(refund_env.refund_deposit(deposit_id), "ALREADY_RESOLVED")
    await refund_env.release(deposit_id)
    assert (await refund_env.refund(payment_id)).resource.amount == "10"
    await refund_env.check_books()


async def test_neither_pays_for_its_order_nor_takes_the_place_of_what_does(payment_env, refund_env):
    payment_id = await refund_env.paid("4")
    await payment_env.advance(3601 + 2 * 86_400)
    await payment_env.deposit(payment_id, amount="6", confirmations=REQUIRED)
    (one,) = await refund_env.waiting()
    await refund_env.refund_deposit(one.deposit_id)
    await refund_env.finish()
    await come_again(payment_env, blocks=12)
    assert await status(payment_env, payment_id) == "failed"
    await payment_env.deposit(payment_id, amount="6", confirmations=REQUIRED)
    assert await status(payment_env, payment_id) == "paid"
    held = {one.deposit_id: one.held_amount for one in await refund_env.waiting()}
    assert held == {one.deposit_id: "6"}
    await refund_env.check_books()


async def test_an_order_of_which_money_was_sent_back_gets_no_new_rate(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "4", pricingMode="fiat", fiatCurrency="usd", amount="10")
    await sent_back(payment_env, refund_env)
    env = payment_env
    own = {"rates": env.rates, "clock": env.clock, "ids": env.ids, "macs": env.macs, "token_rules": TokenRules()}
    async with env.db.transaction() as conn:
        asked = recalculate(conn, env.test, payment_id, Recalculate(), chains=env.registry.chains, **own)
        await refused(asked, "MONEY_SET_ASIDE")


async def test_it_is_not_counted_whole_to_an_account(db, clock, ids):
    env = await PaymentEnv(db, clock, ids).open()
    accounts, refund_env = AccountEnv(env), RefundEnv(env)
    user = (await accounts.make()).account.account_id
    held = await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    await refund_env.refund_deposit(held.deposit_id, amount="4")
    await refund_env.finish("other")
    await come_again(env, "other")
    assert not (await refund_env.resolution(held.deposit_id)).can_accept
    await refused(refund_env.accept(held.deposit_id), "CANNOT_ACCEPT")
    assert (await refund_env.release(held.deposit_id)).held_amount == "0"
    await refund_env.check_books()


async def test_it_counts_for_no_account_though_the_account_would_take_it_by_now(db, clock, ids):
    env = await PaymentEnv(db, clock, ids).open()
    await env.change_project(env.test, extended_events=True)
    accounts, refund_env = AccountEnv(env), RefundEnv(env)
    user = (await accounts.make()).account.account_id
    await accounts.set_minimum("20")
    small = await accounts.deposit(user, "10", confirmations=REQUIRED)
    await refund_env.refund_deposit(small.deposit_id)
    await refund_env.finish()
    await accounts.set_minimum("5")
    await come_again(env)
    (back,) = await accounts.deposits(user)
    assert (back.incarnation, back.counted, back.held_reason, back.held_amount) == (2, False, "below_minimum", "10")
    told = [event.rpartition(".")[2] for event, _ in await accounts.told() if event.startswith("account.")]
    assert told == ["held", "orphaned", "held"]
    await refund_env.release(small.deposit_id)
    assert await accounts.balances(user) == {("memory", "USDX"): ("0", "0", "0")}
    await refund_env.check_books()


async def test_it_counts_for_no_account_while_a_refund_that_had_failed_may_be_mined_yet(db, clock, ids):
    env = await PaymentEnv(db, clock, ids).open()
    accounts, refund_env = AccountEnv(env), RefundEnv(env)
    user = (await accounts.make()).account.account_id
    await accounts.set_minimum("20")
    small = await accounts.deposit(user, "10", confirmations=REQUIRED)
    refund_id = (await refund_env.refund_deposit(small.deposit_id)).resource.refund_id
    await refund_env.fail(refund_id)
    await accounts.set_minimum("5")
    await come_again(env)
    await refund_env.mine_failed(refund_id)
    (back,) = await accounts.deposits(user)
    assert (back.incarnation, back.counted, back.held_reason) == (2, False, "below_minimum")
    assert await accounts.balances(user) == {("memory", "USDX"): ("0", "0", "0")}
    assert await env.balance("USDX") == {}
    await refund_env.check_books()


async def test_a_failed_refund_that_is_mined_all_the_same_takes_its_deposit_again(payment_env, refund_env):
    payment_id = await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    refund_id = (await refund_env.refund_deposit(one.deposit_id, amount="7")).resource.refund_id
    await refund_env.fail(refund_id)
    assert (await refund_env.resolution(one.deposit_id)).held_amount == "10"
    await refund_env.mine_failed(refund_id)
    assert await payment_env.balance("USDX") == {"held": 3_000_000}
    await refused(refund_env.refund_deposit(one.deposit_id, amount="4"), "REFUND_EXCEEDS_HELD")
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "7"
    await refund_env.check_books()
    # What it sent is remembered as what any other refund sent.
    await come_again(payment_env)
    assert (await refund_env.refund_deposit(one.deposit_id)).resource.amount == "3"
    await refund_env.check_books()


async def test_one_that_takes_all_of_its_deposit_leaves_nothing_to_decide(payment_env, refund_env):
    await refund_env.paid("10", "3")
    (one,) = await refund_env.waiting()
    refund_id = (await refund_env.refund_deposit(one.deposit_id)).resource.refund_id
    await refund_env.fail(refund_id)
    await refund_env.mine_failed(refund_id)
    assert await refund_env.waiting() == []
    after = await refund_env.resolution(one.deposit_id)
    assert (after.held_amount, after.resolution) == ("0", "refunded")
    assert await payment_env.balance("USDX") == {"available": 10_000_000}
    await refund_env.check_books()


async def test_one_of_a_payment_takes_what_was_held_and_the_rest_of_available(payment_env, refund_env):
    payment_id = await refund_env.paid("10", "3")
    refund_id = (await refund_env.refund(payment_id, amount="5")).resource.refund_id
    await refund_env.fail(refund_id)
    (one,) = await refund_env.waiting()
    assert one.held_amount == "3"
    await refund_env.release(one.deposit_id)
    await refund_env.mine_failed(refund_id)
    assert await payment_env.balance("USDX") == {"available": 8_000_000}, "what was decided about stays decided"
    other = await refund_env.paid("10", "3")
    refund_id = (await refund_env.refund(other, amount="5")).resource.refund_id
    await refund_env.fail(refund_id)
    await refund_env.mine_failed(refund_id)
    assert await payment_env.balance("USDX") == {"available": 16_000_000}
    assert await refund_env.waiting() == []
    await refund_env.check_books()


@pytest.mark.parametrize("mined_again", [False, True])
async def test_one_that_is_mined_while_its_deposit_is_away_is_remembered_once_that_comes_back(
    payment_env, refund_env, mined_again
):
    """The deposit is in no block yet, or in one that is not deep enough, when the refund is final."""
    payment_id = await late(payment_env, refund_env, "10")
    (one,) = await refund_env.waiting()
    refund_id = (await refund_env.refund_deposit(one.deposit_id, amount="7")).resource.refund_id
    await refund_env.fail(refund_id)
    await payment_env.reorg(8, "return")
    if mined_again:
        await payment_env.mine(1)
    await refund_env.mine_failed(refund_id)
    await payment_env.mine(1 + REQUIRED)
    assert (await payment_env.read(payment_id, payment_env.test)).refunded_amount == "7"
    await refused(refund_env.refund_deposit(one.deposit_id, amount="4"), "REFUND_EXCEEDS_HELD")
    await refused(refund_env.accept(one.deposit_id), "CANNOT_ACCEPT")
    assert (await refund_env.refund_deposit(one.deposit_id)).resource.amount == "3"
    await refund_env.check_books()


async def test_surplus_that_a_failed_refund_sends_all_the_same_makes_no_second_surplus(payment_env, refund_env):
    payment_id = await refund_env.paid("13")
    refund_id = (await refund_env.refund(payment_id, amount="5")).resource.refund_id
    await refund_env.fail(refund_id)
    (one,) = await refund_env.waiting()
    await payment_env.reorg(8, "return")
    await refund_env.mine_failed(refund_id)
    await payment_env.mine(1 + REQUIRED)
    await refused(refund_env.refund_deposit(one.deposit_id), "ALREADY_RESOLVED")
    await refund_env.release(one.deposit_id)
    await refund_env.check_books()
