"""TRON without any endpoint: always listed, refused where money is real, and whole in the sandbox."""

from __future__ import annotations

import re

import pytest

from cambist.registry import Registry
from cambist.services.addresses.account_keys import top_up_stock
from cambist.signer.keystore import new_keystore
from cambist.signer.local import KeystoreXpubs
from tests.support.web import Merchant, memory_gateway, refused, web_client, web_settings

USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
BODY = {"chain": "tron", "token": "USDT", "pricingMode": "direct_crypto", "amount": "25"}
PAYOUT = {"chain": "tron", "token": "USDT", "toAddress": "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", "amount": "10"}
EVM = {"evm": {"chains": {"ethereum": {"simulated": True}}}}
SWAP = {"srcToken": "USDT", "srcAmount": "1"}
CONFIRMATIONS = 19


def open_without_endpoints(database_url, redis_url, clock, ids, *, stock):
    return memory_gateway(web_settings(database_url, redis_url), clock, ids, stock=stock, registry=Registry(EVM))


@pytest.fixture
def opening():
    return open_without_endpoints


@pytest.fixture
async def sandbox(merchant):
    """Give the merchant a sandbox project, whose key is the one from now on."""
    await merchant.add_project(mode="sandbox")
    return merchant


@pytest.fixture
def call(client, sandbox):
    async def call(path, **body):
        response = await client.post(f"/api/sandbox/{path}", json=body, headers=sandbox.key)
        assert response.status_code == 200, response.text
        return response.json()

    return call


async def pay(client, key, **fields):
    return await client.post("/api/payment", json={**BODY, **fields}, headers=key)


async def test_it_is_listed_with_its_coin_and_tokens(client):
    chains = {chain["chain"]: chain for chain in (await client.get("/api/public/chains")).json()["chains"]}
    assert chains["tron"] == {
        "chain": "tron",
        "name": "TRON",
        "nativeSymbol": "TRX",
        "chainIdNum": None,
        "isEvm": False,
        "defaultConfirmations": CONFIRMATIONS,
        "hasTags": False,
    }
    tokens = (await client.get("/api/public/tokens?chain=tron")).json()["tokens"]
    assert [(token["symbol"], token["isNative"]) for token in tokens][:2] == [("TRX", True), ("USDT", False)]
    assert tokens[1]["contractAddress"] == USDT


async def test_a_live_payment_on_it_is_refused_and_so_is_all_that_would_send(client, merchant):
    refused(await pay(client, merchant.key), 503, "CHAIN_UNAVAILABLE")
    refused(await client.post("/api/payment/quote", json=BODY, headers=merchant.key), 503, "CHAIN_UNAVAILABLE")
    wallet = "/api/merchant/wallet"
    refused(await client.post(f"{wallet}/payout", json=PAYOUT, headers=merchant.key), 503, "CHAIN_UNAVAILABLE")
    batch = {"chain": "tron", "token": "USDT", "destinations": [{"toAddress": PAYOUT["toAddress"], "amount": "1"}]}
    refused(await client.post(f"{wallet}/payout/batch", json=batch, headers=merchant.key), 503, "CHAIN_UNAVAILABLE")


async def test_every_list_of_chains_and_coins_has_it(client, merchant):
    live = await client.get("/api/merchant/wallet/addresses", headers=merchant.key)
    assert live.json()["addresses"] == [], "nobody would see what is sent there"
    await merchant.add_project(mode="sandbox")
    addresses = (await client.get("/api/merchant/wallet/addresses", headers=merchant.key)).json()["addresses"]
    of = {entry["family"]: entry for entry in addresses}
    assert (of["tron"]["chains"], of["evm"]["chains"]) == (["tron"], ["ethereum"])
    assert re.fullmatch(r"T[1-9A-HJ-NP-Za-km-z]{33}", of["tron"]["address"])
    coins = (await client.get("/api/merchant/wallet/coins", headers=merchant.key)).json()["coins"]
    assert {(coin["chain"], coin["token"]) for coin in coins} >= {("tron", "TRX"), ("tron", "USDT")}
    balance = await client.get("/api/merchant/wallet/balance?chain=tron&token=USDT", headers=merchant.key)
    assert balance.json()["balance"]["available"] == "0"


@pytest.mark.parametrize(
    "fields",
    [
        {"srcChain": "tron", "chain": "ethereum", "token": "USDC", "toAddress": "0x" + "12" * 20},
        {"srcChain": "ethereum", "chain": "tron", "token": "USDT"},
        {"srcChain": "tron", "srcToken": "TRX", "chain": "tron", "token": "USDT"},
    ],
)
async def test_nothing_is_swapped_from_or_to_it(client, merchant, sandbox, fields):
    body = {**PAYOUT, **SWAP, **fields}
    body.pop("amount")
    for key in (merchant.key, sandbox.key):
        answer = await client.post("/api/merchant/wallet/payout", json=body, headers=key)
        refused(answer, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")


async def test_nothing_is_converted_from_or_to_it(client, merchant):
    for source, other in (("tron/USDT", "ethereum/USDC"), ("ethereum/USDC", "tron/USDT")):
        chain, token = other.split("/")
        answer = await client.patch(
            f"/api/merchant/wallet/coins/{source}/settings",
            json={"autoConvertDestChain": chain, "autoConvertDestToken": token},
            headers=merchant.key,
        )
        refused(answer, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")


async def test_a_disabled_coin_is_refused_before_the_swap(client, merchant):
    await client.put(
        "/api/merchant/wallet/coins", json={"coins": [{"chain": "ethereum", "token": "USDC"}]}, headers=merchant.key
    )
    body = {**SWAP, "srcChain": "tron", "chain": "ethereum", "token": "USDC", "toAddress": "0x" + "12" * 20}
    refused(await client.post("/api/merchant/wallet/payout", json=body, headers=merchant.key), 400, "TOKEN_NOT_ENABLED")


async def test_a_sandbox_payment_goes_all_its_way(client, sandbox, call, gateway):
    payment = (await pay(client, sandbox.key)).json()["payment"]
    family = gateway.registry.families["tron"]
    assert family.normalize_address(payment["depositAddress"]) == payment["depositAddress"]
    paid = await call("deposit", paymentId=payment["paymentId"])
    assert paid["payment"]["status"] == "detected"
    assert re.fullmatch("[0-9a-f]{64}", paid["txHash"])
    assert re.fullmatch("[0-9a-f]{64}", paid["blockHash"])

    async def status():
        return (await client.get(f"/api/payment/{payment['paymentId']}", headers=sandbox.key)).json()["payment"][
            "status"
        ]

    await call("mine", chain="tron", blocks=CONFIRMATIONS - 1)
    assert await status() == "confirming"
    await call("reorg", chain="tron", depth=CONFIRMATIONS, transactions="return")
    assert await status() == "pending"
    await call("mine", chain="tron", blocks=CONFIRMATIONS + 1)
    assert await status() == "paid"
    await call("advance-time", chain="tron", seconds=60)


async def test_a_sandbox_payment_can_be_sent_by_its_address_and_never_on_another_network(client, sandbox):
    payment = (await pay(client, sandbox.key, token="TRX")).json()["payment"]
    path = "/api/sandbox/deposit"
    wrong = await client.post(
        path, json={"address": payment["depositAddress"], "chain": "ethereum", "token": "ETH", "amount": "1"},
        headers=sandbox.key,
    )  # fmt: skip
    refused(wrong, 400, "VALIDATION_ERROR", "chain")
    right = await client.post(path, json={"address": payment["depositAddress"]}, headers=sandbox.key)
    assert right.json()["payment"]["receivedAmount"] == "25"


async def test_a_sandbox_pays_out_and_a_payout_can_be_made_to_fail(client, sandbox, call):
    payment = (await pay(client, sandbox.key)).json()["payment"]
    await call("deposit", paymentId=payment["paymentId"], confirmations=CONFIRMATIONS)
    wallet = "/api/merchant/wallet"
    asked = [await client.post(f"{wallet}/payout", json=PAYOUT, headers=sandbox.key) for _ in range(2)]
    ids = [answer.json()["payout"]["payoutId"] for answer in asked]
    await call("fail-payout", payoutId=ids[1])
    await call("mine", chain="tron", blocks=CONFIRMATIONS + 1)
    states = [
        (await client.get(f"{wallet}/payouts/{one}", headers=sandbox.key)).json()["payout"]["status"] for one in ids
    ]
    assert states == ["completed", "failed"]
    balance = (await client.get(f"{wallet}/balance?chain=tron&token=USDT", headers=sandbox.key)).json()["balance"]
    assert (balance["available"], balance["pending"]) == ("15", "0")
    entries = (await client.get(f"{wallet}/transactions?chain=tron", headers=sandbox.key)).json()["transactions"]
    assert len(entries) >= 3


@pytest.mark.parametrize(
    "to_address, code",
    [
        (PAYOUT["toAddress"][:-1] + "J", "INVALID_ADDRESS"),
        (PAYOUT["toAddress"].lower(), "INVALID_ADDRESS"),
        ("0x" + "12" * 20, "INVALID_ADDRESS"),
        ("41" + "12" * 20, "INVALID_ADDRESS"),
        ("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", "INVALID_ADDRESS"),
        (USDT, "TARGET_IS_CONTRACT"),
    ],
)
async def test_money_goes_to_no_address_that_is_none(client, sandbox, to_address, code):
    body = {**PAYOUT, "toAddress": to_address}
    refused(await client.post("/api/merchant/wallet/payout", json=body, headers=sandbox.key), 400, code)


async def test_a_merchant_from_before_gets_keys_for_it_when_it_comes(database_url, redis_url, clock, ids):
    """The stock of an earlier version knew coin type 60 alone."""
    keystore = new_keystore(ids.random_bytes)
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids, stock=0, registry=Registry(EVM)) as gateway:

        async def top_up(*coin_types):
            async with gateway.db.transaction() as conn:
                signer = KeystoreXpubs(keystore)
                await top_up_stock(conn, signer, gateway.secrets, coin_types=coin_types, stock=3)

        await top_up(60)
        async with web_client(gateway) as client:
            merchant = await Merchant(client).open(mode="sandbox")
            refused(await pay(client, merchant.key), 503, "KEYS_UNAVAILABLE")
            await top_up(60, 195)
            payment = (await pay(client, merchant.key)).json()["payment"]
            family = gateway.registry.families["tron"]
            xpub = await KeystoreXpubs(keystore).account_xpub("sandbox", 195, 1)
            assert payment["depositAddress"] == family.derive_address(xpub, 0, 0)
            newcomer = await Merchant(client).open("eve@shop.example", mode="sandbox")
            assert (await pay(client, newcomer.key)).status_code == 201
