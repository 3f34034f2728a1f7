"""What merchants and calculators are told of usage credits."""

from __future__ import annotations

import pytest

from cambist.services.accounting import usage
from cambist.services.accounting.usage import Metered
from cambist.services.platform import PlatformSettings
from cambist.services.webhooks.outbox import enqueue
from cambist.services.webhooks.secrets import SigningSecrets
from tests.support.web import ADMIN_KEY, Merchant, refused
from tests.support.webhooks import deliverer, paid, receiver

USAGE = "/api/merchant/usage"
WALLET = "/api/merchant/wallet"
CALCULATOR = "/api/public/cpt-calculator-config"
SETTINGS = "/api/admin/settings"
ADMIN = {"X-Admin-Key": ADMIN_KEY}
DEFAULTS = PlatformSettings().cpt


async def meter(gateway, merchant, *references, mode="live"):
    async with gateway.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = $1", (merchant.merchant_id,))
        row = found.scalar_one()
        done = [Metered(row, mode, "payout", "memory", reference) for reference in references]
        await usage.meter(conn, done, PlatformSettings(), gateway.clock.now())


async def test_the_wallet_tells_what_is_left_of_the_allowance_in_the_mode_of_the_key(merchant, client, gateway):
    await meter(gateway, merchant, "po_1")
    live = (await client.get(WALLET, headers=merchant.key)).json()["systemCredit"]
    weight = DEFAULTS.weights.of("payout", "memory")
    assert live == {
        "balance": DEFAULTS.initial_allowance - weight,
        "floor": DEFAULTS.floor,
        "currency": "CPT",
        "mode": "live",
    }
    await merchant.add_project(mode="sandbox")
    sandbox = (await client.get(WALLET, headers=merchant.key)).json()["systemCredit"]
    assert (sandbox["balance"], sandbox["mode"]) == (DEFAULTS.initial_allowance, "sandbox")


async def test_usage_is_listed_by_page_and_operation_to_key_and_dashboard_alike(merchant, client, gateway):
    await meter(gateway, merchant, "po_1", "po_2", "po_3")
    first = (await client.get(f"{USAGE}?limit=2", headers=merchant.key)).json()
    assert [(one["operation"], one["reference"]) for one in first["usage"]] == [("payout", "po_3"), ("payout", "po_2")]
    assert first["usage"][0] == {
        "operation": "payout",
        "chain": "memory",
        "reference": "po_3",
        "projectId": None,
        "amount": DEFAULTS.weights.of("payout", "memory"),
        "createdAt": "2026-01-01T12:00:00.000Z",
    }
    assert (first["page"], first["limit"], first["total"]) == (1, 2, 3)
    mirrored = f"/api/dashboard/projects/{merchant.project_id}/usage?limit=2"
    again = (await client.get(mirrored, headers=merchant.bearer)).json()
    assert again | {"nextCursor": first["nextCursor"]} == first, "the same place has another cursor each time"
    none = (await client.get(f"{USAGE}?operation=payment", headers=merchant.key)).json()
    assert (none["usage"], none["total"]) == ([], 0)
    refused(await client.get(f"{USAGE}?operation=lunch", headers=merchant.key), 400, "VALIDATION_ERROR", "operation")
    refused(await client.get(USAGE), 401, "API_KEY_MISSING")


async def test_usage_of_others_and_of_the_other_mode_is_not_seen(merchant, client, gateway):
    await meter(gateway, merchant, "po_1", mode="sandbox")
    stranger = await Merchant(client).open("eve@shop.example")
    await meter(gateway, stranger, "po_2")
    assert (await client.get(USAGE, headers=merchant.key)).json()["usage"] == []


async def test_making_a_payment_shows_in_the_usage(merchant, client):
    await merchant.add_project(mode="sandbox")
    body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    made = (await client.post("/api/payment", json=body, headers=merchant.key)).json()
    [entry] = (await client.get(USAGE, headers=merchant.key)).json()["usage"]
    assert (entry["operation"], entry["reference"]) == ("payment", made["payment"]["paymentId"])


async def test_each_record_names_the_project_that_it_was_for(merchant, client, gateway):
    """Of both projects of a mode, to whoever asks in one of them; of what was given back, too."""
    body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    first, key = merchant.project_id, merchant.key
    await client.post("/api/payment", json=body, headers=key)
    await merchant.add_project()
    second = merchant.project_id
    made = (await client.post("/api/payment", json=body, headers=merchant.key)).json()["payment"]["paymentId"]
    account = await client.post("/api/account", json={"externalId": "ada", "chains": ["memory"]}, headers=merchant.key)
    assert account.status_code == 201, account.text
    async with gateway.db.transaction() as conn:
        await usage.give_back(conn, "payment", [made], gateway.clock.now())
    await meter(gateway, merchant, "collection:col_1")
    listed = (await client.get(USAGE, headers=key)).json()["usage"]
    assert second != first
    assert [(one["operation"], one["projectId"]) for one in listed] == [
        ("payout", None), ("return", second), ("payment", second), ("payment", second), ("payment", first),
    ]  # fmt: skip


async def test_what_money_was_sent_for_names_its_project_whatever_it_is(two_merchants):
    """Payouts, those of a batch, refunds and withdrawals, of a merchant who has another project of the mode."""
    listed = (await two_merchants.get(f"{USAGE}?limit=100"))["usage"]
    sent = {one["reference"]: (one["operation"], one["projectId"]) for one in listed}
    mine = two_merchants.ada.project_id
    ids = two_merchants.ids
    for operation in ("payout", "refund", "withdrawal"):
        assert sent[ids[f"{operation}_id"]] == (operation, mine)
    (batch,) = (await two_merchants.get(f"{WALLET}/payouts?batchId={ids['batch_id']}"))["payouts"]
    assert sent[batch["payoutId"]] == ("payout", mine)


async def test_a_delivery_names_the_project_that_was_told(merchant, client, gateway, clock):
    first, key = merchant.project_id, merchant.key
    await merchant.add_project()
    async with receiver() as shop, deliverer(gateway.db, clock, secrets=SigningSecrets(gateway.secrets)) as worker:
        async with gateway.db.transaction() as conn:
            rows = await conn.exec_driver_sql("SELECT project_id, id FROM projects")
            pks = {row.project_id: row.id for row in rows}
            told = [paid((pks[project], project), shop.url) for project in (first, merchant.project_id)]
            await enqueue(conn, told, ids=gateway.ids, now=clock.now())
        assert await worker.deliver_due() == 2
    listed = (await client.get(USAGE, headers=key)).json()["usage"]
    assert {(one["operation"], one["projectId"]) for one in listed} == {
        ("webhook_delivery", first),
        ("webhook_delivery", merchant.project_id),
    }
    assert {one["reference"] for one in listed} == {
        received.headers["X-Webhook-Id"].replace("evt_", "dlv_") for received in shop.received
    }


async def test_the_calculator_gets_chains_weights_tiers_and_packs(client):
    answer = (await client.get(CALCULATOR)).json()
    assert set(answer) == {"success", "chains", "weights", "tiers", "packs", "plans"}
    assert answer["success"] is True
    assert {"chain": "memory", "name": "Memory (memory)", "nativeSymbol": "MEM"} in answer["chains"]
    assert set(answer["weights"]) == {"chains", "tracker", "apiMethod", "webhookDelivery"}
    listed = {chain["chain"] for chain in answer["chains"]}
    assert set(answer["weights"]["chains"]) == {"default", *listed}
    for weights in answer["weights"]["chains"].values():
        assert set(weights) == {"payment", "payout", "refund", "withdrawal", "collection", "swap", "bridge"}
        assert all(type(weight) is int for weight in weights.values())
    for tier in answer["tiers"]:
        assert set(tier) == {"name", "minCpt", "maxCpt", "pricePer10kUsd"}
        assert type(tier["pricePer10kUsd"]) is str
    assert answer["tiers"][-1]["maxCpt"] is None
    assert all(set(pack) == {"name", "cpt", "priceUsd"} for pack in answer["packs"])


async def test_the_calculator_follows_the_settings_within_a_minute(client, clock):
    before = (await client.get(CALCULATOR)).json()
    body = {"version": 0, "cpt": {"weights": {"chains": {"memory": {"payout": 9}}}, "packs": []}}
    assert (await client.put(SETTINGS, json=body, headers=ADMIN)).status_code == 200
    clock.advance(59)
    assert (await client.get(CALCULATOR)).json() == before
    clock.advance(1)
    after = (await client.get(CALCULATOR)).json()
    assert after["weights"]["chains"]["memory"]["payout"] == 9
    assert after["weights"]["chains"]["default"] == before["weights"]["chains"]["default"]
    assert after["packs"] == []


@pytest.mark.parametrize("path", [USAGE, f"{USAGE}?page=0", f"{USAGE}?limit=101"])
async def test_pages_have_limits(merchant, client, path):
    answer = await client.get(path, headers=merchant.key)
    assert answer.status_code == (200 if path == USAGE else 400)
