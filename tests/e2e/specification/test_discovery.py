"""4.2, the status, and who is let in where (5): what needs no money."""

from __future__ import annotations

import pytest

from .replay import WRONG, Replay
from .rows import ROWS

CHAINS = {"tron", "ethereum", "bsc", "polygon", "arbitrum", "base"}


async def test_chains_are_those_with_endpoints_and_tron(shop: Replay, network, other):
    found = {one["chain"]: one for one in (await shop.ask("GET /api/public/chains"))["chains"]}
    assert set(found) == {"tron", network.chain, other.chain}
    assert set(found) < CHAINS
    assert (found["tron"]["chainIdNum"], found["tron"]["isEvm"]) == (None, False)
    assert (found["ethereum"]["chainIdNum"], found["ethereum"]["isEvm"]) == (1, True)


async def test_each_chain_has_its_coin_and_tokens_and_no_other_chain_has(shop: Replay, network):
    found = (await shop.ask("GET /api/public/tokens"))["tokens"]
    native = {one["chain"]: one for one in found if one["isNative"]}
    assert set(native) == {one["chain"] for one in (await shop.ask("GET /api/public/chains"))["chains"]}
    assert {one["contractAddress"] for one in native.values()} == {None}
    of_one = (await shop.ask("GET /api/public/tokens", query={"chain": network.chain}))["tokens"]
    assert of_one == [one for one in found if one["chain"] == network.chain]
    refused = await shop.ask("GET /api/public/tokens", status=400, query={"chain": "nowhere"})
    assert "Unsupported chain" in refused["error"]


async def test_the_calculators_data(shop: Replay):
    told = await shop.ask("GET /api/public/cpt-calculator-config")
    assert {"chains", "tracker", "apiMethod", "webhookDelivery"} <= set(told["weights"])
    assert told["tiers"][-1]["maxCpt"] is None


async def test_the_status(shop: Replay, network):
    told = await shop.ask("GET /api/status")
    assert network.chain in {one["chain"] for one in told["chains"]}
    assert told["version"] == "3.0.0"


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.credentials])
async def test_nobody_is_let_in_without_the_credential_of_the_row(shop: Replay, name: str):
    row, (method, path) = ROWS[name], name.split()
    right = {"K": shop.merchant.headers, "B": shop.merchant.bearer}
    others = [headers for kind, headers in right.items() if kind not in row.credentials]
    for headers in ({}, *(WRONG[kind] for kind in row.credentials), *others):
        async with shop.merchant.session.request(method, shop.merchant.url + path, json={}, headers=headers) as answer:
            assert (answer.status, (await answer.json())["success"]) == (401, False), headers
