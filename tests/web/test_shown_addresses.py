"""Who can write to the database cannot have customers pay to an address of their own."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.support.payout_env import person
from tests.support.web import Merchant, refused

ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1", "idempotencyKey": "order"}


@pytest.fixture
async def made(client, merchant):
    answer = await client.post("/api/payment", json=ORDER, headers=merchant.key)
    assert answer.status_code == 201, answer.text
    return answer.json()["payment"]


async def doors(client, merchant, payment):
    """Return what each door that shows an address answers."""
    key, bearer, project = merchant.key, merchant.bearer, f"/api/dashboard/projects/{merchant.project_id}/payments"
    return [
        await client.post("/api/payment", json=ORDER, headers=key),
        await client.get("/api/payment", headers=key),
        await client.get(f"/api/payment/{payment['paymentId']}", headers=key),
        await client.get(project, headers=bearer),
        await client.get(f"{project}/{payment['paymentId']}", headers=bearer),
        await client.get(f"/api/payment/public/{payment['publicId']}"),
        await client.get(f"/pay/{payment['publicId']}"),
    ]


async def test_every_door_shows_the_address_that_was_derived(client, merchant, made):
    for answer in await doors(client, merchant, made):
        assert answer.status_code == 200
        assert made["depositAddress"] in answer.text


CHANGES = {
    "an address of the thief": ("UPDATE payments SET address = $1", [person("thief")]),
    "no proof": ("UPDATE payments SET address_mac = ''", []),
    "a proof of nothing": ("UPDATE payments SET address_mac = $1", [b"\0" * 36]),
    "another contract": ("UPDATE payments SET contract = $1", [person("thief")]),
    "more decimals": ("UPDATE payments SET decimals = 0", []),
    "another mode": ("UPDATE payments SET mode = 'sandbox'", []),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_no_door_shows_a_payment_whose_row_was_changed(gateway, client, merchant, made, change):
    statement, arguments = CHANGES[change]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(statement, tuple(arguments))
    with capture_logs() as logs:
        *answers, page = await doors(client, merchant, made)
    for answer in answers:
        refused(answer, 503, "ADDRESS_NOT_VERIFIED")
    assert page.status_code == 404
    assert person("thief") not in page.text
    assert {log["payment_id"] for log in logs if log["event"].startswith("ADDRESS NOT VERIFIED")} == {made["paymentId"]}


async def test_the_proof_of_one_payment_is_none_for_another(gateway, client, merchant, made):
    """A merchant of the gateway who can write to its database would be paid, by a true address and its true proof."""
    eve = await Merchant(client).open("eve@shop.example")
    hers = (await client.post("/api/payment", json=ORDER, headers=eve.key)).json()["payment"]
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE payments p SET address = hers.address || '', address_mac = hers.address_mac FROM payments hers"
            " WHERE hers.payment_id = $1 AND p.payment_id = $2",
            (hers["paymentId"], made["paymentId"]),
        )
    refused(await client.get(f"/api/payment/public/{made['publicId']}"), 503, "ADDRESS_NOT_VERIFIED")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE payments SET public_id = 'gone' WHERE payment_id = $1", (made["paymentId"],))
        await conn.exec_driver_sql(
            "UPDATE payments SET public_id = $1 WHERE payment_id = $2", (made["publicId"], hers["paymentId"])
        )
    refused(await client.get(f"/api/payment/public/{made['publicId']}"), 503, "ADDRESS_NOT_VERIFIED")
    assert (await client.get(f"/pay/{made['publicId']}")).status_code == 404
