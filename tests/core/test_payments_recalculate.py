"""The second chance of an expired fiat payment: what remains, at the rate of now."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.domain.money import fiat_to_units
from cambist.services.chains.rules import TokenRule
from cambist.services.errors import ConflictError, InvalidError, NotFoundError, UnavailableError
from cambist.services.receiving.payments.recalculate import Recalculate, fiat_remaining, recalculate
from cambist.testing.memory.family import named_address

FIAT = {"pricingMode": "fiat", "fiatCurrency": "usd", "amount": "30", "token": "MEM"}


async def refresh(payment_env, payment_id, actor=None, minutes=30, chains=None):
    async with payment_env.db.transaction() as conn:
        return await recalculate(
            conn,
            actor or payment_env.test,
            payment_id,
            Recalculate(expires_in_minutes=minutes),
            chains=chains or payment_env.registry.chains,
            token_rules=payment_env.context.token_rules,
            rates=payment_env.rates,
            clock=payment_env.clock,
            ids=payment_env.ids,
            macs=payment_env.macs,
        )


def new_price(payment_env, price):
    payment_env.prices.board["MEM", "usd"] = price
    payment_env.clock.advance(60)


async def test_an_unpaid_payment_is_priced_anew(payment_env, clock):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    assert payment.expected_amount == "10"
    await payment_env.advance(3601)
    new_price(payment_env, "2.5")
    again = await refresh(payment_env, payment.payment_id)
    assert (again.status, again.expected_amount, again.exchange_rate) == ("pending", "12", "2.5")
    assert (again.expires_at - clock.now()).total_seconds() == 1800
    assert await payment_env.events(payment.payment_id) == ["payment.expired", "payment.rate_recalculated"]
    data = await payment_env.data(payment.payment_id)
    assert data["expectedAmount"] == "12"
    told = {name: data[name] for name in ("amount", "fiatCurrency", "exchangeRate", "rateSource", "expiresAt")}
    assert told == {
        "amount": "30",
        "fiatCurrency": "usd",
        "exchangeRate": "2.5",
        "rateSource": again.rate_source,
        "expiresAt": again.expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    assert (await payment_env.deposit(payment.payment_id, confirmations=3)).payment.status == "paid"


async def test_what_was_paid_stays_paid_in_tokens(payment_env):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    await payment_env.deposit(payment.payment_id, amount="4")
    await payment_env.advance(3601)
    new_price(payment_env, "2")
    again = await refresh(payment_env, payment.payment_id)
    # 18 of 30 dollars were missing: 9 tokens at 2 dollars, beside the 4 that had come.
    assert (again.expected_amount, again.received_amount) == ("13", "4")
    await payment_env.advance(1801)
    new_price(payment_env, "3")
    assert (await refresh(payment_env, payment.payment_id)).expected_amount == "10"


async def test_money_that_came_late_counts_for_the_new_rate(payment_env):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    await payment_env.advance(3601)
    await payment_env.deposit(payment.payment_id, amount="9.9", confirmations=3)
    assert (await payment_env.read(payment.payment_id, payment_env.test)).status == "expired"
    assert (await refresh(payment_env, payment.payment_id)).expected_amount == "10"
    made = await payment_env.deposit(payment.payment_id, confirmations=3)
    assert (made.payment.status, made.payment.received_amount) == ("paid", "10")


async def test_where_everything_came_late_nothing_remains_to_be_priced(payment_env):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    await payment_env.advance(3601)
    await payment_env.deposit(payment.payment_id, amount="10")
    with pytest.raises(ConflictError) as error:
        await refresh(payment_env, payment.payment_id)
    assert error.value.code == "NOTHING_REMAINS"


async def test_only_an_expired_fiat_payment_of_ones_own_gets_a_new_rate(payment_env):
    pending = (await payment_env.create(payment_env.test, **FIAT)).payment.payment_id
    with pytest.raises(ConflictError) as error:
        await refresh(payment_env, pending)
    assert error.value.code == "PAYMENT_NOT_EXPIRED"
    direct = (await payment_env.create(payment_env.test)).payment.payment_id
    await payment_env.advance(3601)
    with pytest.raises(ConflictError) as error:
        await refresh(payment_env, direct)
    assert error.value.code == "PAYMENT_NOT_FIAT"
    with pytest.raises(NotFoundError):
        await refresh(payment_env, pending, payment_env.live)


async def test_nobody_is_asked_for_a_token_that_another_one_has_replaced(payment_env):
    payment = (await payment_env.create(payment_env.test, **FIAT | {"token": "USDX"})).payment
    await payment_env.advance(3601)
    info = payment_env.registry.chains["memory"]
    tokens = [replace(one, contract=named_address("another")) if one.symbol == "USDX" else one for one in info.tokens]
    with pytest.raises(InvalidError) as error:
        await refresh(payment_env, payment.payment_id, chains={"memory": replace(info, tokens=tuple(tokens))})
    assert (error.value.code, error.value.details[0].field) == ("UNSUPPORTED_TOKEN", "token")
    assert (await payment_env.read(payment.payment_id, payment_env.test)).status == "expired"
    assert (await refresh(payment_env, payment.payment_id)).status == "pending"


async def test_a_token_in_which_no_new_payment_is_taken_gets_no_new_rate(payment_env):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    await payment_env.advance(3601)
    payment_env.context.token_rules.replace({("memory", None): TokenRule(is_open=False, by_default=True)})
    with pytest.raises(InvalidError) as error:
        await refresh(payment_env, payment.payment_id)
    assert (error.value.code, error.value.details[0].field) == ("TOKEN_NOT_ENABLED", "token")
    payment_env.context.token_rules.replace({})
    assert (await refresh(payment_env, payment.payment_id)).status == "pending"


async def test_without_a_price_nothing_changes(payment_env, clock):
    payment = (await payment_env.create(payment_env.test, **FIAT)).payment
    await payment_env.advance(3601)
    payment_env.prices.board.clear()
    clock.advance(3600)
    with pytest.raises(UnavailableError):
        await refresh(payment_env, payment.payment_id)
    assert (await payment_env.read(payment.payment_id, payment_env.test)).status == "expired"


@given(
    cents=st.integers(1, 10**9),
    rate=st.decimals("0.0001", "1000000", places=4),
    decimals=st.sampled_from([0, 6, 8, 18]),
    part=st.integers(0, 100),
)
def test_what_remains_is_never_more_than_the_price_and_never_less_than_its_unpaid_share(cents, rate, decimals, part):
    amount = Decimal(cents) / 100
    expected = fiat_to_units(amount, rate, decimals)
    received = expected * part // 100
    remaining = fiat_remaining(amount=amount, rate=rate, expected=expected, received=received, decimals=decimals)
    assert 0 <= remaining <= amount
    if part == 0:
        assert remaining == amount
    assert remaining + Decimal(received) * rate / 10**decimals >= amount * (1 - Decimal("1e-20"))
