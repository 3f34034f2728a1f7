"""The operators' queue over HTTP: a list like every other."""

from __future__ import annotations

import csv
import io

import pytest

from tests.support.operators import Officer
from tests.support.web import ADMIN_KEY, refused
from tests.web.test_payouts import BODY, WALLET, fund

QUEUE = "/api/admin/outbound"


@pytest.fixture
async def three(client, gateway, clock, merchant):
    """Return the ids of three payouts that wait, asked for a minute apart."""
    await fund(gateway, merchant, 100)
    made = []
    for _ in range(3):
        answer = await client.post(f"{WALLET}/payout", json=BODY, headers=merchant.key)
        made.append(answer.json()["payout"]["payoutId"])
        clock.advance(60)
    return made


@pytest.fixture
async def get(client):
    auditor = (await Officer(client).sign_in("auditor")).bearer

    async def get(query=""):
        return await client.get(f"{QUEUE}?{query}", headers=auditor)

    return get


async def found(get, query=""):
    answer = await get(query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(page):
    return [one["payoutId"] for one in page["outbound"]]


async def test_what_waits_is_listed_in_either_order_and_goes_on_by_a_cursor(get, three):
    newest = await found(get)
    assert (ids(newest), newest["total"], newest["totalIsExact"]) == (three[::-1], 3, True)
    assert {one["waitsFor"]["code"] for one in newest["outbound"]} == {"not_looked_at"}
    seen, query = [], "sort=createdAt&limit=2"
    while query:
        page = await found(get, query)
        seen += ids(page)
        query = page["nextCursor"] and f"sort=createdAt&limit=2&cursor={page['nextCursor']}"
    assert seen == three
    other = (await found(get, "sort=createdAt&limit=1"))["nextCursor"]
    refused(await get(f"sort=-createdAt&cursor={other}"), 400, "VALIDATION_ERROR", "cursor")


async def test_it_is_of_a_time_and_filtered_by_age_and_state(get, client, merchant, three):
    middle = (await found(get))["outbound"][1]["createdAt"]
    assert ids(await found(get, f"from={middle}")) == three[:0:-1]
    assert ids(await found(get, f"to={middle}")) == three[:1]
    assert ids(await found(get, "olderThanMinutes=2")) == three[1::-1]
    await client.post(f"{WALLET}/payouts/{three[1]}/cancel", headers=merchant.key)
    assert ids(await found(get, "state=cancelling")) == [three[1]]
    assert ids(await found(get, "state=waiting")) == [three[2], three[0]]
    assert ids(await found(get, f"merchantId={merchant.merchant_id}&kind=payout&chain=memory")) == three[::-1]
    assert ids(await found(get, "merchantId=mer_none")) == []
    assert ids(await found(get, "mode=sandbox")) == []


async def test_it_is_saved_as_a_file(get, three):
    answer = await get("format=csv&sort=createdAt")
    assert answer.headers["content-disposition"].startswith('attachment; filename="outbound-')
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [one["payoutId"] for one in lines] == three
    assert {one["waitsFor.code"] for one in lines} == {"not_looked_at"}


async def test_what_may_have_been_sent_is_ended_by_a_transaction_that_an_owner_names(client, gateway, get, three):
    admin = {"X-Admin-Key": ADMIN_KEY}
    path = f"{QUEUE}/{(await found(get))['outbound'][0]['intentId']}"

    async def settle(tx_hash="0xab"):
        return await client.post(f"{path}/settle", json={"txHash": tx_hash}, headers=admin)

    refused(await settle(), 409, "NOTHING_TO_SETTLE")
    await client.post(f"{path}/cancel", headers=admin)
    refused(await settle(), 409, "NOTHING_TO_SETTLE")
    assert (await client.get(path, headers=admin)).json()["outbound"]["settlement"] is None
    async with gateway.db.transaction() as conn:
        signed = "UPDATE outbound_intents SET reason = 'signed_before', signed_sequence = 17 WHERE cancel_asked_at"
        await conn.exec_driver_sql(f"{signed} IS NOT NULL")
    for bad in ("", "x" * 129, "a\0b", None, 7):
        refused(await settle(bad), 400, "VALIDATION_ERROR", "txHash")
    told = (await settle()).json()["outbound"]["settlement"]
    asked_at = told.pop("askedAt")
    assert asked_at is not None
    assert told == {"nonce": 17, "signedTxHash": None, "txHash": "0xab", "refusal": None, "refusalCode": None}
    assert (await settle()).json()["outbound"]["settlement"]["askedAt"] == asked_at
    assert (await settle("0xcd")).json()["outbound"]["settlement"]["txHash"] == "0xcd"
    refused(
        await client.post(f"{QUEUE}/int_none/settle", json={"txHash": "0xab"}, headers=admin), 404, "INTENT_NOT_FOUND"
    )
    async with gateway.db.autocommit() as conn:
        entries = await conn.exec_driver_sql(
            "SELECT details ->> 'tx_hash' FROM audit_entries WHERE action = 'outbound.settle_asked' ORDER BY id"
        )
        assert list(entries.scalars()) == ["0xab", "0xcd"]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'failed', finished_at = now()")
    assert (await settle("0xcd")).status_code == 200, "it has ended by it"
    refused(await settle("0xef"), 409, "ALREADY_ENDED")
