"""What the local 1inch answers has the shapes of what the real one answered, and calls are as recorded ones."""

from __future__ import annotations

import re

import pytest
from eth_abi import decode

from .conftest import COIN, recorded
from .test_api import swap_of

EVERYTHING = {"includeTokensInfo": "true", "includeProtocols": "true", "includeGas": "true"}
EXAMPLES = recorded("openapi_examples_v6_1.json")["examples"]
DESCRIPTION = "(address,address,address,address,uint256,uint256,uint256)"


def kind(text):
    """Return how a text is written: an address, other bytes, digits, a UUID, or words."""
    patterns = {
        "address": r"0x[0-9a-f]{40}",
        "bytes": r"0x[0-9a-f]*",
        "digits": r"[0-9]+",
        "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    }
    return next((name for name, pattern in patterns.items() if re.fullmatch(pattern, text)), "words")


def shape(value):
    """Return names and kinds of a value's parts; a list is as its first member."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return kind(value) if isinstance(value, str) else type(value).__name__


async def test_a_quote_of_6_0_has_the_shape_of_the_recorded_one(chain, client):
    asked = {"src": chain.address("ETH"), "dst": chain.address("USDT"), "amount": str(COIN)}
    _, body, _ = await client.ask("quote", version="v6.0", **asked, **EVERYTHING)
    assert shape(body) == shape(recorded("komodo_v6_0_quote.json")["response"])


async def test_without_being_asked_a_quote_tells_its_amount_alone(chain, client):
    asked = {"src": chain.address("ETH"), "dst": chain.address("USDT"), "amount": str(COIN)}
    _, body, _ = await client.ask("quote", **asked)
    assert list(body) == ["dstAmount"]


@pytest.mark.parametrize("path, example", [("quote", "QuoteResponse"), ("swap", "SwapResponse")])
async def test_answers_of_6_1_have_the_shape_of_its_description(chain, client, path, example):
    asked = swap_of(chain, "USDT", "LINK", disableEstimate="true", **EVERYTHING)
    if path == "quote":
        asked = {name: asked[name] for name in ("src", "dst", "amount", *EVERYTHING)}
    _, body, _ = await client.ask(path, **asked)
    assert shape(body) == shape(EXAMPLES[example])


async def test_a_way_over_another_token_is_told_hop_by_hop_in_both_versions(chain, oneinch, client):
    asked = {
        "src": chain.address("USDC"),
        "dst": chain.address("LINK"),
        "amount": "1000000",
        "includeProtocols": "true",
    }
    _, old, _ = await client.ask("quote", version="v6.0", **asked)
    _, new, _ = await client.ask("quote", version="v6.1", **asked)
    way = [chain.address("USDC").lower(), oneinch.amm.weth.lower(), chain.address("LINK").lower()]
    ((first,), (second,)) = old["protocols"][0]
    assert [first["fromTokenAddress"], first["toTokenAddress"]] == way[:2]
    assert [second["fromTokenAddress"], second["toTokenAddress"]] == way[1:]
    assert [(each["token"], each["hops"][0]["dst"]) for each in new["protocols"]] == [tuple(way[:2]), tuple(way[1:])]


@pytest.mark.parametrize("path", ["quote", "swap"])
async def test_refusals_have_the_shape_of_the_description(chain, client, path):
    asked = swap_of(chain, dst=chain.address("LONE"), disableEstimate="true")
    if path == "quote":
        asked = {name: asked[name] for name in ("src", "dst", "amount")}
    status, body, _ = await client.ask(path, **asked)
    assert (status, body["description"]) == (400, EXAMPLES["QuoteRequestError"]["description"])
    assert {**shape(body), "meta": None} == {**shape(EXAMPLES["QuoteRequestError"]), "meta": None}
    _, body, _ = await client.ask("swap", **swap_of(chain))
    assert shape(body)["meta"] == [{"type": "words", "value": "digits"}]
    assert set(body["meta"][0]) == set(EXAMPLES["SwapRequestError"]["meta"][0])


@pytest.mark.parametrize(
    "path, example",
    [
        ("approve/spender", "SpenderResponse"),
        ("approve/transaction", "ApproveCallDataResponse"),
        ("approve/allowance", "AllowanceResponse"),
    ],
)
async def test_what_is_said_of_allowances_has_the_shape_of_the_description(chain, client, path, example):
    asked = {"tokenAddress": chain.address("USDC"), "walletAddress": chain.wallet}
    _, body, _ = await client.ask(path, **{} if path == "approve/spender" else asked)
    assert shape(body) == shape(EXAMPLES[example])


async def test_tokens_have_the_shape_of_the_description(client):
    _, body, _ = await client.ask("tokens")
    for address, told in body["tokens"].items():
        assert told["address"] == address
        assert shape(told) == shape(EXAMPLES["TokenInfo"])


@pytest.mark.parametrize(
    "name",
    ["arbitrum_5a092c4d40.json", "base_5b41c094c4.json", "bsc_243744958f.json", "ethereum_bd2aeb7ea4.json"],
)
async def test_calls_are_laid_out_as_recorded_ones_are(chain, oneinch, client, name):
    real = bytes.fromhex(recorded(name)["transaction"]["input"][2:])
    _, body, _ = await client.ask("swap", **swap_of(chain, disableEstimate="true", receiver=chain.customer))
    ours = bytes.fromhex(body["tx"]["data"][2:])
    assert ours[:4] == real[:4]
    told = []
    for data in (real, ours):
        executor, description, plan = decode(["address", DESCRIPTION, "bytes"], data[4:])
        # The executor gets what is sold, and data as long as it says stands before the mark of the key.
        told.append((executor == description[2], description[6], (len(data) - 4 - len(plan)) // 32))
    assert told[0][1:] == told[1][1:]
    assert told[1][0]
