"""What merchants and the operator see of collections, and of what they cost."""

from __future__ import annotations

import pytest

from tests.support.uncollected_rows import insert_uncollected
from tests.support.web import ADMIN_KEY, refused

pytestmark = pytest.mark.slow

PATH = "/api/merchant/wallet/collections"


async def collected(gateway, merchant_id: str) -> None:
    """Insert a finished collection: 50 USDX for a fee of 0.001, and 0.0005 for the gas that was sent before."""
    async with gateway.db.transaction() as conn:
        merchant = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant_id,))
        row = merchant.scalar_one()
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
            " VALUES ('live', 'memory', 'mem1from', 'payment', $1, 7, 0, 900)",
            (row,),
        )
        for kind, fee, token, units in (("top_up", 5 * 10**14, "MEM", 1), ("collection", 10**15, "USDX", 50_000_000)):
            await conn.exec_driver_sql(
                "WITH a AS (SELECT id FROM addresses WHERE address = 'mem1from'), i AS (INSERT INTO outbound_intents"
                " (reference, kind, mode, chain, scope, merchant_pk, source_address_pk, recipient_address_pk,"
                " to_address, token, contract, decimals, units, state, due_at, created_at, updated_at, finished_at)"
                " SELECT $1 || ':one', $1, 'live', 'memory', 0, $2, a.id, a.id, 'mem1to', $3, NULL, 6, $4, 'done',"
                " now(), now(), now(), now() + interval '1 minute' FROM a RETURNING id, source_address_pk),"
                " s AS (INSERT INTO"
                " outbound_slots (intent_pk, address_pk, chain, scope, sequence, state, created_at) SELECT id,"
                " source_address_pk, 'memory', 0, $4, 'done', now() FROM i RETURNING id) INSERT INTO outbound_txs"
                " (slot_pk, chain, scope, tx_id, raw, fee_limit, fee_price, fee_extra, state, succeeded, fee_paid,"
                " created_at) SELECT id, 'memory', 0, $1, ''::bytea, 1, 1, 0, 'final', true, $5, now() FROM s",
                (kind, row, token, units, fee),
            )


async def test_a_merchant_sees_what_was_collected_and_what_it_cost_the_platform(client, merchant, gateway):
    assert (await client.get(PATH, headers=merchant.key)).json()["total"] == 0
    await collected(gateway, merchant.merchant_id)
    answer = (await client.get(PATH, headers=merchant.key)).json()
    (found,) = answer["collections"]
    assert (answer["total"], found["amount"], found["token"], found["status"]) == (1, "50", "USDX", "done")
    assert (found["fee"], found["txHash"]) == ({"amount": "0.0015", "token": "MEM"}, "collection")
    assert (await client.get(f"{PATH}?chain=other", headers=merchant.key)).json()["total"] == 0


async def test_the_operator_sees_everybodys(client, merchant, gateway):
    await collected(gateway, merchant.merchant_id)
    path, admin = "/api/admin/collections", {"X-Admin-Key": ADMIN_KEY}
    (found,) = (await client.get(path, headers=admin)).json()["collections"]
    named = (await client.get("/api/admin/merchants", headers=admin)).json()["merchants"]
    assert {one["merchantId"]: one["name"] for one in named}[found["merchantId"]] == found["merchantName"]
    assert found["merchantId"] == merchant.merchant_id
    assert (await client.get(f"{path}?mode=sandbox", headers=admin)).json()["total"] == 0
    refused(await client.get(path, headers=merchant.key), 401, "ADMIN_KEY_INVALID")


UNCOLLECTED = "/api/admin/collections/uncollected"


async def test_an_operator_sees_why_something_is_not_collected_and_the_merchant_does_not(
    client, merchant, gateway, clock
):
    await insert_uncollected(gateway.db, merchant.merchant_id)
    await insert_uncollected(gateway.db, merchant.merchant_id, "collecting_off", index=902)
    admin = {"X-Admin-Key": ADMIN_KEY}
    answer = (await client.get(f"{UNCOLLECTED}?sort=createdAt", headers=admin)).json()
    assert (answer["total"], answer["totalIsExact"]) == (2, True)
    shown = answer["uncollected"][0]
    told = {name: shown[name] for name in ("amount", "valueUsd", "feeUsd", "reason", "address", "purpose", "until")}
    assert told == {
        "amount": "3.5", "valueUsd": "3.5", "feeUsd": "0.8422", "reason": "below_minimum", "address": "mem1lies901",
        "purpose": "payment", "until": None,
    }  # fmt: skip
    assert shown["text"].startswith("It is worth less")
    assert (shown["sendingPaused"], shown["merchantId"]) == (False, merchant.merchant_id)
    for query, count in {
        "reason=collecting_off": 1,
        "reason=refused": 0,
        f"merchantId={merchant.merchant_id}": 2,
        "merchantId=mer_nobody": 0,
        "chain=memory&token=USDX": 2,
        "token=DAIX": 0,
    }.items():
        assert (await client.get(f"{UNCOLLECTED}?{query}", headers=admin)).json()["total"] == count, query
    lines = (await client.get(f"{UNCOLLECTED}?format=csv", headers=admin)).text.splitlines()
    assert (len(lines), lines[0].split(",")[0]) == (3, "uncollectedId")
    refused(await client.get(f"{UNCOLLECTED}?reason=because", headers=admin), 400, "VALIDATION_ERROR")
    refused(await client.get(UNCOLLECTED, headers=merchant.key), 401, "ADMIN_KEY_INVALID")
    path = "/api/admin/chains/memory/pause"
    paused = await client.post(path, headers=admin, json={"what": "sending", "reason": "its nodes lie"})
    assert paused.status_code == 200
    clock.advance(2)
    assert (await client.get(UNCOLLECTED, headers=admin)).json()["uncollected"][0]["sendingPaused"]


async def test_an_operator_reads_how_much_is_not_collected_by_chain_token_and_reason(client, merchant, gateway):
    admin = {"X-Admin-Key": ADMIN_KEY}
    assert (await client.get(f"{UNCOLLECTED}/sums", headers=admin)).json()["sums"] == []
    for index, reason in enumerate(("below_minimum", "below_minimum", "refused"), start=901):
        await insert_uncollected(gateway.db, merchant.merchant_id, reason, index=index)
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE uncollected_funds SET value_usd = NULL WHERE uncollected_id = 'unc_902'")
    sums = (await client.get(f"{UNCOLLECTED}/sums", headers=admin)).json()["sums"]
    told = ("chain", "token", "contractAddress", "reason", "amount", "addresses", "valueUsd", "unpriced")
    assert sorted(tuple(one[name] for name in told) for one in sums) == [
        ("memory", "USDX", "mem1usdx", "below_minimum", "7", 2, "3.5", 1),
        ("memory", "USDX", "mem1usdx", "refused", "3.5", 1, "3.5", 0),
    ]
    assert {one["text"].startswith("It is worth less") for one in sums if one["reason"] == "below_minimum"} == {True}
    refused(await client.get(f"{UNCOLLECTED}/sums", headers=merchant.key), 401, "ADMIN_KEY_INVALID")


async def test_an_operator_has_one_collected_now_for_a_bounded_fee_and_the_log_says_so(client, merchant, gateway):
    (found, address), admin = await insert_uncollected(gateway.db, merchant.merchant_id), {"X-Admin-Key": ADMIN_KEY}
    path = f"{UNCOLLECTED}/{found}/collect"
    for _ in range(2):
        answer = await client.post(path, headers=admin, json={"maxFeeShareBps": 5_000})
        shown = answer.json()["uncollected"]
        assert (answer.status_code, shown["maxFeeShareBps"]) == (200, 5_000)
        assert shown["askedAt"] is not None
    (one,) = (await client.get(f"/api/admin/collections/addresses/{address}", headers=admin)).json()["deposits"]
    told = {name: one[name] for name in ("valueUsd", "feeUsd", "maxFeeShareBps", "refusal", "uncollectedId")}
    assert told == {
        "valueUsd": "3.5", "feeUsd": "0.8422", "maxFeeShareBps": 5_000, "refusal": None, "uncollectedId": found,
    }  # fmt: skip
    assert one["askedAt"] == shown["askedAt"]
    assert (one["merchantId"], one["merchantName"]) == (shown["merchantId"], shown["merchantName"])
    entries = (await client.get("/api/admin/audit?action=collection.asked", headers=admin)).json()["entries"]
    assert [(one["subject"], one["merchantId"]) for one in entries] == [(found, merchant.merchant_id)]
    assert entries[0]["details"]["max_fee_share_bps"] == 5_000
    again = (await client.post(path, headers=admin, json={})).json()["uncollected"]
    assert (again["maxFeeShareBps"], again["askedAt"] is None) == (None, False)
    assert (await client.get("/api/admin/audit?action=collection.asked", headers=admin)).json()["total"] == 2
    for share in (10_000, -1, "5"):
        refused(await client.post(path, headers=admin, json={"maxFeeShareBps": share}), 400, "VALIDATION_ERROR")
    refused(await client.post(f"{UNCOLLECTED}/unc_x/collect", headers=admin, json={}), 404, "UNCOLLECTED_NOT_FOUND")
    refused(await client.post(path, headers=merchant.key, json={}), 401, "ADMIN_KEY_INVALID")


async def test_an_operator_takes_a_wish_back_and_the_log_says_so(client, merchant, gateway, clock):
    (found, address), admin = await insert_uncollected(gateway.db, merchant.merchant_id), {"X-Admin-Key": ADMIN_KEY}
    path, at = f"{UNCOLLECTED}/{found}/collect", f"/api/admin/collections/addresses/{address}"
    asked = (await client.post(path, headers=admin, json={"maxFeeShareBps": 10})).json()["uncollected"]
    text = "No worker has looked at it yet: that takes a moment, or none sends on this chain."
    assert asked["wishWaitsFor"] == {"code": "not_looked_at", "text": text, "since": None}
    pause = {"what": "sending", "reason": "its nodes lie"}
    assert (await client.post("/api/admin/chains/memory/pause", headers=admin, json=pause)).status_code == 200
    clock.advance(2)
    (row,) = (await client.get(UNCOLLECTED, headers=admin)).json()["uncollected"]
    (one,) = (await client.get(at, headers=admin)).json()["deposits"]
    assert row["wishWaitsFor"]["code"] == one["wishWaitsFor"]["code"] == "paused"
    for _ in range(2):
        answer = await client.delete(path, headers=admin)
        shown = answer.json()["uncollected"]
        assert answer.status_code == 200
        assert [shown[name] for name in ("askedAt", "maxFeeShareBps", "wishWaitsFor", "refusal")] == [None] * 4
    entries = (await client.get("/api/admin/audit?action=collection.withdrawn", headers=admin)).json()["entries"]
    assert [(one["subject"], one["merchantId"]) for one in entries] == [(found, merchant.merchant_id)]
    assert entries[0]["details"]["address"] == address
    refused(await client.delete(f"{UNCOLLECTED}/unc_x/collect", headers=admin), 404, "UNCOLLECTED_NOT_FOUND")
    refused(await client.delete(path, headers=merchant.key), 401, "ADMIN_KEY_INVALID")


async def test_an_address_is_read_in_any_spelling_with_what_it_waits_for(client, sandbox_merchant, gateway):
    shop = sandbox_merchant.key
    order = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "12.5"}
    payment = (await client.post("/api/payment", json=order, headers=shop)).json()["payment"]
    deposit = {"paymentId": payment["paymentId"]}
    assert (await client.post("/api/sandbox/deposit", json=deposit, headers=shop)).status_code == 200
    await client.post("/api/sandbox/mine", json={"chain": "memory", "blocks": 10}, headers=shop)
    address, admin = payment["depositAddress"], {"X-Admin-Key": ADMIN_KEY}
    path = "/api/admin/collections/addresses"
    (one,) = (await client.get(f"{path}/{address}", headers=admin)).json()["deposits"]
    assert (one["amount"], one["deposits"], one["mode"]) == ("12.5", 1, "sandbox")
    assert (one["state"], one["code"], one["uncollectedId"]) == ("uncollected", "simulated", None)
    refused(await client.get(f"{path}/mem1nobody", headers=admin), 404, "ADDRESS_NOT_FOUND")
    refused(await client.get(f"{path}/{address}", headers=sandbox_merchant.key), 401, "ADMIN_KEY_INVALID")
