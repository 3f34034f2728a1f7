"""The API refuses what 1inch refuses, in its words, and what it answers is true on the chain."""

from __future__ import annotations

import pytest
from web3 import Web3

from cambist_oneinch_node import NATIVE, LocalOneInch

from .conftest import CHAIN_ID, COIN, client_of

ENDLESS = 2**256 - 1


def swap_of(chain, sells="USDT", buys="USDC", amount=1_000_000, **other):
    return {
        "src": chain.address(sells),
        "dst": chain.address(buys),
        "amount": str(amount),
        "sender": chain.wallet,
        "origin": chain.wallet,
        "slippage": "1",
    } | other


async def test_nobody_is_answered_without_the_key(client):
    for key in ("", "another"):
        status, _, _ = await client.ask("tokens", key=key)
        assert status == 401


@pytest.mark.parametrize(
    "path, version, number",
    [("tokens", "v5.2", CHAIN_ID), ("tokens", "v6.1", 1), ("nothing", "v6.1", CHAIN_ID)],
    ids=["version", "chain", "path"],
)
async def test_what_is_not_there_is_not_found(client, path, version, number):
    status, _, _ = await client.ask(path, version=version, chain=number)
    assert status == 404


async def test_more_requests_than_the_limit_are_told_when_to_come_back(chain):
    now = [0.0]
    async with (
        LocalOneInch(chain.url, requests_per_second=2, monotonic=lambda: now[0]) as oneinch,
        client_of(oneinch) as client,
    ):
        assert [(await client.ask("tokens"))[0] for _ in range(3)] == [200, 200, 429]
        _, _, headers = await client.ask("quote")
        assert headers["Retry-After"] == "1"
        now[0] += float(headers["Retry-After"])
        assert [(await client.ask("tokens"))[0] for _ in range(3)] == [200, 200, 429]
        assert (oneinch.limited, oneinch.calls["tokens"]) == (3, 6)


@pytest.mark.parametrize(
    "changed, description",
    [
        ({"dst": "0x" + "1" * 40}, "dst token is not supported: unknown address 0x" + "1" * 40),
        ({"dst": "USDT"}, "dst must be an Ethereum address"),
        ({"dst": "{src}"}, "src and dst tokens should be different"),
        ({"dst": "{lone}"}, "insufficient liquidity"),
        ({"amount": "0"}, "amount must be greater than 0"),
        ({"amount": "1e6"}, "amount must be a number string"),
        ({"amount": str(2**256)}, "amount must be a number string"),
        ({"amount": str(2**255)}, "insufficient liquidity"),
        ({"amount": "-1"}, "amount must be a number string"),
        ({"fee": "3.01"}, "fee must be a number from 0 to 3"),
        ({"fee": "nan"}, "fee must be a number from 0 to 3"),
        ({"includeGas": "1"}, "includeGas must be a boolean value"),
        ({"toToken": "USDT"}, "property toToken should not exist"),
        ({"slippage": "50.1"}, "slippage must be a number from 0 to 50"),
        ({"slippage": ""}, "slippage must be a number from 0 to 50"),
        ({"sender": "me"}, "from must be an Ethereum address"),
        ({"origin": ""}, "origin must be an Ethereum address"),
        ({"fee": "1"}, "referrer must be an Ethereum address where there is a fee"),
        ({"usePermit2": "true"}, "permits, partial fills and patching are not supported here"),
        ({"permit": "0x"}, "permits, partial fills and patching are not supported here"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_told(chain, client, changed, description):
    names = {"{src}": chain.address("USDT").lower(), "{lone}": chain.address("LONE")}
    asked = swap_of(chain) | {name: names.get(value, value) for name, value in changed.items()}
    status, body, _ = await client.ask("swap", **asked, disableEstimate="true")
    assert (status, body["description"]) == (400, description)
    assert (body["error"], body["statusCode"]) == ("Bad Request", 400)


async def test_parameters_of_6_1_are_unknown_to_6_0(chain, client):
    asked = swap_of(chain, disableEstimate="true", compatibility="true")
    assert (await client.ask("swap", version="v6.1", **asked))[0] == 200
    status, body, _ = await client.ask("swap", version="v6.0", **asked)
    assert (status, body["description"]) == (400, "property compatibility should not exist")


async def test_a_swap_is_tried_with_the_balance_and_the_allowance_that_there_are(chain, oneinch, client):
    amount = 5_000_000
    poor = swap_of(chain, amount=amount, sender=chain.customer, origin=chain.customer)
    status, body, _ = await client.ask("swap", **poor)
    assert (status, body["description"]) == (400, f"Not enough USDT balance. Amount: {amount}. Balance: 0.")
    chain.approve("USDT", oneinch.router, amount - 1)
    status, body, _ = await client.ask("swap", **swap_of(chain, amount=amount))
    text = f"Not enough allowance. Amount: {amount}. Allowance: {amount - 1}. Spender: {oneinch.router}"
    assert (status, body["description"]) == (400, text)
    assert {each["type"]: each["value"] for each in body["meta"]} == {
        "amount": str(amount),
        "allowance": str(amount - 1),
    }
    chain.approve("USDT", oneinch.router, 0)
    chain.approve("USDT", oneinch.router, amount)
    status, body, _ = await client.ask("swap", **swap_of(chain, amount=amount))
    assert status == 200
    tx = body["tx"]
    gas = chain.web3.eth.estimate_gas(
        {
            "from": chain.wallet,
            "to": Web3.to_checksum_address(tx["to"]),
            "data": tx["data"],
        }
    )
    assert tx["gas"] == gas > 100_000


async def test_what_would_fail_on_the_chain_cannot_be_estimated(chain, oneinch, client):
    chain.approve("LINK", oneinch.router, COIN)
    asked = swap_of(chain, "LINK", "ETH", COIN, receiver=chain.address("USDC"))
    status, body, _ = await client.ask("swap", **asked)
    assert (status, body["description"]) == (400, "cannot estimate")
    status, body, _ = await client.ask("swap", **asked, disableEstimate="true")
    assert (status, body["tx"]["gas"]) == (200, 0)


async def test_the_receiver_is_who_calls_where_nobody_else_is_named(chain, client):
    _, body, _ = await client.ask("swap", **swap_of(chain, disableEstimate="true"))
    assert chain.wallet[2:].lower() in body["tx"]["data"]
    _, body, _ = await client.ask("swap", **swap_of(chain, disableEstimate="true", receiver=chain.customer))
    assert chain.wallet[2:].lower() not in body["tx"]["data"]


async def test_allowances_are_the_chains_and_coin_needs_none(chain, oneinch, client):
    _, body, _ = await client.ask("approve/spender")
    assert body["address"] == oneinch.router.lower()
    asked = {"tokenAddress": chain.address("USDC"), "walletAddress": chain.wallet}
    _, tx, _ = await client.ask("approve/transaction", tokenAddress=chain.address("USDC"), amount="77")
    assert chain.send(chain.wallet, Web3.to_checksum_address(tx["to"]), bytes.fromhex(tx["data"][2:]))["status"] == 1
    assert (await client.ask("approve/allowance", **asked))[1] == {"allowance": "77"}
    _, tx, _ = await client.ask("approve/transaction", tokenAddress=chain.address("USDC"))
    chain.send(chain.wallet, Web3.to_checksum_address(tx["to"]), bytes.fromhex(tx["data"][2:]))
    assert chain.allowance("USDC", oneinch.router) == ENDLESS
    assert (await client.ask("approve/allowance", **asked | {"tokenAddress": NATIVE}))[1] == {"allowance": str(ENDLESS)}


async def test_it_knows_the_tokens_that_have_pools(chain, client):
    _, body, _ = await client.ask("tokens")
    told = {each["symbol"]: (each["address"], each["decimals"]) for each in body["tokens"].values()}
    assert told["USDT"] == (chain.address("USDT").lower(), 6)
    assert told["LINK"] == (chain.address("LINK").lower(), 18)
    assert told["ETH"] == (NATIVE.lower(), 18)
