"""Withdrawals and approved addresses over HTTP: in person only, with a code for each."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, post
from tests.support.payout_env import person
from tests.support.team import Teammate
from tests.support.two_factor import enrol
from tests.support.waiting import waits_for_a_lock
from tests.support.web import Merchant, refused

HERE = "/api/dashboard/withdrawals"
APPROVED = "/api/dashboard/approved-addresses"
SETTINGS = "/api/merchant/wallet/coins/memory/USDX/settings"


@pytest.fixture
async def rich(gateway, merchant):
    asset = f"memory/{gateway.registry.chains['memory'].token('USDX').contract}"
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        row = found.scalar_one()
        movement = Movement(
            Account(row, asset, Purpose.CUSTODY_WALLET), Account(row, asset, Purpose.AVAILABLE), 100_000_000
        )
        await post(conn, "live", [Posting(mode="live", kind="test", reference="1", movements=[movement])])
    return merchant


@pytest.fixture
async def phone(rich, clock):
    return (await enrol(rich, clock))[0]


@pytest.fixture
async def withdraw(rich):
    async def withdraw(headers=None, **fields):
        body = {
            "projectId": rich.project_id,
            "chain": "memory",
            "token": "USDX",
            "toAddress": person(),
            "amount": "10",
            **fields,
        }
        return await rich.client.post(HERE, json=body, headers=rich.bearer if headers is None else headers)

    return withdraw


async def balance(rich):
    answer = await rich.client.get("/api/merchant/wallet/balance?chain=memory&token=USDX", headers=rich.key)
    found = answer.json()["balance"]
    return found["available"], found["pending"]


async def own_wallet(rich):
    answer = await rich.client.get("/api/merchant/wallet/addresses", headers=rich.key)
    (found,) = [one["address"] for one in answer.json()["addresses"] if "memory" in one["chains"]]
    return found


async def test_a_withdrawal_takes_a_code_and_is_read_and_listed(rich, phone, withdraw, client):
    answer = await withdraw(totpCode=phone.code())
    assert answer.status_code == 201, answer.text
    made = answer.json()["withdrawal"]
    expected = {
        "projectId": rich.project_id, "status": "requested", "mode": "live", "chain": "memory", "token": "USDX",
        "amount": "10", "toAddress": person(), "txHash": None, "waitsFor": None, "error": None, "completedAt": None,
    }  # fmt: skip
    assert expected.items() <= made.items()
    assert await balance(rich) == ("90", "10")
    assert (await client.get(f"{HERE}/{made['withdrawalId']}", headers=rich.bearer)).json()["withdrawal"] == made
    listed = (await client.get(HERE, headers=rich.bearer)).json()
    assert (listed["withdrawals"], listed["page"], listed["limit"], listed["total"]) == ([made], 1, 25, 1)
    assert (await client.get(f"{HERE}?projectId=prj_x", headers=rich.bearer)).json()["total"] == 0
    other = await Merchant(client).open("bob@shop.example")
    assert (await client.get(HERE, headers=other.bearer)).json()["total"] == 0
    theirs = await client.get(f"{HERE}/{made['withdrawalId']}", headers=other.bearer)
    refused(theirs, 404, "WITHDRAWAL_NOT_FOUND")


async def test_no_withdrawal_without_a_good_code_that_was_never_used(rich, phone, withdraw):
    refused(await withdraw(), 403, "TWO_FACTOR_REQUIRED")
    refused(await withdraw(totpCode=phone.wrong_code()), 403, "TWO_FACTOR_INVALID")
    code = phone.code()
    assert (await withdraw(totpCode=code)).status_code == 201
    refused(await withdraw(totpCode=code), 403, "TWO_FACTOR_INVALID")
    assert await balance(rich) == ("90", "10")


async def test_without_a_second_factor_there_are_no_withdrawals(rich, withdraw):
    refused(await withdraw(totpCode="123456"), 403, "TWO_FACTOR_NOT_ENROLLED")


async def test_an_api_key_opens_no_door_to_withdrawals(rich, phone, withdraw, client):
    refused(await withdraw(headers=rich.key, totpCode=phone.code()), 401, "SESSION_REQUIRED")
    refused(await client.get(HERE, headers=rich.key), 401, "SESSION_REQUIRED")
    refused(await client.post("/api/merchant/withdrawals", json={}, headers=rich.key), 404, "ROUTE_NOT_FOUND")
    refused(await client.post(APPROVED, json={}, headers=rich.key), 401, "SESSION_REQUIRED")
    assert await balance(rich) == ("100", "0")


async def test_a_repetition_needs_no_code_and_withdraws_nothing_more(rich, phone, withdraw):
    first = await withdraw(totpCode=phone.code(), idempotencyKey="w-1")
    again = await withdraw(headers={**rich.bearer, "Idempotency-Key": "w-1"}, totpCode=phone.code())
    assert (again.status_code, again.json()["idempotent"]) == (200, True)
    assert again.json()["withdrawal"] == first.json()["withdrawal"]
    assert await balance(rich) == ("90", "10")
    refused(await withdraw(amount="11", idempotencyKey="w-1"), 409, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize("held", ["members", "ledger_accounts"])
async def test_a_twin_that_comes_meanwhile_is_told_of_the_first_and_not_that_its_code_was_used(
    rich, phone, withdraw, gateway, held
):
    """As from a client that gives up waiting and sends the same again."""
    asked = {"totpCode": phone.code(), "idempotencyKey": "w-1"}
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(f"SELECT FROM {held} FOR NO KEY UPDATE")
        first = asyncio.create_task(withdraw(**asked))
        await waits_for_a_lock(conn, first)
        twin = asyncio.create_task(withdraw(**asked))
        await waits_for_a_lock(conn, twin, number=2)
    made, again = await asyncio.gather(first, twin)
    assert (made.status_code, again.status_code, again.json()["idempotent"]) == (201, 200, True)
    assert again.json()["withdrawal"] == made.json()["withdrawal"]
    assert await balance(rich) == ("90", "10")


async def test_a_wrong_code_keeps_no_key(rich, phone, withdraw):
    refused(await withdraw(totpCode="000000", idempotencyKey="w-1"), 403, "TWO_FACTOR_INVALID")
    assert (await withdraw(totpCode=phone.code(), idempotencyKey="w-1")).status_code == 201


async def test_a_mistake_does_not_cost_the_code(rich, phone, withdraw, client):
    code = phone.code()
    refused(await withdraw(totpCode=code, toAddress="nowhere"), 400, "INVALID_ADDRESS", "toAddress")
    refused(await withdraw(totpCode=code, toAddress=await own_wallet(rich)), 400, "INVALID_ADDRESS", "toAddress")
    refused(await withdraw(totpCode=code, amount="0"), 400, "INVALID_AMOUNT", "amount")
    refused(await withdraw(totpCode=code, projectId="prj_x"), 404, "PROJECT_NOT_FOUND")
    other = await Merchant(client).open("bob@shop.example")
    refused(await withdraw(totpCode=code, projectId=other.project_id), 403, "PROJECT_NOT_OWNED")
    assert (await withdraw(totpCode=code)).status_code == 201


async def test_more_than_there_is_is_refused(rich, phone, withdraw):
    refused(await withdraw(totpCode=phone.code(), amount="100.5"), 403, "INSUFFICIENT_BALANCE")
    assert await balance(rich) == ("100", "0")


@pytest.mark.parametrize(
    "act, status, code",
    [
        ("UPDATE sessions SET revoked_at = now() WHERE member_pk = $1", 401, "SESSION_ENDED"),
        ("UPDATE members SET role = 'viewer' WHERE id = $1", 403, "ROLE_NOT_ALLOWED"),
    ],
)
async def test_nobody_withdraws_who_was_shut_out_while_his_code_was_looked_at(rich, gateway, client, act, status, code):
    eve = await Teammate(client, rich).sign_in("admin", name="eve")
    body = {"projectId": rich.project_id, "chain": "memory", "token": "USDX", "toAddress": person(), "amount": "10"}
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM two_factor_states WHERE member_pk = $1 FOR NO KEY UPDATE", (eve.pk,))
        asked = asyncio.create_task(eve.ask("POST", HERE, body | {"totpCode": eve.phone.next_code()}))
        await waits_for_a_lock(conn, asked)
        await conn.exec_driver_sql(act, (eve.pk,))
    refused(await asked, status, code)
    assert await balance(rich) == ("100", "0")


async def test_an_address_is_approved_with_a_code_and_taken_back_without(rich, phone, client, clock):
    body = {"chain": "memory", "address": person("safe"), "label": "The safe"}
    refused(await client.post(APPROVED, json=body, headers=rich.bearer), 403, "TWO_FACTOR_REQUIRED")
    wrong = {**body, "address": "nowhere", "totpCode": phone.code()}
    refused(await client.post(APPROVED, json=wrong, headers=rich.bearer), 400, "INVALID_ADDRESS", "address")
    own = {**wrong, "address": await own_wallet(rich)}
    refused(await client.post(APPROVED, json=own, headers=rich.bearer), 400, "INVALID_ADDRESS", "address")
    made = await client.post(APPROVED, json={**body, "totpCode": phone.code()}, headers=rich.bearer)
    assert made.status_code == 201, made.text
    approved = made.json()["approvedAddress"]
    expected = {"mode": "live", "chain": "memory", "address": person("safe"), "label": "The safe"}
    assert expected.items() <= approved.items()
    assert (await client.get(APPROVED, headers=rich.bearer)).json()["approvedAddresses"] == [approved]
    assert (await client.get(f"{APPROVED}?mode=sandbox", headers=rich.bearer)).json()["approvedAddresses"] == []
    rule = {"autopayoutPolicy": "limit", "autopayoutThreshold": "50", "autopayoutAddress": person("safe")}
    assert (await client.patch(SETTINGS, json=rule, headers=rich.key)).status_code == 200
    path = f"{APPROVED}/{approved['approvalId']}"
    other = await Merchant(client).open("bob@shop.example")
    refused(await client.delete(path, headers=other.bearer), 404, "APPROVED_ADDRESS_NOT_FOUND")
    assert (await client.delete(path, headers=rich.bearer)).json() == {"success": True}
    refused(await client.delete(path, headers=rich.bearer), 404, "APPROVED_ADDRESS_NOT_FOUND")
    coins = (await client.get("/api/merchant/wallet/coins", headers=rich.key)).json()["coins"]
    (coin,) = [coin for coin in coins if (coin["chain"], coin["token"]) == ("memory", "USDX")]
    assert (coin["autopayoutPolicy"], coin["autopayoutAddress"]) == ("off", None)
    refused(await client.patch(SETTINGS, json=rule, headers=rich.key), 403, "ADDRESS_NOT_APPROVED")


async def test_one_is_found_by_whoever_every_project_is_open_to(rich, phone, withdraw, client):
    withdrawal_id = (await withdraw(totpCode=phone.code())).json()["withdrawal"]["withdrawalId"]
    some = await Teammate(client, rich).sign_in("viewer", projects=[rich.project_id])
    path = f"/api/dashboard/projects/{rich.project_id}/search?q={withdrawal_id}"
    found = (await client.get(path, headers=rich.bearer)).json()["found"]
    assert [(one["kind"], one["id"]) for one in found] == [("withdrawals", withdrawal_id)]
    assert (await client.get(path, headers=some.bearer)).json()["found"] == []
