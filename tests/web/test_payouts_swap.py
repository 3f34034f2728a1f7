"""Payouts with a swap over HTTP: the shapes of answers, and a status for everything that can be wrong."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.exchange_offers import Meanwhile, fund, open_with_exchanges, provided, stored
from tests.support.payout_env import person
from tests.support.web import ADMIN_KEY, refused

WALLET = "/api/merchant/wallet"
BODY = {
    "chain": "memory",
    "token": "DAIX",
    "toAddress": person(),
    "srcChain": "memory",
    "srcToken": "MEM",
    "srcAmount": "1.50",
}
ACROSS = {"chain": "other", "token": "USDX", "srcToken": "USDX", "srcAmount": "5"}


@pytest.fixture
def opening():
    return open_with_exchanges


async def decide(client, **fields):
    admin = {"X-Admin-Key": ADMIN_KEY}
    version = (await client.get("/api/admin/settings", headers=admin)).json()["version"]
    answer = await client.put("/api/admin/settings", json={**fields, "version": version}, headers=admin)
    assert answer.status_code == 200, answer.text


@pytest.fixture
async def rich(client, gateway, merchant):
    await fund(gateway, merchant, "MEM", 10 * 10**18)
    await fund(gateway, merchant, "USDX", 100 * 10**6)
    await decide(client, payoutSwapEnabled=True)
    return merchant


@pytest.fixture
def pay(client, merchant):
    async def pay(path=f"{WALLET}/payout", headers=None, **fields):
        body = {name: value for name, value in {**BODY, **fields}.items() if value is not None}
        return await client.post(path, json=body, headers={**merchant.key, **(headers or {})})

    return pay


async def balance(client, merchant, token):
    answer = await client.get(f"{WALLET}/balance?chain=memory&token={token}", headers=merchant.key)
    return {name: answer.json()["balance"][name] for name in ("available", "pending")}


async def test_a_payout_with_a_swap_is_answered_with_what_was_quoted_and_what_is_promised(client, rich, pay):
    answer = await pay(slippage=0.5)
    assert answer.status_code == 201, answer.text
    payout = answer.json()["payout"]
    assert payout == {
        "payoutId": payout["payoutId"],
        "kind": "payout",
        "status": "requested",
        "mode": "live",
        "chain": "memory",
        "token": "DAIX",
        "contractAddress": payout["contractAddress"],
        "decimals": 18,
        "amount": "2.985",
        "toAddress": person(),
        "txHash": None,
        "fee": None,
        "error": None,
        "errorCode": None,
        "waitsFor": None,
        "waitsForText": None,
        "batchId": None,
        "swap": {
            "txnId": payout["swap"]["txnId"],
            "kind": "swap",
            "srcChain": "memory",
            "srcToken": "MEM",
            "srcAmount": "1.5",
            "expectedAmount": "3",
            "minAmount": "2.985",
            "txHash": None,
        },
        "createdAt": "2026-01-01T12:00:00.000Z",
        "updatedAt": "2026-01-01T12:00:00.000Z",
        "completedAt": None,
    }
    assert await balance(client, rich, "MEM") == {"available": "8.5", "pending": "1.5"}
    assert await balance(client, rich, "DAIX") == {"available": "0", "pending": "0"}
    read = await client.get(f"{WALLET}/payouts/{payout['payoutId']}", headers=rich.key)
    assert read.json() == {"success": True, "payout": payout}
    listed = await client.get(f"{WALLET}/payouts?chain=memory&token=DAIX", headers=rich.key)
    assert listed.json()["payouts"] == [payout]


async def test_a_recipient_on_another_chain_is_paid_by_a_bridge(client, rich, pay):
    payout = (await pay(**ACROSS)).json()["payout"]
    assert (payout["chain"], payout["swap"]["kind"], payout["swap"]["srcChain"]) == ("other", "bridge", "memory")
    assert await balance(client, rich, "USDX") == {"available": "95", "pending": "5"}


async def test_a_repetition_returns_the_first_payout_with_200(client, rich, pay):
    first = (await pay(headers={"Idempotency-Key": "k"})).json()["payout"]
    again = await pay(idempotencyKey="k", srcAmount="1.5")
    assert (again.status_code, again.json()) == (200, {"success": True, "payout": first, "idempotent": True})
    refused(await pay(idempotencyKey="k", srcAmount="2"), 409, "IDEMPOTENCY_KEY_REUSED")
    refused(await pay(headers={"Idempotency-Key": "k"}, idempotencyKey="l"), 400, "IDEMPOTENCY_KEY_MISMATCH")
    assert await balance(client, rich, "MEM") == {"available": "8.5", "pending": "1.5"}


@pytest.mark.parametrize(
    "fields, status, code, field",
    [
        ({"amount": "1"}, 400, "INVALID_PAYOUT_MODE", "amount"),
        ({"srcToken": None}, 400, "INVALID_PAYOUT_MODE", "srcToken"),
        ({"srcAmount": None}, 400, "INVALID_PAYOUT_MODE", "srcAmount"),
        ({"srcToken": "NOTHING"}, 400, "TOKEN_NOT_ENABLED", "srcToken"),
        ({"chain": "plain"}, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN", None),
        ({"srcChain": "plain"}, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN", None),
        ({"token": "MEM"}, 400, "VALIDATION_ERROR", "srcToken"),
        ({"toAddress": "nobody"}, 400, "INVALID_ADDRESS", "toAddress"),
        ({"srcAmount": "1e1"}, 400, "INVALID_AMOUNT", "srcAmount"),
        ({"slippage": 51}, 400, "VALIDATION_ERROR", "slippage"),
        ({"srcAmount": "10.1"}, 403, "INSUFFICIENT_BALANCE", None),
        # The fair provider knows one rate, which is a bad one for these two.
        ({"srcToken": "USDX"}, 400, "PRICE_BELOW_GUARD", None),
    ],
)
async def test_each_mistake_has_its_status_code_and_field(client, rich, pay, fields, status, code, field):
    refused(await pay(**fields), status, code, *([] if field is None else [field]))
    assert await balance(client, rich, "MEM") == {"available": "10", "pending": "0"}


async def test_it_is_among_the_swaps_and_bridges_and_names_its_payout(client, rich, pay):
    payout = (await pay()).json()["payout"]
    listed = await client.get("/api/merchant/swap-bridge/history?mode=payout", headers=rich.key)
    (exchange,) = listed.json()["exchanges"]
    assert (exchange["txnId"], exchange["payoutId"]) == (payout["swap"]["txnId"], payout["payoutId"])
    assert (exchange["mode"], exchange["recipient"], exchange["sourceAmount"]) == ("payout", person(), "1.5")


async def test_what_the_operator_changes_while_quotes_are_asked_for_is_a_503(client, rich, pay):
    async def change():
        await decide(client, exchanges={"bridgeFeeBps": 10, "swapFeeBps": 10, "providers": {"fair": False}})

    provided(client, Meanwhile(change))
    refused(await pay(), 503, "EXCHANGE_UNAVAILABLE")
    assert await balance(client, rich, "MEM") == {"available": "10", "pending": "0"}


async def test_switches_have_their_codes(client, rich, pay):
    await decide(client, payoutEnabled=False)
    refused(await pay(), 503, "PAYOUT_DISABLED")
    await decide(client, payoutSwapEnabled=False)
    refused(await pay(), 400, "SWAP_IN_PAYOUT_DISABLED")
    await decide(client, payoutEnabled=True, payoutSwapEnabled=True, exchanges={"swapEnabled": False})
    refused(await pay(), 503, "SWAP_DISABLED")
    await decide(client, exchanges={"swapEnabled": True, "providers": {"fair": False}})
    refused(await pay(), 400, "PAIR_NOT_SUPPORTED")


async def test_a_provider_that_is_down_is_a_503_and_hurts_no_plain_payout(client, rich, pay):
    web = client._transport.app.state.web
    web.gateway.swaps[0].service.down = True
    refused(await pay(), 503, "EXCHANGE_UNAVAILABLE")
    plain = {"token": "MEM", "amount": "1", "srcChain": None, "srcToken": None, "srcAmount": None}
    answer = await pay(**plain)
    assert (answer.status_code, answer.json()["payout"]["swap"]) == (201, None)


async def test_batches_and_withdrawals_never_swap(client, rich, pay):
    swap = {"srcChain": "memory", "srcToken": "MEM", "srcAmount": "1"}
    row = {"toAddress": person(), "amount": "1"}
    for body in ({"destinations": [{**row, **swap}]}, {"destinations": [row], **swap}):
        answer = await client.post(
            f"{WALLET}/payout/batch", json={"chain": "memory", "token": "DAIX", **body}, headers=rich.key
        )
        refused(answer, 400, "VALIDATION_ERROR")


async def test_the_audit_log_tells_what_was_given_for_it(client, rich, pay, gateway):
    await pay(headers={"Idempotency-Key": "k"})
    await pay(headers={"Idempotency-Key": "k"})
    noted = await stored(gateway, "SELECT details FROM audit_entries WHERE action = 'payout.asked'")
    assert noted == [{"details": BODY}]


async def test_a_sandbox_plays_a_payout_with_a_swap_to_its_end(client, rich, merchant, pay):
    await merchant.add_project(mode="sandbox")

    async def post(path, body):
        answer = await client.post(path, json=body, headers=merchant.key)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    payment = (await post("/api/payment", asked))["payment"]
    await post("/api/sandbox/deposit", {"paymentId": payment["paymentId"], "confirmations": 3})
    made = await pay(srcToken="USDX", srcAmount="4")
    assert made.status_code == 201, made.text
    payout = made.json()["payout"]
    await post("/api/sandbox/mine", {"chain": "memory", "blocks": 8})
    read = await client.get(f"{WALLET}/payouts/{payout['payoutId']}", headers=merchant.key)
    told = read.json()["payout"]
    assert (told["status"], told["mode"]) == ("completed", "sandbox"), told
    assert Decimal(told["amount"]) >= Decimal(payout["swap"]["minAmount"])
    assert await balance(client, merchant, "USDX") == {"available": "6", "pending": "0"}


@pytest.mark.parametrize("fields", [{"token": "DAIX"}, {"chain": "other", "token": "USDX"}], ids=["swap", "bridge"])
async def test_a_sandboxs_payout_with_a_swap_fails_on_request_and_gives_its_money_back(
    client, gateway, merchant, pay, fields
):
    await decide(client, payoutSwapEnabled=True)
    await merchant.add_project(mode="sandbox")

    async def post(path, **body):
        return await client.post(f"/api/{path}", json=body, headers=merchant.key)

    asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
    payment = (await post("payment", **asked)).json()["payment"]["paymentId"]
    assert (await post("sandbox/deposit", paymentId=payment, confirmations=3)).is_success
    made = [(await pay(srcToken="USDX", srcAmount="4", **fields)).json()["payout"]["payoutId"] for _ in range(2)]
    failing = await post("sandbox/fail-payout", payoutId=made[0])
    assert (failing.status_code, failing.json()["payout"]["payoutId"]) == (200, made[0])
    assert failing.json()["payout"]["swap"] is not None
    await post("sandbox/mine", chain="memory", blocks=1)
    refused(await post("sandbox/fail-payout", payoutId=made[1]), 409, "PAYOUT_ALREADY_MINED")
    for chain in ("memory", fields.get("chain", "memory")):
        assert (await post("sandbox/mine", chain=chain, blocks=8)).is_success
    found = [(await client.get(f"{WALLET}/payouts/{one}", headers=merchant.key)).json()["payout"] for one in made]
    assert [one["status"] for one in found] == ["failed", "completed"]
    assert await balance(client, merchant, "USDX") == {"available": "6", "pending": "0"}
