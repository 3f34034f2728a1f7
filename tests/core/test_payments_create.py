"""Making payments: what is stored, what is refused, and that one key makes one payment."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest

from cambist.domain.money import UNITS_MAX, format_units
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from cambist.services.receiving.payments.requests import CreatePayment, ascii_url
from cambist.services.receiving.payments.views import PaymentDetail, PaymentView


async def test_a_payment_is_stored_with_an_address_of_its_own(payment_env, clock):
    made = await payment_env.create(
        orderId="A-1", customerName="Ada", customerEmail="ada@example.com", metadata={"cart": [1, 2.5, None]}
    )
    payment = made.payment
    assert not made.replayed
    assert (payment.status, payment.expected_amount, payment.received_amount) == ("pending", "10", "0")
    assert payment.expires_at == clock.now() + timedelta(minutes=60)
    assert payment.exchange_rate is msgspec.UNSET
    xpub = payment_env.registry.families["memory"]
    assert xpub.normalize_address(payment.deposit_address) == payment.deposit_address
    stored = await payment_env.read(payment.payment_id)
    assert (stored.customer_name, stored.customer_email, stored.order_id) == ("Ada", "ada@example.com", "A-1")
    assert msgspec.json.decode(msgspec.json.encode(stored))["metadata"] == {"cart": [1, 2.5, None]}
    async with payment_env.db.autocommit() as conn:
        row = (
            await conn.exec_driver_sql(
                "SELECT a.address, a.change, a.mode, p.scope, p.grace_s, p.required_confirmations"
                " FROM addresses a JOIN payments p ON p.id = a.payment_pk"
            )
        ).one()
    assert tuple(row) == (payment.deposit_address, 0, "live", 0, 86_400, 3)


async def test_metadata_comes_back_as_it_is_and_no_larger_than_it_came(payment_env):
    metadata = {"z": [1e308] * 2300, "a": 12345678901234567890}
    made = await payment_env.create(metadata=metadata)
    answered = msgspec.json.encode(await payment_env.read(made.payment.payment_id))
    assert msgspec.json.decode(answered)["metadata"] == metadata
    assert list(msgspec.json.decode(answered)["metadata"]) == ["z", "a"]
    assert len(answered) < 20_000


DEPOSITS_OF_ONE = {"deposits", "deposits_left_out", "orphaned_deposits", "orphaned_deposits_left_out"}


async def test_lists_and_answers_have_no_place_for_the_customers_data():
    personal = {"customer_name", "customer_email"}
    assert personal.isdisjoint(PaymentView.__struct_fields__)
    of_one = set(PaymentDetail.__struct_fields__) - set(PaymentView.__struct_fields__)
    assert of_one == {*personal, *DEPOSITS_OF_ONE}


@pytest.mark.slow
async def test_two_hundred_identical_requests_at_once_make_one_payment(payment_env):
    made = await asyncio.gather(*(payment_env.create(header_key="order-7", orderId="7") for _ in range(200)))
    assert len({item.payment.payment_id for item in made}) == 1
    assert [item.replayed for item in made].count(False) == 1
    first = next(item.payment for item in made if not item.replayed)
    assert all(msgspec.json.encode(item.payment) == msgspec.json.encode(first) for item in made)
    assert (await payment_env.count("payments"), await payment_env.count("addresses")) == (1, 1)


async def test_an_amount_is_answered_as_it_was_asked_and_compared_by_its_value(payment_env):
    first = await payment_env.create(header_key="k", amount="12.50")
    assert (first.payment.amount, first.payment.expected_amount) == ("12.50", "12.50")
    again = await payment_env.create(header_key="k", amount="12.5")
    assert (again.replayed, again.payment) == (True, first.payment)
    with pytest.raises(ConflictError):
        await payment_env.create(header_key="k", amount="12.51")
    fiat = {"token": "MEM", "pricingMode": "fiat", "fiatCurrency": "usd"}
    made = await payment_env.create(header_key="f", amount="25.10", **fiat)
    again = await payment_env.create(header_key="f", amount="25.1", **fiat)
    assert (made.payment.amount, again.replayed, again.payment) == ("25.10", True, made.payment)


@pytest.mark.parametrize(
    "url, sent",
    [
        ("https://shop.example/заказ?név=ő%20x#ü", "https://shop.example/%D0%B7%D0%B0%D0%BA%D0%B0%D0%B7"),
        ("https://bücher.example:444/ok", "https://xn--bcher-kva.example:444/ok"),
    ],
)
async def test_a_way_back_to_the_shop_is_in_any_script_and_answered_as_it_was_asked(payment_env, url, sent):
    made = await payment_env.create(successUrl=url, cancelUrl=url)
    assert (made.payment.success_url, made.payment.cancel_url) == (url, url)
    assert ascii_url(url).startswith(sent)
    assert ascii_url(url).isascii()
    assert "%20" in ascii_url(url) or "%" not in url, "what was encoded stays as it is"


async def test_payments_made_at_once_have_different_addresses(payment_env):
    made = await asyncio.gather(*(payment_env.create() for _ in range(150)))
    assert len({item.payment.deposit_address for item in made}) == 150
    assert not any(item.replayed for item in made)


async def test_the_key_may_be_in_the_header_or_the_body(payment_env):
    first = await payment_env.create(header_key="k")
    again = await payment_env.create(idempotencyKey="k")
    assert again.replayed
    assert again.payment.payment_id == first.payment.payment_id
    with pytest.raises(InvalidError, match="not the same") as error:
        await payment_env.create(header_key="k", idempotencyKey="l")
    assert error.value.code == "IDEMPOTENCY_KEY_MISMATCH"


@pytest.mark.parametrize("key", ["", "x" * 256, "a\0b"])
async def test_a_key_has_1_to_255_characters(payment_env, key):
    with pytest.raises(InvalidError, match="idempotencyKey"):
        await payment_env.create(idempotencyKey=key)


async def test_a_key_with_another_request_is_a_conflict(payment_env):
    await payment_env.create(header_key="k", metadata={"a": 1, "b": 2})
    assert (await payment_env.create(header_key="k", metadata={"b": 2, "a": 1})).replayed
    with pytest.raises(ConflictError) as error:
        await payment_env.create(header_key="k", amount="11")
    assert error.value.code == "IDEMPOTENCY_KEY_REUSED"
    assert await payment_env.count("payments") == 1


async def test_a_key_belongs_to_one_project_of_the_merchant(payment_env):
    await payment_env.create(payment_env.test, header_key="k")
    with pytest.raises(ConflictError) as error:
        await payment_env.create(payment_env.test2, header_key="k")
    assert error.value.code == "IDEMPOTENCY_KEY_OTHER_PROJECT"
    # Live and sandbox never meet, and other merchants have keys of their own.
    assert not (await payment_env.create(payment_env.live, header_key="k")).replayed
    other = await payment_env.project(await payment_env.merchant("mer_2"), "prj_other", "sandbox")
    assert not (await payment_env.create(other, header_key="k")).replayed


async def test_a_replay_answers_even_where_nothing_could_be_made_now(payment_env, clock):
    fiat = {"pricingMode": "fiat", "fiatCurrency": "usd"}
    first = await payment_env.create(header_key="k", **fiat)
    payment_env.prices.board.clear()
    clock.advance(3600)
    with pytest.raises(UnavailableError):
        await payment_env.create(**fiat)
    again = await payment_env.create(header_key="k", **fiat)
    assert again.replayed
    assert again.payment.payment_id == first.payment.payment_id


async def test_a_fiat_price_is_locked_and_rounded_up(payment_env):
    payment = (await payment_env.create(token="MEM", pricingMode="fiat", amount="10", fiatCurrency="usd")).payment
    assert (payment.exchange_rate, payment.rate_source, payment.fiat_currency) == ("3", "board", "usd")
    assert payment.expected_amount == "3.33333334"
    assert Decimal(payment.expected_amount) * 3 >= 10
    async with payment_env.db.autocommit() as conn:
        grace = (await conn.exec_driver_sql("SELECT grace_s FROM payments")).scalar_one()
    assert grace == 0


async def test_bsc_usdt_has_18_decimals(payment_env):
    made = await payment_env.create(payment_env.test, chain="bsc", token="USDT", amount="10.000000000000000001")
    assert made.payment.expected_amount == "10.000000000000000001"
    assert made.payment.deposit_address.startswith("0x")
    async with payment_env.db.autocommit() as conn:
        units = (await conn.exec_driver_sql("SELECT expected_units FROM payments")).scalar_one()
    assert int(units) == 10**19 + 1
    fiat = await payment_env.create(
        payment_env.test, chain="bsc", token="USDT", pricingMode="fiat", amount="10.01", fiatCurrency="eur"
    )
    assert fiat.payment.expected_amount == "10.88043479"


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"chain": "nowhere"}, "chain"),
        ({"token": "usdx"}, "token"),
        ({"token": "NOPE"}, "token"),
        ({"amount": "0"}, "amount"),
        ({"amount": "0.000000"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "+1"}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"amount": "1_000"}, "amount"),
        ({"amount": "NaN"}, "amount"),
        ({"amount": " 1"}, "amount"),
        ({"amount": "1,5"}, "amount"),
        ({"amount": "\u0661"}, "amount"),
        ({"amount": "0.1234567"}, "amount"),
        ({"amount": "9" * 78}, "amount"),
        ({"pricingMode": "fiat"}, "fiatCurrency"),
        ({"pricingMode": "fiat", "fiatCurrency": "USD"}, "fiatCurrency"),
        ({"pricingMode": "fiat", "fiatCurrency": "usdd"}, "fiatCurrency"),
        ({"pricingMode": "fiat", "fiatCurrency": "usd", "amount": "1.001"}, "amount"),
        ({"pricingMode": "fiat", "fiatCurrency": "usd", "amount": "0"}, "amount"),
        ({"successUrl": "javascript:alert(1)"}, "successUrl"),
        ({"successUrl": "https://"}, "successUrl"),
        ({"successUrl": "https://shop.example/\u202egnp.exe"}, "successUrl"),
        ({"successUrl": "https://shop.example/\u200b"}, "successUrl"),
        ({"successUrl": "https://shop.example/a\u00a0b"}, "successUrl"),
        ({"successUrl": "https://shop\uff20evil.example/"}, "successUrl"),
        ({"successUrl": "https://ä@evil.example/"}, "successUrl"),
        ({"successUrl": "https://" + "ä" * 64 + ".example/"}, "successUrl"),
        ({"successUrl": "https://shop.example:99999/"}, "successUrl"),
        ({"successUrl": "https://user@shop.example/"}, "successUrl"),
        ({"cancelUrl": "//shop.example"}, "cancelUrl"),
        ({"cancelUrl": "https://shop.example\\@evil.example"}, "cancelUrl"),
        ({"webhookUrl": "ftp://shop.example/hook"}, "webhookUrl"),
        ({"webhookUrl": "http://127.0.0.1/hook"}, "webhookUrl"),
        ({"customerEmail": "nobody"}, "customerEmail"),
        ({"customerEmail": "a b@example.com"}, "customerEmail"),
        ({"metadata": {"x": "y" * 17_000}}, "metadata"),
        ({"metadata": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}}}}, "metadata"),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_its_field_and_nothing_is_stored(payment_env, fields, field):
    with pytest.raises(InvalidError) as error:
        await payment_env.create(**fields)
    assert error.value.details[0].field == field
    assert (await payment_env.count("payments"), await payment_env.count("idempotency_keys")) == (0, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": 10},
        {"amount": None},
        {"pricingMode": "gift"},
        {"expiresInMinutes": 4},
        {"expiresInMinutes": 10_081},
        {"expiresInMinutes": "60"},
        {"metadata": []},
        {"orderId": "x" * 256},
        {"webhookUrl": "https://shop.example/" + "x" * 2048},
        {"surprise": 1},
    ],
)
def test_what_has_the_wrong_shape_is_not_decoded(fields):
    body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10", **fields}
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(body), type=CreatePayment)


async def test_a_live_project_needs_a_chain_with_endpoints_and_a_sandbox_project_none(payment_env):
    for chain in ("unconfigured", "simulated"):
        with pytest.raises(UnavailableError) as error:
            await payment_env.create(chain=chain)
        assert error.value.code == "CHAIN_UNAVAILABLE"
        assert (await payment_env.create(payment_env.test, chain=chain)).payment.mode == "sandbox"


async def test_live_and_sandbox_payments_have_addresses_from_different_keys(payment_env):
    live, test = (await payment_env.create()).payment, (await payment_env.create(payment_env.test)).payment
    assert live.deposit_address != test.deposit_address
    async with payment_env.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT scope FROM payments ORDER BY id")
        assert [row.scope for row in rows] == [0, payment_env.test.project_pk]


async def test_a_project_that_was_switched_off_makes_no_payments(payment_env):
    await payment_env.change_project(payment_env.live, is_active=False)
    for key in (None, "k"):
        with pytest.raises(ForbiddenError):
            await payment_env.create(header_key=key)
    assert await payment_env.count("idempotency_keys") == 0


async def test_the_projects_terms_are_those_of_the_moment(payment_env):
    await payment_env.change_project(payment_env.live, underpayment_tolerance_bps=50, grace_s=60)
    await payment_env.create()
    async with payment_env.db.autocommit() as conn:
        row = (await conn.exec_driver_sql("SELECT tolerance_bps, grace_s FROM payments")).one()
    assert tuple(row) == (50, 60)


async def test_a_payment_of_another_project_is_not_found(payment_env):
    made = await payment_env.create()
    with pytest.raises(NotFoundError):
        await payment_env.read(made.payment.payment_id, payment_env.test)


async def test_large_amounts_survive_exactly(payment_env):
    amount = format_units(UNITS_MAX - 1, 18)
    made = await payment_env.create(token="MEM", amount=amount)
    assert made.payment.expected_amount == amount
    assert (await payment_env.read(made.payment.payment_id)).expected_amount == amount
