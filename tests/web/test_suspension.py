"""Suspending a merchant over HTTP: who is refused how, what customers see, and that all goes on afterwards."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.audit.entries import newest
from cambist.services.identity import api_keys
from tests.support.tracker_api import make
from tests.support.web import ADMIN_KEY, PASSWORD, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
PAYMENT = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}


@pytest.fixture
def act(client, merchant):
    """Give what suspends the merchant, and what reinstates it."""

    async def act(what, **body):
        path = f"/api/admin/merchants/{merchant.merchant_id}/{what}"
        return await client.post(path, json=body or None, headers=ADMIN)

    return act


async def sign_in(client, merchant):
    answer = await client.post("/api/auth/login", json={"email": merchant.email, "password": PASSWORD})
    client.cookies.clear()
    return answer


async def test_sessions_keys_and_tokens_are_refused_until_the_merchant_is_reinstated(client, gateway, merchant, act):
    tracker = await make(client, merchant.key, startBlock=1)
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
    answer = await act("suspend", reason="chargebacks")
    assert answer.json() == {
        "success": True,
        "merchantId": merchant.merchant_id,
        "suspendedAt": answer.json()["suspendedAt"],
    }
    assert answer.json()["suspendedAt"] is not None
    refused(await client.get("/api/merchant/projects", headers=merchant.bearer), 401, "SESSION_ENDED")
    refused(await client.get("/api/merchant/wallet", headers=merchant.key), 403, "MERCHANT_SUSPENDED")
    refused(await client.post("/api/payment", json=PAYMENT, headers=merchant.key), 403, "MERCHANT_SUSPENDED")
    refused(await sign_in(client, merchant), 403, "MERCHANT_SUSPENDED")
    wrong = await client.post("/api/auth/login", json={"email": merchant.email, "password": "wrong"})
    refused(wrong, 401, "INVALID_CREDENTIALS")
    refused(await tracker.get(), 403, "MERCHANT_SUSPENDED")
    refused(await act("suspend", reason="again"), 409, "MERCHANT_ALREADY_SUSPENDED")
    assert (await act("reinstate")).json()["suspendedAt"] is None
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
    refused(await client.get("/api/merchant/projects", headers=merchant.bearer), 401, "SESSION_ENDED")
    assert (await sign_in(client, merchant)).status_code == 200
    refused(await act("reinstate"), 409, "MERCHANT_NOT_SUSPENDED")
    async with gateway.db.autocommit() as conn:
        told = {one.action: one for one in await newest(conn, merchant_id=merchant.merchant_id, limit=20)}
    assert told["merchant.suspended"].details == {"reason": "chargebacks"}
    assert told["merchant.reinstated"].actor == "admin key"


async def test_another_process_refuses_the_key_within_a_second(client, clock, merchant, act):
    assert (await client.get("/api/merchant/wallet", headers=merchant.key)).status_code == 200
    cache = client._transport.app.state.web.key_cache
    known = dict(cache._found)
    await act("suspend", reason="chargebacks")
    cache._found.update(known)  # as another process has it
    clock.advance(seconds=1)
    refused(await client.get("/api/merchant/wallet", headers=merchant.key), 403, "MERCHANT_SUSPENDED")


async def test_this_process_refuses_a_key_at_once_that_is_looked_up_meanwhile(
    client, clock, merchant, act, monkeypatch
):
    is_found, may_go_on = asyncio.Event(), asyncio.Event()
    find = api_keys.find_access

    async def slowly(*asked):
        found = await find(*asked)
        is_found.set()
        await may_go_on.wait()
        return found

    clock.advance(seconds=1)
    monkeypatch.setattr(api_keys, "find_access", slowly)
    slow = asyncio.create_task(client.get("/api/merchant/wallet", headers=merchant.key))
    await is_found.wait()
    await act("suspend", reason="chargebacks")
    may_go_on.set()
    await slow
    refused(await client.get("/api/merchant/wallet", headers=merchant.key), 403, "MERCHANT_SUSPENDED")


async def test_noting_that_a_key_is_used_keeps_it_no_longer(client, clock, merchant, act):
    async def read():
        return await client.get("/api/merchant/wallet", headers=merchant.key)

    assert (await read()).status_code == 200
    clock.advance(seconds=api_keys.NOTE_USE_AFTER.total_seconds() - 0.5)
    assert (await read()).status_code == 200  # looked up
    cache = client._transport.app.state.web.key_cache
    clock.advance(seconds=0.7)
    assert (await read()).status_code == 200  # noted
    known = dict(cache._found)
    await act("suspend", reason="chargebacks")
    cache._found.update(known)  # as another process has it
    clock.advance(seconds=0.4)
    refused(await read(), 403, "MERCHANT_SUSPENDED")


async def test_nobody_is_asked_to_begin_to_pay_and_who_has_begun_is(client, gateway, merchant, act):
    unpaid, begun = [
        (await client.post("/api/payment", json=PAYMENT, headers=merchant.key)).json()["payment"] for _ in range(2)
    ]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, sender, address_pk, payment_pk,"
            " merchant_pk, mode, token, contract, decimals, units, height, block_hash, mined_at, matches,"
            " required_confirmations, detected_at, ordinal)"
            " SELECT 'dep_begun', p.chain, 0, 'tx', '0', 'x', a.id, p.id, p.merchant_pk, p.mode,"
            " p.token, p.contract, p.decimals, 1, 1, 'h', now(), true, 3, now(), 0"
            " FROM payments p JOIN addresses a ON a.payment_pk = p.id WHERE p.payment_id = $1",
            (begun["paymentId"],),
        )
    account = await client.post("/api/account", json={"externalId": "c", "chains": ["memory"]}, headers=merchant.key)
    page = account.json()["account"]
    await act("suspend", reason="chargebacks")
    shown = await client.get(f"/pay/{unpaid['publicId']}")
    assert "takes no payments at present" in shown.text
    assert unpaid["depositAddress"] not in shown.text.replace("<b>", "").replace("</b>", "")
    refused(await client.get(f"/api/payment/public/{unpaid['publicId']}"), 403, "MERCHANT_SUSPENDED")
    shown = await client.get(f"/pay/{begun['publicId']}")
    assert begun["depositAddress"] in shown.text.replace("<b>", "").replace("</b>", "")
    assert (await client.get(f"/api/payment/public/{begun['publicId']}")).status_code == 200
    public = page["depositUrl"].rpartition("/")[2]
    told = (await client.get(f"/api/public/account/{public}")).json()["account"]
    assert (told["isActive"], told["addresses"]) == (False, [])
    assert "No deposits at present" in (await client.get(f"/account/{public}")).text
    await act("reinstate")
    assert unpaid["depositAddress"] in (await client.get(f"/api/payment/public/{unpaid['publicId']}")).text


async def test_a_reason_is_asked_for(client, act):
    refused(await act("suspend"), 400, "INVALID_JSON")
    refused(await act("suspend", reason=""), 400, "VALIDATION_ERROR")
    refused(await act("suspend", reason=" "), 400, "VALIDATION_ERROR", "reason")
