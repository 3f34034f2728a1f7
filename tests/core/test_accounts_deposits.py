"""What comes to accounts: credited once, held where it is wrong, told at each step, taken back by a reorg."""

from datetime import timedelta

import pytest

from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.pricing import price_points
from cambist.services.receiving.accounts import snapshots
from tests.support.accounts import REQUIRED, AccountEnv
from tests.support.books import broken
from tests.support.payment_env import PaymentEnv
from tests.support.refunds import RefundEnv

USDX = ("memory", "USDX")


@pytest.fixture
async def accounts(db, clock, ids):
    env = await PaymentEnv(db, clock, ids).open()
    await env.change_project(env.test, extended_events=True)
    accounts = AccountEnv(env)
    yield accounts
    async with db.transaction() as conn:
        found = await broken(conn)
    if accounts.spent:
        found.pop("pending is what is under way", None)
    assert found == {}


@pytest.fixture
async def user(accounts):
    return (await accounts.make()).account.account_id


async def names(accounts):
    return [event for event, _ in await accounts.told()]


async def test_a_deposit_is_told_at_first_sight_and_credited_once_it_is_confirmed(accounts, user):
    env = accounts.payment_env
    first = await accounts.deposit(user, "12.5")
    assert (first.status, first.counted, first.amount) == ("detected", True, "12.5")
    assert await accounts.balances(user) == {USDX: ("0", "12.5", "0")}
    assert await env.balance("USDX") == {}
    await env.mine(REQUIRED)
    (now,) = await accounts.deposits(user)
    assert (now.status, now.confirmations, now.confirmed_at is not None) == ("confirmed", REQUIRED, True)
    assert await accounts.balances(user) == {USDX: ("12.5", "0", "0")}
    assert await env.balance("USDX") == {"available": 12_500_000}
    await env.mine(5)
    assert await env.balance("USDX") == {"available": 12_500_000}
    (received, at_first), (confirmed, then) = await accounts.told()
    assert (received, confirmed) == ("account.deposit.received", "account.deposit.confirmed")
    assert (at_first["status"], then["status"]) == ("detected", "confirmed")
    assert (at_first["confirmations"], then["confirmations"]) == (0, REQUIRED)
    for data in (at_first, then):
        assert data["resource"] == "account_deposit"
        assert (data["accountId"], data["externalId"], data["depositId"]) == (user, "user-1", now.deposit_id)
        assert (data["chain"], data["token"], data["amount"]) == ("memory", "USDX", "12.5")
        assert (data["address"], data["txHash"]) == (now.address, now.tx_hash)
        assert (data["requiredConfirmations"], data["incarnation"]) == (REQUIRED, 1)


async def test_one_address_takes_any_number_of_deposits_of_any_token(accounts, user):
    env = accounts.payment_env
    for _ in range(3):
        await accounts.deposit(user, "2", confirmations=REQUIRED)
    await accounts.deposit(user, "0.5", token="MEM", confirmations=REQUIRED)
    assert await accounts.balances(user) == {("memory", "MEM"): ("0.5", "0", "0"), USDX: ("6", "0", "0")}
    assert len(await accounts.deposits(user)) == 4
    assert len(await accounts.deposits(user, token="USDX", status="confirmed", chain="memory")) == 3
    assert await accounts.deposits(user, status="orphaned") == []
    with pytest.raises(NotFoundError):
        await accounts.deposits("acc_nobody")
    assert (await env.balance("USDX"))["available"] == 6_000_000


async def test_a_reorg_takes_a_credit_back_and_what_comes_back_is_credited_and_told_again(accounts, user):
    env = accounts.payment_env
    deposit = await accounts.deposit(user, "10", confirmations=REQUIRED)
    await env.reorg(1 + REQUIRED, "return")
    assert await env.balance("USDX") == {}
    (gone,) = await accounts.deposits(user)
    assert (gone.status, gone.confirmations, gone.confirmed_at) == ("orphaned", 0, None)
    assert await accounts.balances(user) == {}
    await env.mine(1 + REQUIRED)
    (back,) = await accounts.deposits(user)
    assert (back.deposit_id, back.status, back.incarnation) == (deposit.deposit_id, "confirmed", 2)
    assert await env.balance("USDX") == {"available": 10_000_000}
    assert [(event.rpartition(".")[2], data["incarnation"]) for event, data in await accounts.told()] == [
        ("received", 1),
        ("confirmed", 1),
        ("orphaned", 1),
        ("received", 2),
        ("confirmed", 2),
    ]
    ids = await env.count("(SELECT DISTINCT delivery_id FROM webhook_deliveries) d")
    assert ids == 5


async def test_what_was_spent_before_a_reorg_is_owed(accounts, user):
    env = accounts.payment_env
    refunds = RefundEnv(env)
    await accounts.deposit(user, "10", confirmations=REQUIRED)
    await refunds.spend(8_000_000)
    accounts.spent = True
    await env.reorg(1 + REQUIRED, "drop")
    assert await env.balance("USDX") == {"pending": 8_000_000, "receivable": -8_000_000}
    await accounts.deposit(user, "9", confirmations=REQUIRED)
    assert await env.balance("USDX") == {"available": 1_000_000, "pending": 8_000_000}


async def test_without_additions_only_the_catalogue_is_told(accounts, user):
    env = accounts.payment_env
    await env.change_project(env.test, extended_events=False)
    await accounts.deposit(user, "10", confirmations=REQUIRED)
    await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    await env.reorg(1 + REQUIRED, "drop")
    assert await names(accounts) == ["account.deposit.received", "account.deposit.confirmed"]


async def test_what_comes_on_a_chain_that_was_not_asked_for_is_held(accounts, user):
    env = accounts.payment_env
    held = await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    assert (held.status, held.counted, held.held_reason, held.held_amount) == ("confirmed", False, "wrong_chain", "10")
    assert await env.balance("USDX", "other") == {"held": 10_000_000}
    assert await accounts.balances(user) == {("other", "USDX"): ("0", "0", "10")}
    (one,) = await RefundEnv(env).waiting()
    assert (one.deposit_id, one.reason, one.can_accept) == (held.deposit_id, "wrong_chain", True)
    assert (one.account_id, one.external_id, one.payment_id) == (user, "user-1", None)
    ((event, data),) = await accounts.told()
    assert (event, data["reason"], data["heldAmount"]) == ("account.deposit.held", "wrong_chain", "10")
    # The chain counts from when it was asked for.
    await accounts.add(user, "other")
    assert (await accounts.deposit(user, "5", chain="other")).counted


async def test_what_is_less_than_the_coins_minimum_is_held(accounts, user):
    env = accounts.payment_env
    await accounts.set_minimum("5")
    small = await accounts.deposit(user, "4.999999", confirmations=REQUIRED)
    assert (small.counted, small.held_reason) == (False, "below_minimum")
    assert (await accounts.deposit(user, "5", confirmations=REQUIRED)).counted
    assert await accounts.balances(user) == {USDX: ("5", "0", "4.999999")}
    assert [one.reason for one in await RefundEnv(env).waiting(reason="below_minimum")] == ["below_minimum"]
    await accounts.set_minimum(None)
    assert (await accounts.deposit(user, "0.000001")).counted
    with pytest.raises(InvalidError) as wrong:
        await accounts.set_minimum("-1")
    assert (wrong.value.code, wrong.value.details[0].field) == ("INVALID_AMOUNT", "minDeposit")


async def test_what_is_held_can_be_counted_to_the_account_once(accounts, user):
    env = accounts.payment_env
    refunds = RefundEnv(env)
    held = await accounts.deposit(user, "10", chain="other")
    with pytest.raises(ConflictError) as early:
        await refunds.accept(held.deposit_id)
    assert early.value.code == "NOT_RESOLVABLE"
    await env.mine(REQUIRED, "other")
    for _ in range(2):
        decided = await refunds.accept(held.deposit_id)
        assert (decided.resolution, decided.held_amount, decided.can_accept) == ("accepted", "0", False)
    assert await env.balance("USDX", "other") == {"available": 10_000_000}
    assert await accounts.balances(user) == {("other", "USDX"): ("10", "0", "0")}
    assert await names(accounts) == ["account.deposit.held", "account.deposit.confirmed"]
    assert await refunds.waiting() == []
    # A reorg takes that back, and forgets the decision.
    await env.reorg(1 + REQUIRED, "return", "other")
    assert (await names(accounts))[-1] == "account.deposit.orphaned"
    await env.mine(1 + REQUIRED, "other")
    assert await env.balance("USDX", "other") == {"held": 10_000_000}


async def test_what_is_held_can_be_released_or_sent_back(accounts, user):
    env = accounts.payment_env
    refunds = RefundEnv(env)
    kept = await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    await refunds.release(kept.deposit_id)
    assert await env.balance("USDX", "other") == {"available": 10_000_000}
    assert await accounts.balances(user) == {("other", "USDX"): ("0", "0", "0")}, "released to the wallet, not the user"
    sent = await accounts.deposit(user, "7", chain="other", confirmations=REQUIRED)
    await refunds.refund_deposit(sent.deposit_id)
    await refunds.finish("other")
    assert await env.balance("USDX", "other") == {"available": 10_000_000}
    assert (await names(accounts)).count("account.deposit.confirmed") == 0
    good = await accounts.deposit(user, "1", confirmations=REQUIRED)
    with pytest.raises(ConflictError) as nothing:
        await refunds.accept(good.deposit_id)
    assert nothing.value.code == "ALREADY_RESOLVED"


async def test_what_was_sent_back_in_part_is_not_counted_as_a_whole(accounts, user):
    refunds = RefundEnv(accounts.payment_env)
    held = await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    await refunds.refund_deposit(held.deposit_id, amount="4")
    (rest,) = await refunds.waiting()
    assert (rest.held_amount, rest.can_accept) == ("6", False)
    with pytest.raises(ConflictError) as refused:
        await refunds.accept(held.deposit_id)
    assert refused.value.code == "CANNOT_ACCEPT"
    assert (await names(accounts)).count("account.deposit.confirmed") == 0
    await refunds.release(held.deposit_id)


async def test_another_project_of_the_merchant_sees_and_decides_nothing(accounts, user):
    env = accounts.payment_env
    held = await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    env.test = env.test2
    assert await RefundEnv(env).waiting() == []
    with pytest.raises(NotFoundError):
        await RefundEnv(env).release(held.deposit_id)


async def test_a_switched_off_account_is_credited_all_the_same(accounts, user):
    await accounts.switch(user, is_active=False)
    await accounts.deposit(user, "3", confirmations=REQUIRED)
    assert await accounts.balances(user) == {USDX: ("3", "0", "0")}


async def test_a_deposit_is_valued_by_the_prices_of_when_it_was_seen(accounts, user):
    env = accounts.payment_env
    env.prices.board |= {("USDX", "usd"): "1.0005", ("USDX", "eur"): "0.9"}
    currencies = snapshots.CURRENCIES
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now(), currencies)
    env.clock.advance(60)
    deposit = await accounts.deposit(user, "10")
    assert [(one.currency, one.amount, one.rate) for one in deposit.fiat] == [
        ("eur", "9.00", "0.9"),
        ("usd", "10.00", "1.0005"),
    ]
    assert deposit.fiat_reason is None
    assert {one.observed_at for one in deposit.fiat} == {env.clock.now() - timedelta(seconds=60)}
    assert {one.source for one in deposit.fiat} == {"board"}
    env.prices.board |= {("USDX", "usd"): "2", ("USDX", "eur"): "2"}
    env.clock.advance(300)
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now(), currencies)
    await env.reorg(1, "return")
    await env.mine(1 + REQUIRED)
    (back,) = await accounts.deposits(user)
    assert (back.incarnation, back.fiat) == (2, deposit.fiat), "frozen"
    assert [data["fiat"][1]["amount"] for _, data in await accounts.told()] == ["10.00"] * 4


async def record(env, usd, eur):
    env.prices.board |= {("USDX", "usd"): usd, ("USDX", "eur"): eur}
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now(), snapshots.CURRENCIES)


async def test_another_token_that_comes_back_in_its_place_is_valued_by_its_own_price(accounts, user):
    """A contract may pay otherwise where its transaction is mined again, at the same position."""
    env = accounts.payment_env
    await record(env, "1.2", "1.1")
    await accounts.deposit(user, "10")
    await env.reorg(1, "return")
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE deposits SET token = 'MEM', contract = NULL")
    env.clock.advance(300)
    await record(env, "1", "0.9")
    await env.mine(1 + REQUIRED)
    (back,) = await accounts.deposits(user)
    assert (back.token, back.incarnation) == ("USDX", 2)
    assert [(one.currency, one.amount) for one in back.fiat] == [("eur", "9.00"), ("usd", "10.00")]


async def test_a_price_that_lacked_at_first_is_that_of_when_it_was_first_seen(accounts, user):
    env = accounts.payment_env
    await accounts.deposit(user, "10")
    env.clock.advance(60)
    await record(env, "1.5", "1.2")
    env.clock.advance(3000)
    await record(env, "9", "9")
    await env.reorg(1, "return")
    await env.mine(1 + REQUIRED)
    (back,) = await accounts.deposits(user)
    assert (back.incarnation, len(back.fiat), back.fiat_reason) == (2, 0, "pending")
    await filled(accounts)
    (then,) = await accounts.deposits(user)
    assert [(one.currency, one.rate) for one in then.fiat] == [("eur", "1.2"), ("usd", "1.5")]


async def test_what_was_told_to_be_held_is_told_when_a_reorg_takes_it(accounts, user):
    env = accounts.payment_env
    await accounts.deposit(user, "10", chain="other", confirmations=REQUIRED)
    await env.reorg(1 + REQUIRED, "return", "other")
    assert await names(accounts) == ["account.deposit.held", "account.deposit.orphaned"]
    await env.mine(1 + REQUIRED, "other")
    assert (await names(accounts))[2:] == ["account.deposit.held"]
    # Of what was not told yet, nothing is taken back.
    await accounts.deposit(user, "7", chain="other")
    await env.reorg(1, "drop", "other")
    assert len(await names(accounts)) == 3


async def filled(accounts):
    env = accounts.payment_env
    async with env.db.transaction() as conn:
        return await snapshots.fill(conn, snapshots.CURRENCIES, env.clock.now())


async def test_a_missing_price_delays_no_credit_and_is_filled_in_from_the_nearest_one(accounts, user):
    env = accounts.payment_env
    env.prices.board[("USDX", "usd")] = "1"
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now())
    env.clock.advance(3600)
    await accounts.deposit(user, "10", confirmations=REQUIRED)
    assert await env.balance("USDX") == {"available": 10_000_000}
    (seen,) = await accounts.deposits(user)
    assert (len(seen.fiat), seen.fiat_reason) == (0, "pending")
    await filled(accounts)
    assert not (await accounts.deposits(user))[0].fiat, "a nearer price may still come"
    env.clock.advance(120)
    env.prices.board |= {("USDX", "usd"): "1.5", ("USDX", "eur"): "1.2"}
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now(), snapshots.CURRENCIES)
    env.clock.advance(300)
    env.prices.board |= {("USDX", "usd"): "9", ("USDX", "eur"): "9"}
    await price_points.record(env.db, env.rates, ["USDX"], env.clock.now(), snapshots.CURRENCIES)
    assert await filled(accounts) is None
    (then,) = await accounts.deposits(user)
    assert ([(one.currency, one.rate) for one in then.fiat], then.fiat_reason) == (
        [("eur", "1.2"), ("usd", "1.5")],
        None,
    )


async def test_where_no_price_comes_the_deposit_says_so(accounts, user):
    env = accounts.payment_env
    await accounts.deposit(user, "10", confirmations=REQUIRED)
    env.clock.advance(2 * 3600)
    await filled(accounts)
    assert (await accounts.deposits(user))[0].fiat_reason == "pending"
    env.clock.advance(1)
    await filled(accounts)
    (seen,) = await accounts.deposits(user)
    assert (len(seen.fiat), seen.fiat_reason) == (0, "no_price")


async def test_what_the_sandbox_is_asked_for_must_be_meant(accounts, user):
    env = accounts.payment_env
    await accounts.add(user, "bsc")
    address = next(one.address for one in (await accounts.read(user)).addresses if one.chain == "memory")
    assert (await accounts.deposit(user, "1", address=address, chain=None)).account_id == user
    for fields, field in (
        ({"token": None}, "token"),
        ({"chain": None}, "chain"),
        ({"amount": None}, "amount"),
        ({"paymentId": "pay_1"}, "paymentId"),
    ):
        with pytest.raises(InvalidError) as wrong:
            await accounts.deposit(user, **{"amount": "1", **fields})
        assert wrong.value.details[0].field == field
    with pytest.raises(NotFoundError):
        await accounts.deposit("acc_nobody", "1")
    await env.change_project(env.test, sandbox_auto_mine=True)
    assert (await accounts.deposit(user, "1")).status == "confirmed"
