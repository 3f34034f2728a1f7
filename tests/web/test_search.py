"""A merchant pastes whatever names something, and finds it in the project; nothing of anybody else's."""

from __future__ import annotations

import pytest

from tests.support.web import Merchant, refused

ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}


async def pay_in_sandbox(client, who, email=None):
    """Make a payment and an account like everybody's, have the payment paid, and return both and the transaction."""
    body = ORDER | {"orderId": "A-1"} | ({} if email is None else {"customerEmail": email})
    made = (await client.post("/api/payment", json=body, headers=who.key)).json()["payment"]
    paid = {"paymentId": made["paymentId"], "confirmations": 20}
    answer = await client.post("/api/sandbox/deposit", json=paid, headers=who.key)
    assert answer.status_code == 200, answer.text
    account = {"externalId": "user-7", "chains": ["memory"]}
    account = (await client.post("/api/account", json=account, headers=who.key)).json()["account"]
    return made, account, answer.json()["txHash"]


async def found(who, text):
    answer = await who.ask("GET", f"/api/dashboard/projects/{who.project_id}/search?q={text}")
    return [(one["kind"], one["id"], one["paymentId"], one["accountId"]) for one in answer["found"]]


@pytest.fixture
async def two(client, merchant):
    await merchant.add_project(mode="sandbox")
    other = await Merchant(client).open("bob@shop.example")
    await other.add_project(mode="sandbox")
    return merchant, other


async def test_whatever_names_a_record_leads_to_it(client, two):
    merchant, _ = two
    payment, account, tx_hash = await pay_in_sandbox(client, merchant, "Carol@example.com")
    payment_id, account_id = payment["paymentId"], account["accountId"]
    for text in (payment_id, payment["publicId"], "A-1", payment["depositAddress"], tx_hash):
        kinds = {kind: of for kind, _, of, _ in await found(merchant, text)}
        assert kinds["payments"] == payment_id, text
        # What came for it is told with it, as it is read there.
        assert set(kinds) <= {"payments", "deposits"}
        assert set(kinds.values()) == {payment_id}
    assert [one[:2] for one in await found(merchant, "carol@EXAMPLE.com")] == [("payments", payment_id)]
    for text in (account_id, "user-7", account["addresses"][0]["address"]):
        assert await found(merchant, text) == [("accounts", account_id, None, account_id)], text
    assert await found(merchant, "nothing") == []


async def test_nothing_of_another_project_is_found_however_much_of_it_is_called_the_same(client, two):
    merchant, other = two
    payment, account, tx_hash = await pay_in_sandbox(client, merchant, "carol@example.com")
    texts = [payment[name] for name in ("paymentId", "publicId", "depositAddress")]
    texts += [account["accountId"], account["addresses"][0]["address"], tx_hash, "carol@example.com"]
    for text in texts:
        assert await found(other, text) == [], text
    mine, _, _ = await pay_in_sandbox(client, other)
    assert {of for _, _, of, _ in await found(other, "A-1")} == {mine["paymentId"]}
    path = f"/api/dashboard/projects/{merchant.project_id}/search?q=A-1"
    answer = await client.get(path, headers=other.bearer)
    refused(answer, 403, "PROJECT_NOT_OWNED")
