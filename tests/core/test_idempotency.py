"""Idempotency keys: which one a request carries, what counts as the same request, and what a used key means."""

import asyncio

import msgspec
import pytest

from cambist.services.errors import ConflictError, InvalidError
from cambist.services.idempotency import Claim, choose_key, find_replayed, hash_request
from cambist.services.receiving.payments.requests import CreatePayment
from tests.support.payment_env import PaymentEnv

BODY = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}


@pytest.mark.parametrize("header, body, key", [(None, None, None), ("a", None, "a"), (None, "b", "b"), ("c", "c", "c")])
def test_the_key_comes_from_the_header_or_the_body(header, body, key):
    assert choose_key(header, body) == key


@pytest.mark.parametrize("header, body", [("a", "b"), ("a", ""), ("", "a"), ("", None), ("x" * 256, None)])
def test_keys_that_differ_or_have_no_fitting_length_are_refused(header, body):
    with pytest.raises(InvalidError):
        choose_key(header, body)


def test_the_order_of_fields_and_of_metadata_does_not_matter():
    one = msgspec.convert({**BODY, "metadata": {"a": {"x": 1, "y": 2}, "b": 3}}, CreatePayment)
    other = msgspec.convert(
        {"metadata": {"b": 3, "a": {"y": 2, "x": 1}}, **dict(reversed(BODY.items()))}, CreatePayment
    )
    assert hash_request(one) == hash_request(other)
    for changed in ({"amount": "10.0"}, {"metadata": {"a": {"x": 1, "y": 2}, "b": 4}}, {"orderId": ""}):
        assert hash_request(
            msgspec.convert({**BODY, "metadata": one.metadata, **changed}, CreatePayment)
        ) != hash_request(one)


async def test_a_free_key_led_to_nothing_and_a_used_one_to_its_payment(db, clock, ids):
    payment_env = await PaymentEnv(db, clock, ids).open()
    made = await payment_env.create(header_key="k")
    request = msgspec.convert(BODY, CreatePayment)
    claim = Claim(
        merchant_pk=payment_env.live.merchant_pk,
        project_pk=payment_env.live.project_pk,
        mode="live",
        operation="payment",
        key="k",
        request_hash=hash_request(request),
    )
    replace = msgspec.structs.replace
    async with db.autocommit() as conn:
        assert await find_replayed(conn, claim) == made.payment.payment_id
        assert await find_replayed(conn, replace(claim, key="l")) is None
        assert await find_replayed(conn, replace(claim, operation="refund")) is None
        with pytest.raises(ConflictError):
            await find_replayed(conn, replace(claim, request_hash=b""))
        with pytest.raises(ConflictError):
            await find_replayed(conn, replace(claim, project_pk=payment_env.live.project_pk + 1))


async def test_a_twin_waits_for_the_first_and_runs_if_the_first_fails(db, clock, ids):
    payment_env = await PaymentEnv(db, clock, ids).open()
    insert = (
        "INSERT INTO idempotency_keys (merchant_pk, mode, operation, key, project_pk, request_hash, resource_id)"
        " VALUES ($1, 'live', 'payment', 'k', $2, '', 'pay_never')"
    )
    async with db.engine.connect() as conn:
        await conn.exec_driver_sql(insert, (payment_env.live.merchant_pk, payment_env.live.project_pk))
        twin = asyncio.create_task(payment_env.create(header_key="k"))
        await asyncio.sleep(0.2)
        assert not twin.done()
        await conn.rollback()
    assert not (await twin).replayed
