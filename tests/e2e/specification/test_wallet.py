"""4.3 and 3.2: the wallet and its payouts; what is paid out with a swap."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.gateway import ADMIN_KEY

from .replay import Replay

PAYOUT, BATCH = "POST /api/merchant/wallet/payout", "POST /api/merchant/wallet/payout/batch"
OPERATOR = {"X-Admin-Key": ADMIN_KEY}


@pytest.fixture
async def body(network) -> dict[str, object]:
    return {"chain": network.chain, "token": "USDX", "toAddress": network.stranger(), "amount": "3.5"}


@pytest.fixture
def swapped(body, market) -> dict[str, object]:
    """Say a payout with a swap."""
    del body["amount"]
    return {**body, "token": "USDT", "srcChain": body["chain"], "srcToken": "USDX", "srcAmount": "4", "slippage": 1.5}


async def set_platform(shop: Replay, **settings: object) -> None:
    """Change a setting of the platform, which holds in every process within two seconds."""
    await shop.merchant.put("/api/admin/settings", settings, headers=OPERATOR)


async def answered(shop: Replay, body: object, *codes: str) -> dict:
    """Ask for a payout until it is refused with none of these codes: by then a setting holds in every process."""
    merchant = shop.merchant
    async with asyncio.timeout(60):
        while True:
            url = f"{merchant.url}/api/merchant/wallet/payout"
            async with merchant.session.post(url, json=body, headers=merchant.headers) as answer:
                told: dict = await answer.json()
                if told.get("code") not in codes:
                    return told


async def test_what_the_wallet_holds(shop: Replay, sandbox: Replay, network):
    told = await shop.ask("GET /api/merchant/wallet")
    assert ("USDX", network.chain) in {(one["token"], one["chain"]) for one in told["balances"]}
    query = {"chain": network.chain, "token": "USDX"}
    assert (await shop.ask("GET /api/merchant/wallet/balance", query=query))["balance"]["token"] == "USDX"
    for replay, families in ((shop, {"evm"}), (sandbox, {"evm", "tron"})):  # live, of what has an endpoint
        found = (await replay.ask("GET /api/merchant/wallet/addresses"))["addresses"]
        assert {one["family"] for one in found} == families
    query |= {"type": "deposit", "limit": "1"}
    (entry,) = (await shop.ask("GET /api/merchant/wallet/transactions", query=query))["transactions"]
    assert (entry["chain"], entry["token"], entry["type"]) == (network.chain, "USDX", "deposit")
    for missing in ("chain", "token"):
        one = {name: value for name, value in query.items() if name in {"chain", "token"} - {missing}}
        path = "/api/merchant/wallet/balance?" + "&".join(f"{name}={value}" for name, value in one.items())
        await shop.merchant.get(path, status=400)


async def test_a_payout_is_requested_at_once_and_completed_later(shop: Replay, body, network, onlooker):
    before = float((await shop.merchant.balance(network.usdx))["available"])
    made = (await shop.ask(PAYOUT, body | {"idempotencyKey": "payout-1"}))["payout"]
    assert (made["status"], made["amount"], made["toAddress"]) == ("requested", "3.5", body["toAddress"])
    again = await shop.ask(PAYOUT, body, status=200, headers={"Idempotency-Key": "payout-1"})
    assert (again["idempotent"], again["payout"]["payoutId"]) == (True, made["payoutId"])
    told = await shop.receiver.wait(made["payoutId"], "payout.completed")
    assert told["txHash"]
    assert await onlooker.holds(str(body["toAddress"]), network.usdx, "3.5")
    assert before - float((await shop.merchant.balance(network.usdx))["available"]) == pytest.approx(3.5)
    assert made["payoutId"] in {
        one["payoutId"] for one in (await shop.ask("GET /api/merchant/wallet/payouts"))["payouts"]
    }


async def test_a_batch_is_paid_row_by_row_or_not_at_all(shop: Replay, network):
    rows = [
        {"toAddress": network.stranger(), "amount": "1.25", "idempotencyKey": "row-1"},
        {"toAddress": network.stranger(), "amount": "2"},
    ]
    body = {"chain": network.chain, "token": "USDX", "destinations": rows}
    made = await shop.ask(BATCH, body)
    batch = made["batch"]
    assert (batch["totalAmount"], batch["acceptedRows"], batch["rejectedRows"]) == ("3.25", 2, 0)
    for payout in made["payouts"]:
        await shop.receiver.wait(payout["payoutId"], "payout.completed")
    too_much = [*rows[1:], {"toAddress": network.stranger(), "amount": "1000000"}]
    await shop.refused(BATCH, body | {"destinations": too_much}, 403, "INSUFFICIENT_BALANCE")
    for wrong in ([], rows[1:] * 101):
        told = await shop.ask(BATCH, body | {"destinations": wrong}, status=400)
        assert told["code"] == "VALIDATION_ERROR"


async def test_what_is_not_there_is_forbidden(shop: Replay, body):
    await shop.refused(PAYOUT, body | {"amount": "1000000"}, 403, "INSUFFICIENT_BALANCE")


@pytest.mark.parametrize(
    "change, code",
    [
        ({"amount": "1"}, "INVALID_PAYOUT_MODE"),
        ({"srcChain": None}, "INVALID_PAYOUT_MODE"),
        ({"srcToken": None}, "INVALID_PAYOUT_MODE"),
        ({"srcAmount": None}, "INVALID_PAYOUT_MODE"),
        ({"srcToken": "NOTHING"}, "TOKEN_NOT_ENABLED"),
        ({"srcChain": "tron", "srcToken": "USDT"}, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
        ({"chain": "tron", "token": "USDT"}, "SWAP_NOT_SUPPORTED_FOR_CHAIN"),
        ({}, "SWAP_IN_PAYOUT_DISABLED"),
    ],
)
async def test_rules_of_payouts_with_a_swap(shop: Replay, swapped, change, code):
    body = {name: value for name, value in (swapped | change).items() if value is not None}
    await shop.refused(PAYOUT, body, 400, code)


async def test_a_coins_settings_and_what_they_refuse(shop: Replay, swapped, network):
    merchant, row = shop.merchant, "PATCH /api/merchant/wallet/coins/{chain}/{symbol}/settings"
    settings = {
        "autoConvertEnabled": False, "autoConvertDestChain": network.chain, "autoConvertDestToken": "USDT",
        "autopayoutPolicy": "off",
    }  # fmt: skip
    told = await shop.ask(row, settings, chain=network.chain, symbol="WETH")
    assert {name: told["coin"][name] for name in settings} == settings
    coins = (await merchant.get("/api/merchant/wallet/coins"))["coins"]
    kept = [{"chain": one["chain"], "token": one["token"]} for one in coins if one["token"] != "SKIM"]
    await merchant.put("/api/merchant/wallet/coins", {"coins": kept})
    await shop.refused(PAYOUT, swapped | {"token": "SKIM"}, 400, "TOKEN_NOT_ENABLED")


async def test_a_payout_with_a_swap_is_bounded_by_its_slippage(shop: Replay, swapped, market, onlooker):
    await set_platform(shop, payoutSwapEnabled=True)
    try:
        made = (await answered(shop, swapped, "SWAP_IN_PAYOUT_DISABLED"))["payout"]
    finally:
        await set_platform(shop, payoutSwapEnabled=False)
    assert (made["status"], made["toAddress"], made["swap"]["srcAmount"]) == ("requested", swapped["toAddress"], "4")
    done = await shop.merchant.completed(made)
    assert await onlooker.units(swapped["toAddress"], market.usdt) == market.usdt.units(done["amount"])
    assert float(done["amount"]) >= float(made["swap"]["minAmount"])


async def test_no_payout_is_taken_while_the_master_switch_is_off(shop: Replay, body):
    await set_platform(shop, payoutEnabled=False)
    try:
        body |= {"amount": "1000000"}  # which moves nothing until the switch is off
        await answered(shop, body, "INSUFFICIENT_BALANCE")
        await shop.refused(PAYOUT, body, 503, "PAYOUT_DISABLED")
    finally:
        await set_platform(shop, payoutEnabled=True)
