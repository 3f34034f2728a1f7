"""Operators see what all merchants have: in lists, one by one, and by whatever text a merchant has sent them."""

from __future__ import annotations

import pytest

from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, Merchant, refused

KEY = {"X-Admin-Key": ADMIN_KEY}
ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
LISTS = ("payments", "deposits", "payouts", "refunds", "withdrawals", "exchanges", "accounts", "trackers")


async def get(client, path, headers=KEY):
    answer = await client.get(f"/api/admin/{path}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
async def story(client, merchant):
    """Have two merchants make payments, of which the first's is paid in the sandbox."""
    other = await Merchant(client).open("bob@shop.example")
    made = []
    for who, email in ((merchant, "Carol@example.com"), (other, None)):
        body = ORDER | {"orderId": f"A-{len(made)}", "customerEmail": email, "customerName": email and "Carol"}
        body = {name: value for name, value in body.items() if value is not None}
        answer = await client.post("/api/payment", json=body, headers=who.key)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["payment"])
    account = {"externalId": "user-7", "chains": ["memory"]}
    answer = await client.post("/api/account", json=account, headers=merchant.key)
    return made, answer.json()["account"], other


@pytest.mark.slow
async def test_every_list_answers_and_refuses_what_it_cannot_be_asked_for(client, story):
    for name in LISTS:
        found = await get(client, f"{name}?sort=createdAt&from=2020-01-01&mode=sandbox")
        assert found["total"] == len(found[name])
        for row in found[name]:
            assert row["merchantName"]
            assert row["projectName"]
        for wrong in ("merchant=mer_nobody", "project=prj_none", "mode=x"):
            answer = await client.get(f"/api/admin/{name}?{wrong}", headers=KEY)
            refused(answer, 400, "VALIDATION_ERROR", wrong.partition("=")[0])
        answer = await client.get(f"/api/admin/{name}?status=x", headers=KEY)
        refused(answer, 400, "VALIDATION_ERROR", "status")
        csv = await client.get(f"/api/admin/{name}?format=csv", headers=KEY)
        assert csv.text.startswith("merchantId,merchantName,projectId,projectName,mode,createdAt,")


async def test_payments_are_found_by_whatever_names_them(client, merchant, story):
    (first, second), _, other = story
    whole = await get(client, "payments")
    assert [one["paymentId"] for one in whole["payments"]] == [second["paymentId"], first["paymentId"]]
    assert "customerEmail" not in str(whole)
    for text in (
        first["paymentId"],
        first["publicId"],
        "A-0",
        first["depositAddress"],
        "carol@EXAMPLE.com",
        merchant.email,
        merchant.project_id,
    ):
        found = await get(client, f"payments?search={text}")
        assert ([one["paymentId"] for one in found["payments"]], found["total"]) == ([first["paymentId"]], 1), text
    assert (await get(client, "payments?search=nothing-of-this-name"))["payments"] == []
    assert (await get(client, f"payments?search=A-0&merchant={other.email}"))["payments"] == []
    assert (await get(client, f"payments?search={merchant.email}&merchant={other.email}"))["payments"] == []
    assert (await get(client, f"payments?merchant={other.email}&status=pending"))["total"] == 1
    assert (await get(client, f"payments?project={merchant.project_id}&chain=other"))["total"] == 0


async def test_one_box_says_what_a_text_is(client, merchant, story):
    (first, _), account, _ = story

    async def kinds(text):
        return {(one["kind"], one["id"]) for one in (await get(client, f"search?q={text}"))["found"]}

    assert await kinds(first["paymentId"]) == {("payments", first["paymentId"])}
    assert await kinds("A-0") == {("payments", first["paymentId"])}
    assert await kinds("user-7") == {("accounts", account["accountId"])}
    assert await kinds(account["addresses"][0]["address"]) == {("accounts", account["accountId"])}
    assert await kinds(merchant.project_id) == {("projects", merchant.project_id)}
    assert {kind for kind, _ in await kinds(merchant.email)} == {"merchants"}
    assert await kinds("nothing") == set()


async def test_a_payments_story_has_its_customer_for_those_who_answer_customers(client, story):
    (first, _), _, _ = story
    path = f"payments/{first['paymentId']}"
    shown = await get(client, path)
    assert shown["payment"]["orderId"] == "A-0"
    assert shown["story"]["customer"] == {"name": "Carol", "email": "Carol@example.com"}
    assert shown["story"]["deposits"] == []
    support, auditor = await Officer(client).sign_in("support"), await Officer(client).sign_in("auditor")
    assert (await get(client, path, support.bearer))["story"]["customer"] is not None
    assert (await get(client, path, auditor.bearer))["story"]["customer"] is None
    by_mail = "payments?search=carol@example.com"
    assert (await get(client, by_mail, support.bearer))["total"] == 1
    assert (await get(client, by_mail, auditor.bearer))["total"] == 0
    for name in LISTS:
        answer = await client.get(f"/api/admin/{name}/none", headers=KEY)
        refused(answer, 404, f"{name[:-1].upper()}_NOT_FOUND")


async def test_a_deposit_is_found_by_its_transaction_and_told_with_its_payment(client, merchant):
    await merchant.add_project(mode="sandbox")
    body = ORDER | {"orderId": "A-0"}
    first = (await client.post("/api/payment", json=body, headers=merchant.key)).json()["payment"]
    paid = {"paymentId": first["paymentId"], "confirmations": 20}
    answer = await client.post("/api/sandbox/deposit", json=paid, headers=merchant.key)
    assert answer.status_code in {200, 201}, answer.text
    found = (await get(client, "deposits"))["deposits"]
    (deposit,) = found
    assert deposit["paymentId"] == first["paymentId"]
    for text in (deposit["txHash"], deposit["depositId"], "A-0", first["depositAddress"]):
        assert [one["depositId"] for one in (await get(client, f"deposits?search={text}"))["deposits"]] == [
            deposit["depositId"]
        ]
    assert (await get(client, f"deposits?project={merchant.project_id}"))["total"] == 1
    story_of = (await get(client, f"payments/{first['paymentId']}"))["story"]
    assert [one["depositId"] for one in story_of["deposits"]] == [deposit["depositId"]]
    assert "payment.paid" in {one["event"] for one in story_of["events"]}
