"""Payouts over HTTP: the shapes of answers, and a status for everything that can be wrong."""

from __future__ import annotations

import pytest

from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, post
from tests.support.payout_env import person
from tests.support.web import ADMIN_KEY, Merchant, refused

ADMIN = {"X-Admin-Key": ADMIN_KEY}
WALLET = "/api/merchant/wallet"
BODY = {"chain": "memory", "token": "USDX", "toAddress": person(), "amount": "10"}


async def fund(gateway, merchant, units, mode="live", reference="1"):
    token = gateway.registry.chains["memory"].token("USDX")
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        row, asset = found.scalar_one(), f"memory/{token.contract}"
        movement = Movement(
            Account(row, asset, Purpose.CUSTODY_WALLET), Account(row, asset, Purpose.AVAILABLE), units * 10**6
        )
        await post(conn, mode, [Posting(mode=mode, kind="test", reference=mode + reference, movements=[movement])])


@pytest.fixture
async def rich(client, gateway, merchant):
    await fund(gateway, merchant, 100)
    return merchant


@pytest.fixture
async def pay(client, merchant):
    async def pay(path="payout", headers=None, **fields):
        body = {name: value for name, value in {**BODY, **fields}.items() if value is not None}
        return await client.post(f"{WALLET}/{path}", json=body, headers={**merchant.key, **(headers or {})})

    return pay


async def test_a_payout_is_answered_at_once_and_read_by_its_id(client, rich, pay):
    answer = await pay()
    assert answer.status_code == 201, answer.text
    payout = answer.json()["payout"]
    assert set(answer.json()) == {"success", "payout"}
    assert payout == {
        "payoutId": payout["payoutId"],
        "kind": "payout",
        "status": "requested",
        "mode": "live",
        "chain": "memory",
        "token": "USDX",
        "contractAddress": payout["contractAddress"],
        "decimals": 6,
        "amount": "10",
        "toAddress": person(),
        "txHash": None,
        "fee": None,
        "error": None,
        "errorCode": None,
        "waitsFor": None,
        "waitsForText": None,
        "batchId": None,
        "swap": None,
        "createdAt": "2026-01-01T12:00:00.000Z",
        "updatedAt": "2026-01-01T12:00:00.000Z",
        "completedAt": None,
    }
    assert payout["payoutId"].startswith("po_")
    read = await client.get(f"{WALLET}/payouts/{payout['payoutId']}", headers=rich.key)
    assert read.json() == {"success": True, "payout": payout}
    balance = await client.get(f"{WALLET}/balance?chain=memory&token=USDX", headers=rich.key)
    assert {"available": "90", "pending": "10"}.items() <= balance.json()["balance"].items()


async def test_a_tag_is_answered_and_read_with_its_payout(client, rich, pay):
    payout = (await pay(toTag="007")).json()["payout"]
    assert (payout["toAddress"], payout["toTag"]) == (person(), "7")
    read = await client.get(f"{WALLET}/payouts/{payout['payoutId']}", headers=rich.key)
    assert read.json()["payout"] == payout
    refused(await pay(toTag="seven"), 400, "INVALID_TAG", "toTag")
    rows = [{"toAddress": person(), "amount": "1", "toTag": tag} for tag in ("1", "x")]
    batch = await client.post(
        f"{WALLET}/payout/batch", json={"chain": "memory", "token": "USDX", "destinations": rows}, headers=rich.key
    )
    assert [one["toTag"] for one in batch.json()["payouts"]] == ["1"]
    assert [one["code"] for one in batch.json()["rejected"]] == ["INVALID_TAG"]


async def test_a_repetition_returns_the_first_payout_with_200(rich, pay):
    first = (await pay(headers={"Idempotency-Key": "k"})).json()["payout"]
    again = await pay(idempotencyKey="k")
    assert again.status_code == 200
    assert again.json() == {"success": True, "payout": first, "idempotent": True}
    refused(await pay(idempotencyKey="k", amount="11"), 409, "IDEMPOTENCY_KEY_REUSED")
    refused(await pay(headers={"Idempotency-Key": "k"}, idempotencyKey="l"), 400, "IDEMPOTENCY_KEY_MISMATCH")


@pytest.mark.parametrize(
    "fields, status, code, field",
    [
        ({"amount": "100.01"}, 403, "INSUFFICIENT_BALANCE", None),
        ({"amount": 10}, 400, "VALIDATION_ERROR", "amount"),
        ({"amount": "ten"}, 400, "INVALID_AMOUNT", "amount"),
        ({"toAddress": "nobody"}, 400, "INVALID_ADDRESS", "toAddress"),
        ({"toAddress": None}, 400, "VALIDATION_ERROR", "toAddress"),
        ({"chain": "nowhere"}, 400, "UNSUPPORTED_CHAIN", "chain"),
        ({"token": "nothing"}, 400, "UNSUPPORTED_TOKEN", "token"),
        ({"chain": "idle"}, 503, "CHAIN_UNAVAILABLE", None),
        ({"srcAmount": "1"}, 400, "INVALID_PAYOUT_MODE", "srcAmount"),
        ({"amount": None, "srcChain": "memory"}, 400, "INVALID_PAYOUT_MODE", "srcToken"),
        ({"slippage": "half"}, 400, "VALIDATION_ERROR", "slippage"),
        ({"slippage": -1}, 400, "VALIDATION_ERROR", "slippage"),
        ({"fee": "1"}, 400, "VALIDATION_ERROR", "fee"),
        ({"idempotencyKey": "a\0b"}, 400, "VALIDATION_ERROR", "idempotencyKey"),
    ],
)
async def test_each_mistake_has_its_status_code_and_field(rich, pay, fields, status, code, field):
    refused(await pay(**fields), status, code, *([] if field is None else [field]))


async def test_a_chain_without_contracts_has_no_swaps(rich, pay):
    swap = {"amount": None, "srcChain": "memory", "srcToken": "MEM", "srcAmount": "1", "slippage": 0.5}
    refused(await pay(**swap), 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")


@pytest.mark.parametrize("field", ["srcToken", "token"])
async def test_a_token_of_a_swap_that_nobody_has_heard_of_is_not_enabled(rich, pay, field):
    swap = {"amount": None, "srcChain": "memory", "srcToken": "MEM", "srcAmount": "1", field: "NOTHING"}
    refused(await pay(**swap), 400, "TOKEN_NOT_ENABLED", field)


async def test_the_operators_switch_is_a_503(client, rich, pay):
    async with client._transport.app.state.gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1::jsonb, now())",
            ('{"payoutEnabled": false}',),
        )
    refused(await pay(), 503, "PAYOUT_DISABLED")


async def test_a_batch_is_answered_with_its_payouts_and_the_rows_that_were_refused(client, rich, pay):
    rows = [
        {"toAddress": person("ann"), "amount": "1.5"},
        {"toAddress": "nobody", "amount": "1"},
        {"toAddress": person("bob"), "amount": "2", "idempotencyKey": "bob"},
    ]
    body = {"chain": "memory", "token": "USDX", "destinations": rows}
    headers = {**rich.key, "Idempotency-Key": "friday"}
    answer = await client.post(f"{WALLET}/payout/batch", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert set(made) == {"success", "batch", "payouts", "rejected"}
    assert {
        "totalAmount": "3.5",
        "acceptedRows": 2,
        "rejectedRows": 1,
        "replayedRows": 0,
    }.items() <= made["batch"].items()
    assert [payout["toAddress"] for payout in made["payouts"]] == [person("ann"), person("bob")]
    (rejected,) = made["rejected"]
    named = {"row": 1, "toAddress": "nobody", "amount": "1", "code": "INVALID_ADDRESS", "field": "toAddress"}
    assert named.items() <= rejected.items()
    again = await client.post(f"{WALLET}/payout/batch", json=body, headers=headers)
    assert (again.status_code, again.json()) == (200, {**made, "idempotent": True})
    page = await client.get(f"{WALLET}/payouts?batchId={made['batch']['batchId']}&limit=1", headers=rich.key)
    assert page.json()["payouts"] == [made["payouts"][1]]
    assert page.json()["total"] == 2


async def test_a_batch_is_checked_row_by_row_before_anything_is_paid(client, rich):
    rows = [
        {"toAddress": person("ann"), "amount": "1.5"},
        {"toAddress": "nobody", "amount": "1"},
        {"toAddress": person("bob"), "amount": "0.0000001"},
        {"toAddress": person("cleo"), "amount": "400", "idempotencyKey": "twice"},
        {"toAddress": person("dan"), "amount": "2", "toTag": "x"},
        {"toAddress": person("eve"), "amount": "2", "idempotencyKey": "twice"},
        {"toAddress": person("fay"), "amount": "400.000001"},
        {"toAddress": person("gus"), "amount": "0.5"},
    ]
    limits = {"memory/USDX": {"perTransaction": "400", "minimum": "1"}}
    set_up = await client.put("/api/admin/settings", json={"version": 0, "limits": limits}, headers=ADMIN)
    assert set_up.status_code == 200, set_up.text
    body = {"chain": "memory", "token": "USDX", "destinations": rows}
    found = []
    for _ in range(2):
        answer = await client.post(f"{WALLET}/payout/batch/check", json=body, headers=rich.key)
        assert answer.status_code == 200, answer.text
        found.append([(one["row"], one["code"], one["field"]) for one in answer.json()["rejected"]])
    # More than there is refuses the whole batch, and no row of it alone.
    refusals = [
        (1, "INVALID_ADDRESS", "toAddress"),
        (2, "INVALID_AMOUNT", "amount"),
        (4, "INVALID_TAG", "toTag"),
        (5, "DUPLICATE_IDEMPOTENCY_KEY", "idempotencyKey"),
        (6, "PAYOUT_LIMIT_EXCEEDED", "amount"),
        (7, "PAYOUT_BELOW_MINIMUM", "amount"),
    ]
    assert found == [refusals] * 2
    paid = await client.post(
        f"{WALLET}/payout/batch", json={**body, "destinations": [rows[0], *rows[4:6]]}, headers=rich.key
    )
    assert (paid.status_code, paid.json()["batch"]["acceptedRows"]) == (201, 2)
    refused(
        await client.post(f"{WALLET}/payout/batch/check", json={**body, "token": "nothing"}, headers=rich.key),
        400,
        "UNSUPPORTED_TOKEN",
        "token",
    )


async def test_a_batch_has_1_to_100_rows_and_is_refused_whole_where_the_balance_is_too_low(client, rich, pay):
    async def batch(rows):
        body = {"chain": "memory", "token": "USDX", "destinations": rows}
        return await client.post(f"{WALLET}/payout/batch", json=body, headers=rich.key)

    row = {"toAddress": person(), "amount": "1.000001"}
    refused(await batch([]), 400, "VALIDATION_ERROR", "destinations")
    refused(await batch([row] * 101), 400, "VALIDATION_ERROR", "destinations")
    refused(await batch([row] * 100), 403, "INSUFFICIENT_BALANCE")
    assert (await client.get(f"{WALLET}/payouts", headers=rich.key)).json()["total"] == 0


async def test_a_batch_repeated_with_its_rows_keys_is_answered_as_the_first_time(client, rich):
    rows = [{"toAddress": person(name), "amount": "2.50", "idempotencyKey": name} for name in ("ann", "bob")]
    body = {"chain": "memory", "token": "USDX", "destinations": [*rows, {"toAddress": "nobody", "amount": "1"}]}
    made = await client.post(f"{WALLET}/payout/batch", json=body, headers=rich.key)
    assert (made.status_code, made.json()["batch"]["acceptedRows"]) == (201, 2)
    again = await client.post(f"{WALLET}/payout/batch", json=body, headers=rich.key)
    assert (again.status_code, again.json()) == (200, {**made.json(), "idempotent": True})
    assert (await client.get(f"{WALLET}/payouts", headers=rich.key)).json()["total"] == 2


@pytest.mark.parametrize("then", ["no credits", "payouts paused", "coin switched off"])
async def test_a_batch_repeated_with_its_rows_keys_is_answered_whatever_may_be_paid_now(client, rich, then):
    """Also where it is the batch itself that used the credits up."""
    rows = [{"toAddress": person(name), "amount": "2.50", "idempotencyKey": name} for name in ("ann", "bob")]
    body = {"chain": "memory", "token": "USDX", "destinations": rows}
    if then == "no credits":
        credit = (await client.get(WALLET, headers=rich.key)).json()["systemCredit"]
        used = {"mode": "live", "amount": credit["floor"] - credit["balance"], "reference": "used"}
        at = f"/api/admin/merchants/{rich.merchant_id}/credits"
        assert (await client.post(at, json=used, headers=ADMIN)).is_success
    made = await client.post(f"{WALLET}/payout/batch", json=body, headers=rich.key)
    assert made.status_code == 201, made.text
    if then == "payouts paused":
        paused = {"version": 0, "payoutEnabled": False}
        assert (await client.put("/api/admin/settings", json=paused, headers=ADMIN)).is_success
    if then == "coin switched off":
        assert (await client.put(f"{WALLET}/coins", json={"coins": []}, headers=rich.key)).is_success
    again = await client.post(f"{WALLET}/payout/batch", json=body, headers=rich.key)
    assert (again.status_code, again.json()) == (200, {**made.json(), "idempotent": True})
    other = {**body, "destinations": [{"toAddress": person("cleo"), "amount": "1"}]}
    refused(
        await client.post(f"{WALLET}/payout/batch", json=other, headers=rich.key),
        *{
            "no credits": (403, "INSUFFICIENT_CPT"),
            "payouts paused": (503, "PAYOUT_DISABLED"),
            "coin switched off": (400, "TOKEN_NOT_ENABLED"),
        }[then],
    )


async def test_a_row_with_text_that_nobody_sees_is_refused_alone(client, rich):
    rows = [
        {"toAddress": person("ann"), "amount": "1"},
        {"toAddress": person("bob"), "amount": "1", "toTag": "7\n"},
        {"toAddress": person("cleo") + "\n", "amount": "1"},
        {"toAddress": person("dan"), "amount": "1\n"},
        {"toAddress": person("eve"), "amount": "1", "idempotencyKey": "a\u200bb"},
    ]
    body = {"chain": "memory", "token": "USDX", "destinations": rows}
    for path in ("payout/batch/check", "payout/batch"):
        answer = await client.post(f"{WALLET}/{path}", json=body, headers=rich.key)
        assert [(one["row"], one["code"], one["field"]) for one in answer.json()["rejected"]] == [
            (1, "INVALID_TAG", "toTag"),
            (2, "INVALID_ADDRESS", "toAddress"),
            (3, "INVALID_AMOUNT", "amount"),
            (4, "VALIDATION_ERROR", "idempotencyKey"),
        ]
    assert answer.json()["batch"]["acceptedRows"] == 1


async def test_a_batch_of_which_every_row_is_refused_is_a_400_with_the_rows(client, rich):
    rows = [{"toAddress": "nobody", "amount": "1"}, {"toAddress": person(), "amount": "0"}]
    body = {"chain": "memory", "token": "USDX", "destinations": rows}
    answer = await client.post(f"{WALLET}/payout/batch", json=body, headers={**rich.key, "Idempotency-Key": "k"})
    said = answer.json()
    assert (answer.status_code, said["success"], said["code"]) == (400, False, "BATCH_REJECTED")
    assert [(one["row"], one["toAddress"], one["amount"], one["code"]) for one in said["rejected"]] == [
        (0, "nobody", "1", "INVALID_ADDRESS"),
        (1, person(), "0", "INVALID_AMOUNT"),
    ]
    assert [one["field"] for one in said["details"]] == ["destinations[0]", "destinations[1]"]
    assert (await client.get(f"{WALLET}/payouts", headers=rich.key)).json()["total"] == 0


async def test_an_amount_is_the_same_however_many_zeros_it_ends_with(rich, pay):
    first = (await pay(idempotencyKey="k", amount="12.5")).json()["payout"]
    again = await pay(idempotencyKey="k", amount="12.50")
    assert (again.status_code, again.json()["payout"]) == (200, first)


async def test_lists_take_filters_and_refuse_what_they_do_not_know(client, rich, pay):
    await pay()

    async def total(query):
        return (await client.get(f"{WALLET}/payouts?{query}", headers=rich.key)).json()["total"]

    assert await total("status=requested&chain=memory&token=USDX") == 1
    assert await total("status=completed") == await total("token=MEM") == await total("batchId=bat_x") == 0
    refused(await client.get(f"{WALLET}/payouts?status=lost", headers=rich.key), 400, "VALIDATION_ERROR", "status")
    refused(await client.get(f"{WALLET}/payouts?limit=101", headers=rich.key), 400, "VALIDATION_ERROR", "limit")
    refused(await client.get(f"{WALLET}/payouts/po_x", headers=rich.key), 404, "PAYOUT_NOT_FOUND")


async def test_a_person_pays_from_the_dashboard_and_sees_the_same(client, rich, pay):
    mine = (await pay()).json()["payout"]
    wallet = f"/api/dashboard/projects/{rich.project_id}/wallet"
    await rich.step_up()
    made = await client.post(f"{wallet}/payout", json=BODY, headers=rich.bearer)
    assert made.status_code == 201
    listed = (await client.get(f"{wallet}/payouts", headers=rich.bearer)).json()["payouts"]
    assert [payout["payoutId"] for payout in listed] == [made.json()["payout"]["payoutId"], mine["payoutId"]]
    other = await Merchant(client).open("bob@shop.example")
    refused(await client.get(f"{WALLET}/payouts/{mine['payoutId']}", headers=other.key), 404, "PAYOUT_NOT_FOUND")
    refused(await client.get(f"{wallet}/payouts", headers=other.bearer), 403, "PROJECT_NOT_OWNED")


async def test_a_sandbox_project_pays_with_money_of_its_mode(client, gateway, rich, pay):
    await rich.add_project(mode="sandbox")
    refused(await pay(), 403, "INSUFFICIENT_BALANCE")
    await fund(gateway, rich, 10, mode="sandbox")
    answer = await pay()
    assert (answer.status_code, answer.json()["payout"]["mode"]) == (201, "sandbox")


async def test_coins_are_listed_enabled_and_set(client, rich, pay):
    coins = (await client.get(f"{WALLET}/coins", headers=rich.key)).json()["coins"]
    assert {coin["chain"]: coin["availability"] for coin in coins} == {
        "memory": "live", "pretend": "simulated", "idle": "unconfigured",
    }  # fmt: skip
    (usdx,) = [coin for coin in coins if (coin["chain"], coin["token"]) == ("memory", "USDX")]
    assert {
        "enabled": True,
        "autoConvertEnabled": False,
        "autoConvertDestChain": None,
        "autoConvertMinimumUsd": "10",
        "autoConvertWaitsFor": [],
        "autopayoutPolicy": "off",
        "autopayoutThreshold": None,
        "autopayoutAddress": None,
    }.items() <= usdx.items()
    body = {"coins": [{"chain": "memory", "token": "MEM"}]}
    answer = (await client.put(f"{WALLET}/coins", json=body, headers=rich.key)).json()
    assert [coin["token"] for coin in answer["coins"] if coin["enabled"]] == ["MEM"]
    assert answer["version"] == 1
    stale = {"version": 0, "coins": [{"chain": "memory", "token": "USDX"}]}
    refused(await client.put(f"{WALLET}/coins", json=stale, headers=rich.key), 409, "VERSION_MISMATCH")
    read = (await client.get(f"{WALLET}/coins", headers=rich.key)).json()
    assert (read["version"], [coin["token"] for coin in read["coins"] if coin["enabled"]]) == (1, ["MEM"])
    again = await client.put(f"{WALLET}/coins", json=body | {"version": 1}, headers=rich.key)
    assert (again.status_code, again.json()["version"]) == (200, 2)
    refused(await pay(), 400, "TOKEN_NOT_ENABLED")
    path = f"{WALLET}/coins/memory/USDX/settings"
    changed = await client.patch(path, json={"autopayoutThreshold": "12.50"}, headers=rich.key)
    assert changed.status_code == 200
    assert (changed.json()["coin"]["autopayoutThreshold"], changed.json()["coin"]["enabled"]) == ("12.5", False)
    nowhere = await client.patch(path, json={"autoConvertEnabled": True}, headers=rich.key)
    refused(nowhere, 400, "VALIDATION_ERROR", "autoConvertDestToken")
    limit = {"autopayoutPolicy": "limit", "autopayoutAddress": person("cold")}
    refused(await client.patch(path, json=limit, headers=rich.key), 403, "ADDRESS_NOT_APPROVED")
    policy = await client.patch(path, json={"autopayoutPolicy": "always"}, headers=rich.key)
    refused(policy, 400, "VALIDATION_ERROR", "autopayoutPolicy")
    unknown = await client.patch(f"{WALLET}/coins/memory/BTC/settings", json={}, headers=rich.key)
    refused(unknown, 400, "UNSUPPORTED_TOKEN")
